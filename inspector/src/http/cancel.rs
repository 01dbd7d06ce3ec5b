//! `fluxionjobs/cancel`: what a cancel would delete, and, where that is this server's business, the cancel
//! itself.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::Response;
use fluxion_api::{CancelAnswer, CancelOutcome};
use fluxion_core::event::Event;
use fluxion_core::state::{Job, JobId, JobState};
use serde_json::{Map, Value};

use super::answer;
use super::auth::Asker;
use super::path::Names;
use super::query::Query;
use super::refusal::Refusal;
use super::resource::Resource;
use super::{App, jobs::Jobs};
use crate::engine::Published;
use crate::view::cancel;

/// How long it is waited for the engine to have taken a cancel before that is answered.
const SEEN_WITHIN: Duration = Duration::from_secs(5);

/// Cancels, or says what that would do (`dryRun=All`).
pub(super) async fn post(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    Names((namespace, name)): Names<(String, String)>,
    query: Query,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let also_delete = also_delete(&body.map_err(|_| Refusal::TooLarge)?)? || query.flag("alsoDelete")?;
    app.ready()?;
    if !asker.viewer.sees(&namespace) {
        return Err(Refusal::NotFound(Jobs::PLURAL, name));
    }
    if query.dry_run()? {
        let published = fresh(&app).await?;
        let job = published.state.job_named(&namespace, &name);
        let job = job.ok_or(Refusal::NotFound(Jobs::PLURAL, name))?;
        let (answer, _) = consider(&published, job);
        return Ok(answer::json(&answer, &app.moment(&published)));
    }
    let _one_at_a_time = app.cancelling.lock().await;
    let published = fresh(&app).await?;
    let job = published.state.job_named(&namespace, &name);
    let job = job.ok_or_else(|| Refusal::NotFound(Jobs::PLURAL, name.clone()))?;
    let (mut answer, open) = consider(&published, job);
    if open {
        if !answer.also_deletes.is_empty() && !also_delete {
            return Err(Refusal::Conflict(format!(
                "cancelling {name} would also delete {}, which belong to other jobs; to do it all the same say \
                 alsoDelete=true",
                answer.also_deletes.join(", ")
            )));
        }
        if !app.settings.cancels {
            return Err(Refusal::Forbidden(do_it_yourself(&namespace, &name, &answer)));
        }
        app.engine.send(Event::Cancelled { job: job.key.uid.clone(), by: Arc::clone(&asker.name) });
        tracing::info!(job = answer.metadata.name, namespace, by = %asker.name, "cancelled");
        until_seen(&app, job.id).await?;
        answer = cancel::answer(
            &published.state,
            job,
            &published.state.cancel_plan(job),
            CancelOutcome::Cancelled,
        );
    }
    Ok(answer::json(&answer, &app.moment(&published)))
}

/// Whether the body asks to go on though Pods of other jobs go as well (`alsoDelete`). Any JSON object will do,
/// and none.
fn also_delete(body: &[u8]) -> Result<bool, Refusal> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(false);
    }
    let wish: Map<String, Value> = serde_json::from_slice(body).map_err(|error| {
        Refusal::BadRequest(format!("the body must be a JSON object, e.g. {{}}: {error}"))
    })?;
    match wish.get("alsoDelete") {
        None => Ok(false),
        Some(Value::Bool(also)) => Ok(*also),
        Some(_) => Err(Refusal::BadRequest("alsoDelete: must be true or false".to_owned())),
    }
}

/// A snapshot that knows all that was sent before.
async fn fresh(app: &App) -> Result<Arc<Published>, Refusal> {
    app.engine.fresh().await.map_err(|_| Refusal::Unavailable("the inspector is shutting down"))
}

/// What a cancel finds, and whether there is still something to cancel.
fn consider(published: &Published, job: &Job) -> (CancelAnswer, bool) {
    let plan = published.state.cancel_plan(job);
    let outcome = if job.state.ended() {
        CancelOutcome::AlreadyEnded
    } else if plan.ending || job.cancelled_by.is_some() || job.state == JobState::Releasing {
        CancelOutcome::AlreadyEnding
    } else {
        CancelOutcome::DryRun
    };
    (cancel::answer(&published.state, job, &plan, outcome), outcome == CancelOutcome::DryRun)
}

/// Waits until the engine shows that the job is to end, so that whoever asks next sees it too.
async fn until_seen(app: &App, id: JobId) -> Result<(), Refusal> {
    let mut changes = app.engine.changed();
    let seen = async {
        loop {
            let published = fresh(app).await?;
            let open = published.state.job(id).is_some_and(|job| consider(&published, job).1);
            if !open || changes.changed().await.is_err() {
                return Ok(());
            }
        }
    };
    // It was taken and will be carried out; the answer need not wait for ever.
    tokio::time::timeout(SEEN_WITHIN, seen).await.unwrap_or(Ok(()))
}

fn do_it_yourself(namespace: &str, name: &str, answer: &CancelAnswer) -> String {
    let commands: Vec<String> = answer.targets.iter().map(cancel::command).collect();
    format!(
        "this server does not delete objects for others: run `kubectl fluxion cancel -n {namespace} {name}`, which \
         does it as you, or: {}",
        commands.join("; ")
    )
}
