//! `version`: the client and server versions.

use fluxion_api::Exit;
use serde_json::json;

use crate::cli::Format;
use crate::connect::Server;
use crate::failure::Failure;
use crate::output;

const OWN: &str = env!("CARGO_PKG_VERSION");

/// Prints both versions. An unreachable server is not an error, because the command is used for troubleshooting.
pub(super) async fn run(connected: Result<Server, Failure>, format: Format) -> Result<Exit, Failure> {
    let server = match &connected {
        Ok(server) => server.client.version().await.map_err(|error| error.to_string()),
        Err(failure) => Err(failure.message.clone().unwrap_or_default()),
    };
    if matches!(format, Format::Json | Format::Yaml) {
        let mut answer = json!({ "clientVersion": OWN });
        match server {
            Ok(version) => answer["serverVersion"] = version,
            Err(why) => answer["serverError"] = why.into(),
        }
        output::document(&answer, format)?;
        return Ok(Exit::Done);
    }
    let server = match server {
        Ok(version) => ["fluxionVersion", "version", "gitVersion"]
            .iter()
            .find_map(|key| version.get(key)?.as_str().map(str::to_owned))
            .unwrap_or_else(|| version.to_string()),
        Err(why) => format!("unknown ({why})"),
    };
    output::names([format!("Client Version: {OWN}"), format!("Server Version: {server}")])?;
    Ok(Exit::Done)
}
