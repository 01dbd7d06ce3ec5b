//! Singleton resources, named `live`: the graph, the timeline, the audit. A list of them has one item.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use fluxion_api::meta::List;
use fluxion_api::{API_VERSION, FluxionAudit, FluxionGraph, FluxionTimeline, ObjectMeta};
use serde::Serialize;
use serde_json::{Value, json};

use super::accept::{Form, Include};
use super::answer::{self, Moment};
use super::app::App;
use super::auth::Asker;
use super::columns::Column;
use super::path::Names;
use super::query::{GetQuery, ListQuery, Query};
use super::refusal::Refusal;
use crate::engine::Published;
use crate::view::{LIVE, Visible, audit, graph, timeline};

/// If accepted by the client, the graph is returned as plain JGF, without an enclosing object.
const JGF: &str = "application/vnd.flux.jgf+json";

/// A kind of which there is one object.
trait Document: Serialize {
    const KIND: &'static str;
    const COLUMNS: &'static [Column];

    fn metadata(&mut self) -> &mut ObjectMeta;

    /// What stands in its row of the table behind the name.
    fn cells(&self) -> Vec<Value>;
}

impl Document for FluxionGraph {
    const KIND: &'static str = "FluxionGraph";
    const COLUMNS: &'static [Column] = &[
        Column::name("Always live."),
        Column::number("Nodes", "Nodes of the cluster."),
        Column::number("Levels", "Levels above the nodes, including the cluster."),
    ];

    fn metadata(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    fn cells(&self) -> Vec<Value> {
        let summary = &self.status.summary;
        let nodes = summary.last().map_or(0, |level| level.vertices);
        vec![json!(nodes), json!(summary.len().saturating_sub(1))]
    }
}

impl Document for FluxionTimeline {
    const KIND: &'static str = "FluxionTimeline";
    const COLUMNS: &'static [Column] = &[
        Column::name("Always live."),
        Column::number("Allocations", "Jobs with allocated nodes."),
        Column::number("Reservations", "Jobs with a planned start."),
    ];

    fn metadata(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    fn cells(&self) -> Vec<Value> {
        let count = |kind: &str| self.spans.iter().filter(|span| span.kind == kind).count();
        vec![json!(count("allocation")), json!(count("reservation"))]
    }
}

impl Document for FluxionAudit {
    const KIND: &'static str = "FluxionAudit";
    const COLUMNS: &'static [Column] = &[
        Column::name("Always live."),
        Column::number("Findings", "Number of findings."),
        Column::text("First", "First finding."),
    ];

    fn metadata(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    fn cells(&self) -> Vec<Value> {
        let first = self.findings.first().map_or_else(
            || "-".to_owned(),
            |finding| fluxion_text::clean(&format!("{}: {}", finding.object, finding.text)).into_owned(),
        );
        vec![json!(self.findings.len()), json!(first)]
    }
}

/// `fluxiongraphs`.
pub(super) async fn graphs(
    state: State<App>,
    asker: Extension<Asker>,
    query: Query,
    list_query: ListQuery,
) -> Result<Response, Refusal> {
    let with_jgf = with_jgf(&query, list_query.accept.form(true)?, list_query.include)?;
    list(&state, asker.0, list_query, move |visible| {
        graph::graph(visible.state.inventory(), visible.state.now(), with_jgf)
    })
    .await
}

/// `fluxiongraphs/live`.
pub(super) async fn graph(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    Names(name): Names<String>,
    query: Query,
    get: GetQuery,
) -> Result<Response, Refusal> {
    let bare = get.accept.ranges().any(|range| range.names(JGF));
    if bare {
        let (published, moment) = live(&app, "fluxiongraphs", &name).await?;
        return answer::computed(move || {
            match graph::jgf(published.state.inventory(), published.state.now()) {
                Ok(jgf) => answer::text(jgf, &moment, JGF),
                Err(error) => {
                    tracing::error!(%error, "failed to serialize the graph");
                    Refusal::Internal.into_response()
                }
            }
        })
        .await;
    }
    let with_jgf = with_jgf(&query, get.accept.form(false)?, get.include)?;
    one(&app, asker, "fluxiongraphs", &name, get, move |visible| {
        graph::graph(visible.state.inventory(), visible.state.now(), with_jgf)
    })
    .await
}

/// Whether the whole graph is in the answer.
fn with_jgf(query: &Query, form: Form, include: Include) -> Result<bool, Refusal> {
    let summary_only = query.flag("summary")?;
    Ok(!summary_only
        && match form {
            Form::Object => true,
            Form::Table(_) => include == Include::Object,
            Form::Metadata(_) => false,
        })
}

