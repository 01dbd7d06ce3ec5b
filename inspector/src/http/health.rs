//! Whether the server lives, and whether it can answer from the whole cluster.

use axum::extract::State;
use axum::http::StatusCode;

use super::App;

/// `/healthz`, `/livez`: answers as long as requests are answered at all.
pub(super) async fn alive() -> &'static str {
    "ok"
}

/// `/readyz`: 200 once data can be served.
pub(super) async fn ready(State(app): State<App>) -> (StatusCode, &'static str) {
    match app.ready() {
        Ok(_) => (StatusCode::OK, "ok"),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "not ready: the whole cluster has not been seen yet"),
    }
}
