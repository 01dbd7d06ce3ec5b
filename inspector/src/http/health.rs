//! Liveness and readiness endpoints.

use axum::extract::State;
use axum::http::StatusCode;

use super::app::App;

/// `/healthz`, `/livez`: 200 while no component is stuck.
pub(super) async fn alive(State(app): State<App>) -> (StatusCode, String) {
    match app.engine.failure().or_else(|| app.settings.liveness.stuck(None)) {
        None => (StatusCode::OK, "ok".to_owned()),
        Some(failure) => (StatusCode::INTERNAL_SERVER_ERROR, failure.to_string()),
    }
}

/// `/readyz`: 200 once all watches have synced, and while they are up to date; regardless of the leader.
pub(super) async fn ready(State(app): State<App>) -> (StatusCode, String) {
    let unready = app.health.unready().or_else(|| app.ready().err().map(|refusal| refusal.to_string()));
    match unready {
        None => (StatusCode::OK, "ok".to_owned()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}")),
    }
}
