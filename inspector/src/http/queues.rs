//! `fluxionqueues`: lists, watches, single queues.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;

use super::app::App;
use super::auth::Asker;
use super::collection;
use super::path::Names;
use super::query::{GetQuery, ListQuery};
use super::refusal::Refusal;
use super::resource::queues::Queues;

/// All queues.
pub(super) async fn list(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    query: ListQuery,
) -> Result<Response, Refusal> {
    collection::list::<Queues>(app, asker, None, query).await
}

/// One queue.
pub(super) async fn get(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    Names(name): Names<String>,
    query: GetQuery,
) -> Result<Response, Refusal> {
    collection::get::<Queues>(app, asker, "".into(), &name, &query).await
}
