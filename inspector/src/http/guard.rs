//! Isolation of requests from each other: time limits, caught panics, responses for unknown paths and methods.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use axum::extract::Request;
use axum::http::{Method, Uri};
use axum::middleware::Next;
use axum::response::Response;
use futures::FutureExt;
use http_body::Body;
use tower_http::compression::predicate::Predicate;

use super::refusal::Refusal;
use super::watch::Streamed;
use crate::supervise::message_of;

/// Maximum size of a request body.
pub(super) const BODY_BYTES: usize = 64 * 1024;
/// Maximum time until a response starts; kube-apiserver gives up after 60 s.
const LIMIT: Duration = Duration::from_secs(30);
/// Smaller responses are not compressed.
const WORTH_COMPRESSING: u64 = 8 * 1024;

/// Aborts slow requests and catches panics.
pub(super) async fn bounded(request: Request, next: Next) -> Result<Response, Refusal> {
    within(LIMIT, request, next).await
}

/// Like [`bounded`], with another limit.
pub(super) async fn within(limit: Duration, request: Request, next: Next) -> Result<Response, Refusal> {
    let what = format!("{} {}", request.method(), request.uri().path());
    let work = AssertUnwindSafe(next.run(request)).catch_unwind();
    match tokio::time::timeout(limit, work).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(panic)) => {
            tracing::error!(request = what, panic = message_of(&*panic), "a request caused a panic");
            Err(Refusal::Internal)
        }
        Err(_) => {
            tracing::warn!(request = what, "a request timed out");
            Err(Refusal::Timeout(limit.as_secs()))
        }
    }
}

/// Marks a large answer whose size is not known in advance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Large;

/// Compresses large answers, but no watch: its events must not wait for each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compressible;

impl Predicate for Compressible {
    fn should_compress<B: Body>(&self, response: &axum::http::Response<B>) -> bool {
        let large = response.extensions().get::<Large>().is_some()
            || response.body().size_hint().lower() >= WORTH_COMPRESSING;
        large && response.extensions().get::<Streamed>().is_none()
    }
}

/// 404.
pub(super) async fn no_such_path() -> Refusal {
    Refusal::NoSuchPath
}

/// 405, with the method to use instead.
pub(super) async fn method_not_allowed(method: Method, uri: Uri) -> Refusal {
    let path = uri.path();
    if path.contains("/fluxionjobs") {
        if path.ends_with("/cancel") {
            return Refusal::MethodNotAllowed(
                "POST",
                format!(
                    "method {method} is not allowed: use POST to cancel a job, or `kubectl fluxion cancel JOB`"
                ),
            );
        }
        return Refusal::MethodNotAllowed(
            "GET, HEAD",
            format!(
                "method {method} is not allowed: a FluxionJob is a read-only view of Pods; use `kubectl fluxion cancel JOB` to cancel it, and change the owner of the Pods to change it"
            ),
        );
    }
    Refusal::MethodNotAllowed(
        "GET, HEAD",
        format!("method {method} is not allowed: this resource is read-only"),
    )
}
