//! `fluxionjobs/cancel`: what a cancellation would delete, and the cancellation itself where the server carries it out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::{IntoResponse, Response};
use fluxion_api::{CancelAnswer, CancelOutcome};
use fluxion_scheduler::event::Event;
use fluxion_scheduler::state::{CancelPlan, Job, JobId, JobState};
use serde_json::{Map, Value};

use super::accept::Accept;
use super::answer;
use super::app::{App, Cancels};
use super::auth::Asker;
use super::path::Names;
use super::query::Query;
use super::refusal::Refusal;
use super::resource::Resource;
use super::resource::jobs::Jobs;
use crate::view::{Visible, cancel};

mod on_behalf;

/// Maximum time to wait for the engine to process a cancellation before responding.
const SEEN_WITHIN: Duration = Duration::from_secs(5);

/// Cancels a job, or reports what that would delete (`dryRun=All`).
pub(super) async fn post(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    Names((namespace, name)): Names<(String, String)>,
    query: Query,
    accept: Accept,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    accept.json()?;
    let wanted = CancelRequest::read(&body.map_err(|_| Refusal::TooLarge)?)?;
    let also_delete = wanted.also_delete || query.flag("alsoDelete")?;
    app.ready()?;
    if !asker.viewer.sees(&namespace) {
        return Err(Refusal::NotFound(Jobs::PLURAL, name));
    }
    if query.dry_run()? {
        let published = app.fresh().await?;
        let moment = app.moment(&published);
        // Determining which jobs would start next requires a pass.
        return answer::computed(move || {
            let Some(job) = published.state.job_named(&namespace, &name) else {
                return Refusal::NotFound(Jobs::PLURAL, name).into_response();
            };
            if let Err(refusal) = wanted.is_meant(job, &name) {
                return refusal.into_response();
            }
            let plan = published.state.cancel_plan(job);
            let visible = Visible::of(&published, &asker.viewer);
            let answer = cancel::answer(&visible, job, &plan, outcome(&app, job, &plan));
            answer::json(&answer, &moment)
        })
        .await;
    }
    let one_at_a_time = app.cancelling.lock().await;
    let published = app.fresh().await?;
    let job = published.state.job_named(&namespace, &name);
    let job = job.ok_or_else(|| Refusal::NotFound(Jobs::PLURAL, name.clone()))?;
    wanted.is_meant(job, &name)?;
    let plan = published.state.cancel_plan(job);
    let found = outcome(&app, job, &plan);
    let open = found == CancelOutcome::DryRun;
    let done = if open { CancelOutcome::Cancelled } else { found };
    let answer = cancel::answer(&Visible::of(&published, &asker.viewer), job, &plan, done);
    if open {
        if !answer.also_deletes.is_empty() && !also_delete {
            return Err(Refusal::Conflict(format!(
                "cancelling {name} would also delete {}, which belong to other jobs; set alsoDelete=true to proceed",
                answer.also_deletes.join(", ")
            )));
        }
        match &app.settings.cancels {
            Cancels::Engine => {
                app.engine.send(Event::Cancelled { job: job.key.uid.clone(), by: Arc::clone(&asker.name) });
            }
            Cancels::User => return Err(Refusal::Forbidden(do_it_yourself(&namespace, &name, &answer))),
            Cancels::Server(deletion) => {
                // Each of the objects tells whether it is being deleted, so that repeating this is harmless.
                drop(one_at_a_time);
                let how = do_it_yourself(&namespace, &name, &answer);
                on_behalf::cancel(&app, deletion, &asker, &published, job, &plan, how).await?;
            }
        }
        tracing::info!(job = job.full_name(), by = %asker.name, "cancelled");
        until_seen(&app, job.id).await?;
    }
    Ok(answer::json(&answer, &app.moment(&published)))
}

/// The request body. It may be any JSON object, or empty.
#[derive(Debug, Default, PartialEq)]
struct CancelRequest {
    /// Proceed even if Pods of other jobs are deleted as well.
    also_delete: bool,
    /// Cancels the job only if it has this UID (`preconditions.uid`, as in Kubernetes' `DeleteOptions`).
    uid: Option<String>,
}

impl CancelRequest {
    fn read(body: &[u8]) -> Result<Self, Refusal> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::default());
        }
        let wanted: Map<String, Value> = serde_json::from_slice(body).map_err(|error| {
            Refusal::BadRequest(format!("the request body must be a JSON object, e.g. {{}}: {error}"))
        })?;
        let also_delete = match wanted.get("alsoDelete") {
            None => false,
            Some(Value::Bool(also)) => *also,
            Some(_) => return Err(Refusal::BadRequest("alsoDelete: must be true or false".to_owned())),
        };
        let uid = match wanted
            .get("preconditions")
            .map(|conditions| (conditions.is_object(), conditions.get("uid")))
        {
            None | Some((true, None | Some(Value::Null))) => None,
            Some((true, Some(Value::String(uid)))) => Some(uid.clone()),
            Some((true, Some(_))) => {
                return Err(Refusal::BadRequest("preconditions.uid: must be a string".to_owned()));
            }
            Some((false, _)) => {
                return Err(Refusal::BadRequest("preconditions: must be an object".to_owned()));
            }
        };
        Ok(Self { also_delete, uid })
    }

    /// Rejects the request if the job of that name is a different one now.
    fn is_meant(&self, job: &Job, name: &str) -> Result<(), Refusal> {
        match &self.uid {
            Some(uid) if **uid != *job.key.uid => Err(Refusal::Conflict(format!(
                "Precondition failed: UID in precondition: {uid}, UID in job {name}: {}",
                job.key.uid
            ))),
            _ => Ok(()),
        }
    }
}

/// The outcome of a cancellation that changes nothing.
fn outcome(app: &App, job: &Job, plan: &CancelPlan) -> CancelOutcome {
    let asked = match app.settings.cancels {
        Cancels::Engine => job.cancelled_by.is_some(),
        // Whoever asked before may have failed, or stopped in between.
        Cancels::User | Cancels::Server(_) => app.deleted.get(&job.key.uid, Instant::now()).is_some(),
    };
    if job.state.ended() {
        CancelOutcome::AlreadyEnded
    } else if plan.ending || asked || job.state == JobState::Releasing {
        CancelOutcome::AlreadyEnding
    } else {
        CancelOutcome::DryRun
    }
}

/// Waits until the engine shows that the job is being cancelled, so that subsequent requests see it too.
async fn until_seen(app: &App, id: JobId) -> Result<(), Refusal> {
    let mut changes = app.engine.changed();
    let seen = async {
        loop {
            let published = app.fresh().await?;
            let state = &published.state;
            let open = state
                .job(id)
                .is_some_and(|job| outcome(app, job, &state.cancel_plan(job)) == CancelOutcome::DryRun);
            if !open || changes.changed().await.is_err() {
                return Ok(());
            }
        }
    };
    // It was accepted and will be carried out; don't wait forever to respond.
    tokio::time::timeout(SEEN_WITHIN, seen).await.unwrap_or(Ok(()))
}

fn do_it_yourself(namespace: &str, name: &str, answer: &CancelAnswer) -> String {
    /// A longer list helps nobody.
    const NAMED: usize = 20;
    let mut commands: Vec<String> = answer.targets.iter().take(NAMED).map(cancel::command).collect();
    if answer.targets.len() > NAMED {
        commands.push(format!("and {} more", answer.targets.len() - NAMED));
    }
    format!(
        "this server does not delete objects on behalf of users: run `kubectl fluxion cancel -n {namespace} {name}`, which uses your own permissions, or: {}",
        commands.join("; ")
    )
}
