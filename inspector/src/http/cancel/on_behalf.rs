//! Cancelling for a user: the server deletes what the API server says that user may delete.

use std::sync::Arc;
use std::time::Instant;

use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::{ObjectRef, SharedStr};
use fluxion_scheduler::state::{CancelPlan, Job};
use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::super::app::App;
use super::super::auth::Asker;
use super::super::refusal::Refusal;
use super::super::standing::Standing;
use crate::access::attributes::Attributes;
use crate::deletion::{Deletion, DeletionError};
use crate::engine::{Published, Role};
use crate::plural::plural;

/// Maximum number of objects deleted for one request.
const TARGETS_MAX: usize = 1000;
/// Reviews, or deletions, of one request at once.
const AT_ONCE: usize = 16;

/// A cancellation whose user may delete each of the objects.
struct Cancellation {
    /// UID of the job.
    uid: SharedStr,
    /// Its ID in logs.
    job: String,
    by: SharedStr,
    targets: Vec<ObjectRef>,
    /// What users can do themselves.
    how: String,
}

/// Deletes the objects of a job, after a review for each of them. It is carried through even if the client goes away.
pub(super) async fn cancel(
    app: &App,
    deletion: &Arc<dyn Deletion>,
    asker: &Asker,
    published: &Published,
    job: &Job,
    plan: &CancelPlan,
    how: String,
) -> Result<(), Refusal> {
    // The holder of the token in server.json is no user of the cluster.
    let Some(standing) = &asker.standing else { return Err(Refusal::Forbidden(how)) };
    if published.role != Role::Leader {
        return Err(Refusal::Unavailable("this inspector is not the leader"));
    }
    if plan.targets.is_empty() {
        return Err(Refusal::Conflict(format!("{} has no objects to delete", job.full_name())));
    }
    if plan.targets.len() > TARGETS_MAX {
        return Err(Refusal::Forbidden(how));
    }
    may_all(plan.targets.iter().map(wanted).collect(), standing).await?;
    let cancellation = Cancellation {
        uid: job.key.uid.clone(),
        job: job.full_name(),
        by: Arc::clone(&asker.name),
        targets: plan.targets.clone(),
        how,
    };
    let carried_out = tokio::spawn(cancellation.carry_out(app.clone(), Arc::clone(deletion)));
    carried_out.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a cancellation stopped with an error");
        Err(Refusal::Internal)
    })
}

/// What the user has to be allowed to do.
fn wanted(target: &ObjectRef) -> Attributes {
    Attributes::delete(&target.api_version, &plural(&target.kind), &target.namespace, &target.name)
}

/// Fails unless the user may do all of this.
async fn may_all(all: Vec<Attributes>, standing: &Standing) -> Result<(), Refusal> {
    let reviews =
        all.into_iter().map(|wanted| async move { standing.access.authorise(&standing.user, &wanted).await });
    Ok(stream::iter(reviews).buffer_unordered(AT_ONCE).try_collect::<()>().await?)
}

impl Cancellation {
    async fn carry_out(self, app: App, deletion: Arc<dyn Deletion>) -> Result<(), Refusal> {
        let Self { uid, job, by, targets, how } = self;
        app.engine.send(Event::CancelStarted { job: uid.clone(), by: by.clone() });
        // Who it was has to be known before the objects are gone.
        app.fresh().await?;
        let deletions = targets.into_iter().map(|target| {
            let deletion = Arc::clone(&deletion);
            async move {
                let done = deletion.delete(&target).await;
                (target, done)
            }
        });
        let done: Vec<_> = stream::iter(deletions).buffered(AT_ONCE).collect().await;
        let mut failed = done.iter().filter_map(|(target, done)| Some((target, done.as_ref().err()?)));
        let Some((target, error)) = failed.next() else {
            app.deleted.put(uid, (), Instant::now());
            return Ok(());
        };
        let failures = 1 + failed.count();
        if failures == done.len() {
            app.engine.send(Event::CancelFailed { job: uid, by: by.clone() });
        }
        let object = format!("{}/{}", target.kind.to_lowercase(), target.name);
        tracing::warn!(job, %by, object, %error, failures, of = done.len(), "failed to cancel a job");
        Err(match error {
            DeletionError::Unavailable(_) => {
                Refusal::Unavailable("the API server has not deleted all objects of the job")
            }
            DeletionError::Refused(why) => {
                Refusal::Forbidden(format!("the inspector failed to delete {object}: {why}; {how}"))
            }
        })
    }
}
