//! Requests to the API server: retries, and classification of failures.

use std::time::Duration;

use kube::Client;
use serde_json::Value;

use super::fence;
use crate::logs::kube_error;

/// Request timeout (the request may still have succeeded).
const TIMEOUT: Duration = Duration::from_secs(15);
/// Delays between the attempts of one write.
const WAITS: [Duration; 3] = [Duration::from_millis(100), Duration::from_millis(500), Duration::from_secs(2)];

/// How a write failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    /// The object does not exist, or is a different one.
    #[error("the object no longer exists")]
    Gone,
    /// Not sent because of a rate limit.
    #[error("too many Events for one object")]
    Dropped,
    /// 409.
    #[error("{0}")]
    Conflict(String),
    /// Any other permanent rejection.
    #[error("{0}")]
    Refused(String),
    /// The server is unreachable, slow or overloaded; several attempts were made.
    #[error("{0}")]
    Transient(String),
}

/// A write: method, path (with query), content type and body.
pub(super) struct Write {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
}

impl Write {
    pub(super) fn json(method: &'static str, path: String, body: &Value) -> Self {
        Self { method, path, content_type: "application/json", body: body.to_string().into_bytes() }
    }

    pub(super) fn patch(path: String, content_type: &'static str, body: &Value) -> Self {
        Self { method: "PATCH", path, content_type, body: body.to_string().into_bytes() }
    }

    /// Sends it, with retries after transient failures.
    pub(super) async fn send(&self, client: &Client) -> Result<Value, WriteError> {
        let mut waits = WAITS.into_iter();
        loop {
            match self.once(client).await {
                Err(WriteError::Transient(why)) => match waits.next() {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => return Err(WriteError::Transient(why)),
                },
                answer => return answer,
            }
        }
    }

    async fn once(&self, client: &Client) -> Result<Value, WriteError> {
        let request = http::Request::builder()
            .method(self.method)
            .uri(&self.path)
            .header(http::header::CONTENT_TYPE, self.content_type)
            .header(http::header::ACCEPT, "application/json")
            .body(self.body.clone())
            .map_err(|error| WriteError::Refused(error.to_string()))?;
        match tokio::time::timeout(TIMEOUT, client.request::<Value>(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(classify(error)),
            Err(_) => Err(WriteError::Transient(format!("no response within {} s", TIMEOUT.as_secs()))),
        }
    }
}

/// Classifies a failure.
fn classify(error: kube::Error) -> WriteError {
    let kube::Error::Api(status) = error else {
        return WriteError::Transient(kube_error(&error));
    };
    match status.code {
        404 | 410 => WriteError::Gone,
        409 => WriteError::Conflict(status.message),
        // Tokens are rotated and roles are edited: a retry may succeed.
        401 | 408 | 429 | 500..=599 => WriteError::Transient(status.message),
        // Not a refusal by the cluster's policy: nothing else is to be tried instead.
        _ if fence::refused(&status.message) => {
            WriteError::Transient(format!("not the leader according to the API server: {}", status.message))
        }
        _ => WriteError::Refused(status.message),
    }
}

/// A name as a path segment: names from the API server need no escaping, but others must not change the path.
pub(super) fn segment(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    name.chars().filter(|c| plain(*c)).collect()
}
