//! `fluxionjobs/explain`: why a job is in its current state.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;

use super::accept::Accept;
use super::answer::{self, Moment};
use super::app::App;
use super::auth::Asker;
use super::collection::find;
use super::path::Names;
use super::refusal::Refusal;
use super::resource::Resource;
use super::resource::jobs::Jobs;
use crate::view::{Visible, explain};

/// Explains one job.
pub(super) async fn get(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    Names((namespace, name)): Names<(String, String)>,
    accept: Accept,
) -> Result<Response, Refusal> {
    accept.json()?;
    let newest = app.ready()?;
    let served = app.index.at(Arc::clone(&newest)).await?;
    let moment = Moment { version: served.version, ..app.moment(&newest) };
    let object = find::<Jobs>(&served, &asker.viewer, namespace.as_str().into(), &name)?;
    answer::computed(move || {
        let state = &served.published.state;
        let Some(job) = state.job_named(&namespace, &name) else {
            return axum::response::IntoResponse::into_response(Refusal::NotFound(Jobs::PLURAL, name));
        };
        let visible = Visible::new(state, &asker.viewer);
        let mut explanation = explain::explain(&visible, job, object);
        explanation.metadata.resource_version = moment.version.to_string();
        explanation.observed_at = crate::view::text::time(moment.observed_at);
        answer::json(&explanation, &moment)
    })
    .await
}
