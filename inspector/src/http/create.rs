//! `POST …/fluxionjobs` in standalone mode: submits manifests.
//!
//! In a cluster, jobs are defined by existing Pods; there, the request is rejected with a message.

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use fluxion_api::Status;

use super::app::App;
use super::auth::Asker;
use super::guard;
use super::path::Names;
use super::query::Query;
use super::refusal::Refusal;
use crate::submit::{SubmitError, Taken};
use crate::view::text::time;

/// Submits every object in the body (YAML or JSON, several documents), up to the first one that is rejected.
pub(super) async fn post(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    Names(namespace): Names<String>,
    query: Query,
    uri: Uri,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let Some(submit) = &app.submit else { return Err(guard::method_not_allowed(Method::POST, uri).await) };
    if query.dry_run()? {
        return Err(Refusal::BadRequest("dryRun is not supported here: omit it".to_owned()));
    }
    let body = body.map_err(|_| Refusal::TooLarge)?;
    let text = String::from_utf8(body.into())
        .map_err(|_| Refusal::BadRequest("request body is not valid UTF-8".to_owned()))?;
    let message = said(&submit.submit(namespace.clone(), text).await.map_err(refusal)?);
    // So that the next request sees the new objects.
    app.engine.fresh().await.map_err(|_| Refusal::Unavailable("the inspector is shutting down"))?;
    tracing::info!(by = %asker.name, namespace, "{message}");
    let status = Status {
        api_version: "v1".to_owned(),
        kind: "Status".to_owned(),
        status: "Success".to_owned(),
        message,
        code: StatusCode::CREATED.as_u16(),
        ..Status::default()
    };
    Ok((StatusCode::CREATED, Json(status)).into_response())
}

/// The result for each object.
fn said(taken: &[Taken]) -> String {
    let one = |taken: &Taken| match taken {
        Taken::Created { called } => format!("{called} created"),
        Taken::Later { called, due } => format!("{called} will be submitted at {}", time(*due)),
        Taken::Known { called } => format!("{called} already exists"),
    };
    taken.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn refusal(error: SubmitError) -> Refusal {
    match error {
        SubmitError::Invalid(problem) => Refusal::BadRequest(problem),
        SubmitError::Conflict(problem) => Refusal::Conflict(problem),
        SubmitError::Partly { taken, problem } => {
            Refusal::Conflict(format!("{problem}; already processed: {}", said(&taken)))
        }
        SubmitError::Unread => Refusal::Unavailable("failed to read the request body"),
        SubmitError::Stopped => Refusal::Unavailable("the inspector is shutting down"),
    }
}
