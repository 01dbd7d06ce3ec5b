//! The HTTP API: its paths, and the layers that every request passes through.
//!
//! Nothing in here makes decisions: controllers read published snapshots through [`crate::view`] and send requests to
//! the engine as events.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use tower_http::compression::{CompressionLayer, CompressionLevel};

use crate::access::Access;

mod accept;
mod admission;
mod answer;
mod app;
mod audit_log;
mod auth;
mod authorise;
mod cancel;
mod collection;
mod columns;
mod connection;
mod create;
mod details;
mod discovery;
mod documents;
mod explain;
mod filter;
mod forward;
mod guard;
mod health;
mod index;
mod jobs;
mod listen;
mod nodes;
mod openapi;
mod page;
mod path;
mod pretty;
mod query;
mod queues;
mod refusal;
mod rendered;
mod requests;
mod resource;
mod scrape;
mod secure;
mod selector;
mod standing;
mod table;
mod template;
mod tickets;
mod timeout_stream;
mod watch;

pub use app::{App, Cancels, HttpSettings};
pub use forward::Forwarding;
pub use listen::{ListenError, listen, serve};
pub use refusal::Refusal;
pub use secure::{listen_secure, serve_secure};

/// All routes on the loopback address, for whoever holds the token.
pub fn router(app: App) -> Router {
    let authenticated = routes().layer(from_fn_with_state(app.clone(), auth::bearer));
    whole(app, authenticated, |router| router.layer(from_fn(auth::own_host)))
}

/// Everything that can be asked over the secure port, by users of the cluster. With `forwarding`, the leader answers
/// requests for data.
pub fn secure_router(app: App, access: Arc<Access>, forwarding: Option<Arc<Forwarding>>) -> Router {
    let mut all = routes();
    if let Some(forwarding) = forwarding {
        all = all.layer(from_fn_with_state(forwarding, forward::to_leader));
    }
    let mut all = all.layer(from_fn_with_state(access, authorise::authorised));
    if app.admission {
        all = all.merge(admission_routes());
    }
    whole(app, all, |router| router)
}

/// The admission webhooks.
fn admission_routes() -> Router<App> {
    Router::new()
        .route("/admission/bind", post(admission::bind))
        .route("/admission/gate", post(admission::gate))
        .route("/admission/suspend", post(admission::suspend))
        .route("/admission/resume", post(admission::resume))
        .layer(DefaultBodyLimit::max(admission::REVIEW_BYTES))
}

/// What is only for those who are known.
fn routes() -> Router<App> {
    let api = Router::new()
        .route("/fluxionjobs", get(jobs::list_all))
        .route("/namespaces/{namespace}/fluxionjobs", get(jobs::list).post(create::post))
        .route("/namespaces/{namespace}/fluxionjobs/{name}", get(jobs::get))
        .route("/namespaces/{namespace}/fluxionjobs/{name}/explain", get(explain::get))
        .route("/namespaces/{namespace}/fluxionjobs/{name}/cancel", post(cancel::post))
        .route("/fluxionnodes", get(nodes::list))
        .route("/fluxionnodes/{name}", get(nodes::get))
        .route("/fluxionqueues", get(queues::list))
        .route("/fluxionqueues/{name}", get(queues::get))
        .route("/fluxiongraphs", get(documents::graphs))
        .route("/fluxiongraphs/{name}", get(documents::graph))
        .route("/fluxiontimelines", get(documents::timelines))
        .route("/fluxiontimelines/{name}", get(documents::timeline))
        .route("/fluxionaudits", get(documents::audits))
        .route("/fluxionaudits/{name}", get(documents::audit))
        .route("/", get(discovery::resources));
    Router::new()
        .nest("/apis/fluxion.flux-framework.org/v1alpha1", api)
        .route("/apis/fluxion.flux-framework.org", get(discovery::group))
        .route("/apis", get(discovery::groups))
        .route("/version", get(discovery::version))
        .route("/openapi/v3", get(openapi::root))
        .route("/openapi/v3/apis/fluxion.flux-framework.org/v1alpha1", get(openapi::group_version))
        .route("/metrics", get(scrape::metrics))
        .fallback(guard::no_such_path)
        .method_not_allowed_fallback(guard::method_not_allowed)
}

/// With what is for everybody, and the layers that every request goes through.
fn whole(app: App, authenticated: Router<App>, outermost: impl FnOnce(Router<App>) -> Router<App>) -> Router {
    let all = Router::new()
        .route("/healthz", get(health::alive))
        .route("/livez", get(health::alive))
        .route("/readyz", get(health::ready))
        .method_not_allowed_fallback(guard::method_not_allowed)
        .merge(authenticated)
        .layer(DefaultBodyLimit::max(guard::BODY_BYTES))
        .layer(from_fn(details::add))
        .layer(from_fn(pretty::pretty))
        .layer(
            CompressionLayer::new()
                .gzip(true)
                .quality(CompressionLevel::Fastest)
                .compress_when(guard::Compressible),
        )
        .layer(from_fn(guard::bounded));
    outermost(all).layer(from_fn_with_state(app.clone(), scrape::count)).with_state(app)
}

#[cfg(test)]
mod tests;
