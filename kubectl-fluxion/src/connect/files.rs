//! Reads server and token files.

use std::fs;
use std::io;
use std::path::Path;

use fluxion_api::Exit;
use fluxion_api::server_file::ServerFile;

use crate::failure::Failure;

pub(super) fn read_server_file(path: &Path) -> Result<Option<ServerFile>, Failure> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable("the standalone inspector's server file", path, &error)),
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| {
        Failure::new(
            Exit::Other,
            format!(
                "{} is not a valid server file ({error}); delete it and restart the inspector",
                path.display()
            ),
        )
    })
}

pub(super) fn read_token(path: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(path).map_err(|error| unreadable("the token", path, &error))?;
    let token = text.trim();
    if token.is_empty() {
        return Err(Failure::new(Exit::Forbidden, format!("token file {} is empty", path.display())));
    }
    Ok(token.to_owned())
}

pub(super) fn unreadable(what: &str, path: &Path, error: &io::Error) -> Failure {
    let exit = if error.kind() == io::ErrorKind::PermissionDenied { Exit::Forbidden } else { Exit::Other };
    let why = error.to_string();
    let why = why.split(" (os error").next().unwrap_or_default().to_lowercase();
    Failure::new(exit, format!("failed to read {what} from {}: {why}", path.display()))
}
