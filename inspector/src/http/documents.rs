//! Singleton resources, named `live`: the graph, the timeline, the audit. A list of them has one item.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use fluxion_api::API_VERSION;
use fluxion_api::meta::List;
use serde::Serialize;

use super::answer::{self, Moment};
use super::app::App;
use super::auth::Asker;
use super::path::Names;
use super::query::Query;
use super::refusal::Refusal;
use crate::engine::Published;
use crate::view::{LIVE, Viewer, Visible, audit, graph, timeline};

/// If accepted by the client, the graph is returned as plain JGF, without an enclosing object.
const JGF: &str = "application/vnd.flux.jgf+json";

/// `fluxiongraphs`.
pub(super) async fn graphs(
    state: State<App>,
    asker: Extension<Asker>,
    query: Query,
) -> Result<Response, Refusal> {
    let summary_only = query.flag("summary")?;
    list(&state, asker.0, &query, "FluxionGraph", move |visible| {
        graph::graph(visible.state.inventory(), visible.state.now(), !summary_only)
    })
    .await
}

/// `fluxiongraphs/live`.
pub(super) async fn graph(
    State(app): State<App>,
    Names(name): Names<String>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let (published, moment) = live(&app, "fluxiongraphs", &name).await?;
    let summary_only = query.flag("summary")?;
    let bare = headers
        .get_all(header::ACCEPT)
        .iter()
        .any(|accept| accept.to_str().is_ok_and(|text| text.split(',').any(|one| media_type(one) == JGF)));
    answer::computed(move || {
        let (inventory, now) = (published.state.inventory(), published.state.now());
        if bare {
            return match graph::jgf(inventory, now) {
                Ok(jgf) => answer::text(jgf, &moment, JGF),
                Err(error) => {
                    tracing::error!(%error, "failed to serialize the graph");
                    Refusal::Internal.into_response()
                }
            };
        }
        let mut object = graph::graph(inventory, now, !summary_only);
        object.metadata.resource_version = moment.version.to_string();
        answer::json(&object, &moment)
    })
    .await
}

/// `fluxiontimelines`.
pub(super) async fn timelines(
    state: State<App>,
    asker: Extension<Asker>,
    query: Query,
) -> Result<Response, Refusal> {
    list(&state, asker.0, &query, "FluxionTimeline", timeline::timeline).await
}

/// `fluxiontimelines/live`.
pub(super) async fn timeline(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    Names(name): Names<String>,
) -> Result<Response, Refusal> {
    let (published, moment) = live(&app, "fluxiontimelines", &name).await?;
    answer::computed(move || {
        let mut object = timeline::timeline(&Visible::of(&published, &asker.viewer));
        object.metadata.resource_version = moment.version.to_string();
        answer::json(&object, &moment)
    })
    .await
}

/// `fluxionaudits`.
pub(super) async fn audits(
    state: State<App>,
    asker: Extension<Asker>,
    query: Query,
) -> Result<Response, Refusal> {
    let (health, history) = (Arc::clone(&state.health), state.history.clone());
    let findings = move |visible: &Visible<'_>| audit::audit(visible, &health.problems(), history.problem());
    list(&state, asker.0, &query, "FluxionAudit", findings).await
}

/// `fluxionaudits/live`.
pub(super) async fn audit(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    Names(name): Names<String>,
) -> Result<Response, Refusal> {
    let (published, moment) = live(&app, "fluxionaudits", &name).await?;
    answer::computed(move || {
        let visible = Visible::of(&published, &asker.viewer);
        let mut object = audit::audit(&visible, &app.health.problems(), app.history.problem());
        object.metadata.resource_version = moment.version.to_string();
        answer::json(&object, &moment)
    })
    .await
}

fn media_type(text: &str) -> &str {
    text.split(';').next().unwrap_or_default().trim()
}

async fn live(app: &App, resource: &'static str, name: &str) -> Result<(Arc<Published>, Moment), Refusal> {
    if name != LIVE {
        return Err(Refusal::NotFound(resource, name.to_owned()));
    }
    now(app).await
}

async fn now(app: &App) -> Result<(Arc<Published>, Moment), Refusal> {
    let newest = app.ready()?;
    let served = app.index.at(Arc::clone(&newest)).await?;
    let moment = Moment { version: served.version, ..app.moment(&newest) };
    Ok((Arc::clone(&served.published), moment))
}

async fn list<T: Serialize + Send + 'static>(
    app: &App,
    asker: Asker,
    query: &Query,
    kind: &'static str,
    make: impl FnOnce(&Visible<'_>) -> T + Send + 'static,
) -> Result<Response, Refusal> {
    if query.flag("watch")? {
        return Err(Refusal::MethodNotAllowed(
            "GET",
            format!("{kind} does not support watch: poll it, or watch fluxionjobs and fluxionnodes"),
        ));
    }
    let (published, moment) = now(app).await?;
    let viewer: Viewer = asker.viewer;
    answer::computed(move || {
        let items = vec![make(&Visible::of(&published, &viewer))];
        let list = List {
            api_version: API_VERSION.to_owned(),
            kind: format!("{kind}List"),
            metadata: moment.list_meta(),
            items,
        };
        answer::json(&list, &moment)
    })
    .await
}