/// `fluxiontimelines`.
pub(super) async fn timelines(
    state: State<App>,
    asker: Extension<Asker>,
    query: ListQuery,
) -> Result<Response, Refusal> {
    list(&state, asker.0, query, timeline::timeline).await
}

/// `fluxiontimelines/live`.
pub(super) async fn timeline(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    Names(name): Names<String>,
    get: GetQuery,
) -> Result<Response, Refusal> {
    one(&app, asker, "fluxiontimelines", &name, get, timeline::timeline).await
}

/// `fluxionaudits`.
pub(super) async fn audits(
    state: State<App>,
    asker: Extension<Asker>,
    query: ListQuery,
) -> Result<Response, Refusal> {
    let audit = audited(&state);
    list(&state, asker.0, query, audit).await
}

/// `fluxionaudits/live`.
pub(super) async fn audit(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    Names(name): Names<String>,
    get: GetQuery,
) -> Result<Response, Refusal> {
    let audit = audited(&app);
    one(&app, asker, "fluxionaudits", &name, get, audit).await
}

fn audited(app: &App) -> impl FnOnce(&Visible<'_>) -> FluxionAudit + Send + 'static {
    let (health, history) = (Arc::clone(&app.health), app.history.clone());
    move |visible| audit::audit(visible, &health.problems(), history.problem())
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

/// Answers the one document.
async fn one<T: Document>(
    app: &App,
    asker: Asker,
    resource: &'static str,
    name: &str,
    query: GetQuery,
    make: impl FnOnce(&Visible<'_>) -> T + Send + 'static,
) -> Result<Response, Refusal> {
    let form = query.accept.form(false)?;
    let (published, moment) = live(app, resource, name).await?;
    answer::computed(move || {
        let mut object = made(make, &Visible::of(&published, &asker.viewer), &moment);
        match form {
            Form::Object => answer::json(&object, &moment),
            Form::Metadata(api_version) => answer::json(&bare(&mut object, api_version), &moment),
            Form::Table(api_version) => {
                let metadata = json!({ "resourceVersion": moment.version.to_string() });
                answer::json(&table(object, api_version, query.include, metadata), &moment)
            }
        }
    })
    .await
}

/// Answers a list of the one document.
async fn list<T: Document>(
    app: &App,
    asker: Asker,
    query: ListQuery,
    make: impl FnOnce(&Visible<'_>) -> T + Send + 'static,
) -> Result<Response, Refusal> {
    let form = query.accept.form(true)?;
    if query.watch {
        return Err(Refusal::MethodNotAllowed(
            "GET",
            format!("{} does not support watch: poll it, or watch fluxionjobs and fluxionnodes", T::KIND),
        ));
    }
    let (published, moment) = now(app).await?;
    answer::computed(move || {
        let mut object = made(make, &Visible::of(&published, &asker.viewer), &moment);
        let metadata = moment.list_meta();
        match form {
            Form::Object => answer::json(&of_one(API_VERSION, T::KIND, metadata, object), &moment),
            Form::Metadata(api_version) => {
                let bare = bare(&mut object, api_version);
                answer::json(&of_one(api_version, "PartialObjectMetadata", metadata, bare), &moment)
            }
            Form::Table(api_version) => {
                answer::json(&table(object, api_version, query.include, json!(metadata)), &moment)
            }
        }
    })
    .await
}

fn made<T: Document>(make: impl FnOnce(&Visible<'_>) -> T, visible: &Visible<'_>, moment: &Moment) -> T {
    let mut object = make(visible);
    object.metadata().resource_version = moment.version.to_string();
    object
}

fn of_one<T>(api_version: &str, kind: &str, metadata: fluxion_api::ListMeta, item: T) -> List<T> {
    List { api_version: api_version.to_owned(), kind: format!("{kind}List"), metadata, items: vec![item] }
}

fn bare<T: Document>(object: &mut T, api_version: &str) -> Value {
    json!({ "kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": object.metadata() })
}

fn table<T: Document>(mut object: T, api_version: &str, include: Include, metadata: Value) -> Value {
    let cells: Vec<Value> = std::iter::once(json!(LIVE)).chain(object.cells()).collect();
    let mut row = json!({ "cells": cells });
    match include {
        Include::Nothing => {}
        Include::Metadata => row["object"] = bare(&mut object, api_version),
        Include::Object => row["object"] = json!(object),
    }
    json!({
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": metadata,
        "columnDefinitions": T::COLUMNS,
        "rows": [row],
    })
}
