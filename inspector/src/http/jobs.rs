//! `fluxionjobs`: lists, watches, single jobs.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;

use super::app::App;
use super::auth::Asker;
use super::collection;
use super::path::Names;
use super::query::{GetQuery, ListQuery};
use super::refusal::Refusal;
use super::resource::jobs::Jobs;

/// All namespaces.
pub(super) async fn list_all(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    query: ListQuery,
) -> Result<Response, Refusal> {
    collection::list::<Jobs>(app, asker, None, query).await
}

/// One namespace.
pub(super) async fn list(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    Names(namespace): Names<String>,
    query: ListQuery,
) -> Result<Response, Refusal> {
    collection::list::<Jobs>(app, asker, Some(namespace.into()), query).await
}

/// One job.
pub(super) async fn get(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    Names((namespace, name)): Names<(String, String)>,
    query: GetQuery,
) -> Result<Response, Refusal> {
    collection::get::<Jobs>(app, asker, namespace.into(), &name, &query).await
}
