//! `fluxionnodes`: lists, watches, single nodes.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;

use super::app::App;
use super::auth::Asker;
use super::collection;
use super::path::Names;
use super::query::{GetQuery, ListQuery};
use super::refusal::Refusal;
use super::resource::nodes::Nodes;

/// All nodes.
pub(super) async fn list(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    query: ListQuery,
) -> Result<Response, Refusal> {
    collection::list::<Nodes>(app, asker, None, query).await
}

/// One node.
pub(super) async fn get(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    Names(name): Names<String>,
    query: GetQuery,
) -> Result<Response, Refusal> {
    collection::get::<Nodes>(app, asker, "".into(), &name, &query).await
}
