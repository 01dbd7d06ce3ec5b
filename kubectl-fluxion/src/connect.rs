//! Finds the server: a URL, a cluster in a kubeconfig, or the standalone inspector on this machine.
//!
//! A kubeconfig is read, and TLS is set up, only if needed to connect to the server.

mod files;
mod from_file;
mod registration;
mod through_cluster;

use std::fs;
use std::path::{Path, PathBuf};

use fluxion_api::Exit;
use fluxion_api::client::{Client, Direct};
use fluxion_api::server_file::{ServerFile, state_dir};

use crate::cli::Connection;
use crate::failure::Failure;
use files::{read_server_file, unreadable};
use from_file::{AddressSource, FromFile};

pub use through_cluster::{ThroughCluster, cluster};

/// A server to send requests to.
#[derive(Clone)]
pub struct Server {
    pub client: Client,
    /// The default namespace.
    pub namespace: String,
    /// Printed if this might not be the server that the user intended.
    pub note: Option<String>,
    /// Prefix of error messages if the user did not specify the server: why it was selected.
    pub asked_because: Option<String>,
}

impl Server {
    /// Adds to a failure why this server was selected, if that may be the cause.
    pub fn explain(&self, failure: Failure) -> Failure {
        let of_the_way =
            matches!(failure.exit, Exit::Unreachable | Exit::TimedOut | Exit::Forbidden | Exit::Other);
        match (&self.asked_because, &failure.message) {
            (Some(because), Some(message)) if of_the_way => {
                Failure::new(failure.exit, format!("{because}: {message}"))
            }
            _ => failure,
        }
    }
}

/// Selects the server: `--server`, then the cluster of `--context` or `--kubeconfig`, then the environment variable
/// `FLUXION_SERVER`, then the standalone inspector's `server.json`, then the current context. Flags take
/// precedence over environment variables, and environment variables over files.
pub async fn connect(flags: &Connection) -> Result<Server, Failure> {
    if let Some(url) = &flags.server {
        return direct(flags, url);
    }
    let named = flags.kubeconfig.is_some() || flags.context.is_some() || flags.token.is_some();
    let url = std::env::var("FLUXION_SERVER").ok().filter(|url| !url.is_empty() && !named);
    if let Some(url) = url {
        return direct(flags, &url);
    }
    if let Some(path) = &flags.certificate_authority {
        return Err(Failure::new(
            Exit::Usage,
            format!("--certificate-authority {} requires --server", path.display()),
        ));
    }
    if named {
        return through(flags).await;
    }
    let file = server_file();
    if let Some(path) = &file
        && let Some(found) = standalone(flags, path)?
    {
        return Ok(found);
    }
    let place = file.map_or_else(
        || "server.json (neither XDG_STATE_HOME nor HOME is set)".to_owned(),
        |path| path.display().to_string(),
    );
    if kubeconfig_exists() {
        let because = |cluster: &str| format!("{place} does not exist, so {cluster} was used");
        return match through(flags).await {
            Ok(server) => {
                let because = because(&format!("the cluster at {}", server.client.server()));
                Ok(Server { asked_because: Some(because), ..server })
            }
            Err(Failure { exit, message }) => {
                let because = because("the cluster of the kubeconfig");
                Err(Failure { exit, message: message.map(|message| format!("{because}: {message}")) })
            }
        };
    }
    Err(Failure::new(
        Exit::Unreachable,
        format!(
            "no inspector found: neither {place} nor a kubeconfig exists; start one with `fluxion-inspector \
             standalone`, or select one with --server URL or --context NAME"
        ),
    ))
}

async fn through(flags: &Connection) -> Result<Server, Failure> {
    let (cluster, namespace) = cluster(flags).await?;
    Ok(Server { client: Client::new(cluster, flags.limit()), namespace, note: None, asked_because: None })
}

fn direct(flags: &Connection, url: &str) -> Result<Server, Failure> {
    let served = |client| Server {
        client,
        namespace: "default".to_owned(),
        note: own_token_note(flags, url),
        asked_because: None,
    };
    let certificates = match &flags.certificate_authority {
        Some(path) if url.starts_with("http:") => {
            return Err(Failure::new(
                Exit::Usage,
                format!(
                    "--certificate-authority {} requires an https URL, but the server is {url}",
                    path.display()
                ),
            ));
        }
        Some(path) => Some(fs::read(path).map_err(|error| unreadable("the CA certificates", path, &error))?),
        None => None,
    };
    let source = match &flags.token_file {
        Some(path) => Some(AddressSource::Url {
            url: url.to_owned(),
            token_file: path.clone(),
            certificates: certificates.clone(),
        }),
        None => beside(url),
    };
    if let Some(token) = &flags.token {
        let asked = Direct::new(url, Some(token.clone()), certificates.as_deref())?;
        return Ok(served(Client::new(asked, flags.limit())));
    }
    if let Some(source) = source
        && let Some(client) = FromFile::new(source)?
    {
        return Ok(served(Client::new(client, flags.limit())));
    }
    Ok(served(Client::new(Direct::new(url, None, certificates.as_deref())?, flags.limit())))
}

/// Warning for impersonation with a server that only knows the owner of its token.
fn own_token_note(flags: &Connection, url: &str) -> Option<String> {
    let acts = flags.impersonate.is_some() || !flags.impersonate_groups.is_empty();
    acts.then(|| {
        format!("warning: requests to {url} use its own token; --as and --as-group apply only to deletions")
    })
}

/// The inspector on this machine, if it has this URL, so that its token can be used.
fn beside(url: &str) -> Option<AddressSource> {
    let path = server_file()?;
    let found = read_server_file(&path).ok()??;
    let same = found.url.trim_end_matches('/') == url.trim_end_matches('/');
    same.then_some(AddressSource::ServerFile { path, only: Some(found.url), token_file: None })
}

/// The inspector in `server.json`, if the file exists.
fn standalone(flags: &Connection, path: &Path) -> Result<Option<Server>, Failure> {
    let Some(found) = read_server_file(path)? else { return Ok(None) };
    let note = is_of_another_cluster(&found).then(|| {
        format!(
            "using the inspector at {} (from {}) instead of the cluster in KUBECONFIG; use --context NAME to select that cluster",
            found.url,
            path.display()
        )
    });
    let note = note.or_else(|| own_token_note(flags, &found.url));
    let source =
        AddressSource::ServerFile { path: path.to_owned(), only: None, token_file: flags.token_file.clone() };
    let client = FromFile::new(source)?.map(|client| Client::new(client, flags.limit()));
    let namespace = "default".to_owned();
    Ok(client.map(|client| Server { client, namespace, note, asked_because: None }))
}

/// Whether a user who has set `KUBECONFIG` may have intended a cluster other than the inspector's. The inspector of
/// a cluster is identified by the address of its API server, which the file then contains.
fn is_of_another_cluster(found: &ServerFile) -> bool {
    let Some(paths) = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()) else { return false };
    !std::env::split_paths(&paths)
        .filter_map(|path| fs::read_to_string(path).ok())
        .any(|text| text.contains(found.cluster_id.trim_end_matches('/')))
}

fn server_file() -> Option<PathBuf> {
    state_dir().map(|folder| folder.join("server.json"))
}

fn kubeconfig_exists() -> bool {
    if let Some(paths) = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()) {
        return std::env::split_paths(&paths).any(|path| path.is_file());
    }
    std::env::home_dir().is_some_and(|home| home.join(".kube/config").is_file())
}
