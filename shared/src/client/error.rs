//! Client errors, with advice on how to fix them.

use std::time::Duration;

use crate::exit::Exit;
use crate::names::API_VERSION;
use crate::server_file::DEFAULT_LISTEN;
use crate::status::Status;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The server URL is invalid.
    #[error("invalid server URL '{url}': {why}; specify a URL such as http://{DEFAULT_LISTEN}")]
    BadUrl { url: String, why: String },
    /// The connection was refused, the host name is unknown, or the connection was lost.
    #[error("unable to connect to the inspector at {server}: {why}; is it running?")]
    Unreachable { server: String, why: String },
    /// The server is not ready: it is starting, or there is no leader.
    #[error("the inspector at {server} is not ready: {message}")]
    NotReady { server: String, message: String, retry_after: Option<u64> },
    /// No response within the timeout.
    #[error("no response from {server} within {}; the server may be busy; retry or increase --timeout", seconds(*.limit))]
    TimedOut { server: String, limit: Duration },
    /// The token is missing or wrong.
    #[error("{server} rejected the token: {message}; use --token-file to specify a valid one")]
    Unauthorized { server: String, message: String },
    /// The user is not allowed to do this.
    #[error("{message}")]
    Forbidden { message: String },
    /// The object does not exist.
    #[error("{message}")]
    NotFound { message: String },
    /// The resource version or continue token is too old; list again.
    #[error("{message}")]
    Expired { message: String },
    /// The server rejected the request.
    #[error("{message}")]
    Refused { code: u16, reason: String, message: String },
    /// A cluster without Fluxion, or one in which it is not registered.
    #[error(
        "{server} does not serve {API_VERSION}: install Fluxion in the cluster (`helm install fluxion charts/fluxion -n fluxion-system --create-namespace`), or specify an inspector with --server URL"
    )]
    NotInstalled { server: String },
    /// The server is not an inspector, or is an incompatible version.
    #[error("the server at {server} is not a Fluxion inspector: {why}; check the URL")]
    Foreign { server: String, why: String },
    /// The response exceeds the size limit.
    #[error("the response from {server} exceeds {limit} bytes; use -n or -l to narrow the request")]
    TooLarge { server: String, limit: usize },
    /// The connection could not be set up (kubeconfig, certificates).
    #[error("{0}")]
    Setup(String),
}

impl Error {
    /// Exit code of a command that fails with this error.
    pub fn exit(&self) -> Exit {
        match self {
            // Only what the user wrote into a selector can make a request that is none.
            Self::BadUrl { .. } | Self::Refused { code: 400, .. } => Exit::Usage,
            Self::Unreachable { .. } | Self::NotReady { .. } | Self::NotInstalled { .. } => Exit::Unreachable,
            Self::TimedOut { .. } => Exit::TimedOut,
            Self::Unauthorized { .. } | Self::Forbidden { .. } => Exit::Forbidden,
            Self::NotFound { .. } => Exit::NotFound,
            Self::Refused { code: 409 | 422 | 405, .. } => Exit::Refused,
            Self::Refused { .. }
            | Self::Expired { .. }
            | Self::Foreign { .. }
            | Self::TooLarge { .. }
            | Self::Setup(_) => Exit::Other,
        }
    }

    /// Whether retrying later may succeed.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::NotReady { .. } | Self::TimedOut { .. } | Self::Expired { .. }
        ) || matches!(self, Self::Refused { code: 429 | 500..=599, .. })
    }

    /// Creates an error from a response with a status other than 2xx.
    ///
    /// Handles both `Status` objects and the plain-text responses of a kube-apiserver whose aggregated API
    /// is unavailable.
    pub(super) fn from_answer(server: &str, code: u16, retry_after: Option<u64>, body: &[u8]) -> Self {
        let server = server.to_owned();
        let status = serde_json::from_slice::<Status>(body).ok().filter(|status| status.kind == "Status");
        let text = String::from_utf8_lossy(&body[..body.len().min(300)]).trim().to_owned();
        let message = status.as_ref().map_or_else(
            || if text.is_empty() { format!("HTTP status {code}") } else { text.clone() },
            |status| status.message.clone(),
        );
        match code {
            401 => Self::Unauthorized { server, message },
            403 if status.is_some() => Self::Forbidden { message },
            404 if status
                .as_ref()
                .is_some_and(|status| status.message.contains("the server could not find")) =>
            {
                Self::NotInstalled { server }
            }
            404 if status.is_some() => Self::NotFound { message },
            404 if text == "404 page not found" => Self::NotInstalled { server },
            410 if status.is_some() => Self::Expired { message },
            502 | 503 => Self::NotReady {
                server,
                message: if status.is_some() {
                    message
                } else if text.contains("error trying to reach service") || text == "service unavailable" {
                    "kube-apiserver cannot reach it; see `kubectl get apiservice v1alpha1.fluxion.flux-framework.org`"
                        .to_owned()
                } else {
                    message
                },
                retry_after,
            },
            504 => Self::NotReady {
                server,
                message: format!("it did not respond in time ({message})"),
                retry_after,
            },
            _ => match status {
                Some(status) => Self::Refused { code, reason: status.reason, message },
                None => Self::Foreign {
                    server,
                    why: format!("HTTP status {code} without a Status object: {message}"),
                },
            },
        }
    }
}

fn seconds(limit: Duration) -> String {
    format!("{}s", limit.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: u16, body: &str) -> Error {
        Error::from_answer("http://s", code, None, body.as_bytes())
    }

    fn status(code: u16, reason: &str, message: &str) -> String {
        serde_json::to_string(&Status::failure(code, reason, message)).unwrap()
    }

    #[test]
    fn status_objects_keep_their_message() {
        let error = error(404, &status(404, "NotFound", "no job job.x in default"));
        assert_eq!(error, Error::NotFound { message: "no job job.x in default".to_owned() });
        assert_eq!(error.exit(), Exit::NotFound);
    }

    #[test]
    fn an_aggregated_api_that_is_down_is_not_ready() {
        for body in [
            "service unavailable\n",
            "error trying to reach service: dial tcp 10.0.0.1:443: connection refused",
        ] {
            let error = error(503, body);
            assert_eq!(error.exit(), Exit::Unreachable);
            assert!(error.to_string().contains("kubectl get apiservice"), "{error}");
        }
    }

    #[test]
    fn a_cluster_without_fluxion_and_a_web_server_are_told_apart_from_a_missing_job() {
        let missing = error(404, "404 page not found\n");
        assert!(
            missing.to_string().contains("does not serve") && missing.to_string().contains("helm install")
        );
        assert_eq!(missing.exit(), Exit::Unreachable);
        assert!(
            error(404, &status(404, "NotFound", "the server could not find the requested resource"))
                .to_string()
                .contains("does not serve")
        );
        assert!(matches!(error(404, "<html>nginx</html>"), Error::Foreign { .. }));
    }

    #[test]
    fn codes_become_exit_codes() {
        assert_eq!(error(401, "").exit(), Exit::Forbidden);
        assert_eq!(error(403, &status(403, "Forbidden", "no")).exit(), Exit::Forbidden);
        assert_eq!(error(409, &status(409, "Conflict", "no")).exit(), Exit::Refused);
        assert_eq!(error(500, &status(500, "InternalError", "no")).exit(), Exit::Other);
        assert!(error(410, &status(410, "Expired", "too old")).is_temporary());
    }
}
