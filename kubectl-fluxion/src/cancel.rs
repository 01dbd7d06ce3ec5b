//! Cancelling jobs: preview and execution.
//!
//! In a cluster, the plugin deletes the objects with the user's own credentials, so that the cluster's RBAC rules
//! and audit log apply. A standalone inspector deletes them itself.

use std::sync::Arc;

use fluxion_api::client::{Cancel, Client, Error};
use fluxion_api::{CancelAnswer, CancelOutcome, CancelTarget, Exit, FluxionJob, Role};
use kube::api::{Api, DeleteParams, DynamicObject, Preconditions, PropagationPolicy};
use kube::core::{ApiResource, GroupVersionKind};
use tokio::sync::OnceCell;

use crate::cli::Connection;
use crate::connect::{ThroughCluster, cluster};
use crate::failure::Failure;

/// Outcome for one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Cancelled,
    AlreadyEnding,
    AlreadyEnded,
    /// Nothing was changed.
    DryRun,
    NotFound(String),
    Forbidden(String),
    Refused(String),
    Failed(Exit, String),
}

impl Outcome {
    /// Exit code for this job.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Cancelled | Self::AlreadyEnding | Self::AlreadyEnded | Self::DryRun => Exit::Done,
            Self::NotFound(_) => Exit::NotFound,
            Self::Forbidden(_) => Exit::Forbidden,
            Self::Refused(_) => Exit::Refused,
            Self::Failed(exit, _) => *exit,
        }
    }

    /// One-line description, without the name of the job.
    pub fn text(&self) -> String {
        match self {
            Self::Cancelled => "cancelled".to_owned(),
            Self::AlreadyEnding => "already terminating".to_owned(),
            Self::AlreadyEnded => "already finished".to_owned(),
            Self::DryRun => "would be cancelled (dry run)".to_owned(),
            Self::NotFound(why) => format!("not found: {why}"),
            Self::Forbidden(why) => format!("forbidden: {why}"),
            Self::Refused(why) => format!("refused: {why}"),
            Self::Failed(_, why) => format!("failed: {why}"),
        }
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        let why = failure.message.unwrap_or_default();
        match failure.exit {
            Exit::NotFound => Self::NotFound(why),
            Exit::Forbidden => Self::Forbidden(why),
            Exit::Refused => Self::Refused(why),
            exit => Self::Failed(exit, why),
        }
    }
}

impl From<Error> for Outcome {
    fn from(error: Error) -> Self {
        Failure::from(error).into()
    }
}

/// Deletes objects in the cluster with the user's credentials. The kubeconfig is read before the first
/// deletion.
#[derive(Clone)]
pub struct Deleter {
    flags: Arc<Connection>,
    cluster: Arc<OnceCell<ThroughCluster>>,
}

impl Deleter {
    /// Uses the kubeconfig specified by the flags, or the default one.
    pub fn new(flags: &Connection) -> Self {
        Self { flags: Arc::new(flags.clone()), cluster: Arc::default() }
    }

    async fn delete(&self, target: &CancelTarget) -> Result<(), Outcome> {
        let cluster =
            self.cluster.get_or_try_init(|| async { cluster(&self.flags).await.map(|(it, _)| it) }).await?;
        let kube = cluster.kube();
        let (group, version) = target.api_version.split_once('/').unwrap_or(("", &target.api_version));
        let kind = GroupVersionKind::gvk(group, version, &target.kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, &target.resource);
        let api: Api<DynamicObject> = if target.namespace.is_empty() {
            Api::all_with(kube, &resource)
        } else {
            Api::namespaced_with(kube, &target.namespace, &resource)
        };
        let how = DeleteParams {
            propagation_policy: Some(match target.propagation_policy.as_str() {
                "Foreground" => PropagationPolicy::Foreground,
                "Orphan" => PropagationPolicy::Orphan,
                _ => PropagationPolicy::Background,
            }),
            preconditions: (!target.uid.is_empty())
                .then(|| Preconditions { uid: Some(target.uid.clone()), resource_version: None }),
            ..DeleteParams::default()
        };
        let limit = self.flags.limit();
        match tokio::time::timeout(limit, api.delete(&target.name, &how)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(kube::Error::Api(status))) => Err(match status.code {
                404 => Outcome::AlreadyEnding,
                // The object of that name is another one by now: ours is gone.
                409 if status.message.contains("Precondition") || status.message.contains("UID") => {
                    Outcome::AlreadyEnded
                }
                401 | 403 => Outcome::Forbidden(status.message.clone()),
                409 | 422 => Outcome::Refused(status.message.clone()),
                _ => Outcome::Failed(Exit::Other, status.message.clone()),
            }),
            Ok(Err(error)) => Err(cluster.failed(&error).into()),
            Err(_) => Err(Outcome::Failed(
                Exit::TimedOut,
                format!(
                    "timed out after {}s while deleting {}; it may have been deleted anyway",
                    limit.as_secs_f64(),
                    name(target)
                ),
            )),
        }
    }
}

/// Name of a target in kubectl notation.
pub fn name(target: &CancelTarget) -> String {
    let group = target.api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = target.kind.to_lowercase();
    if group.is_empty() {
        format!("{kind}/{}", target.name)
    } else {
        format!("{kind}.{group}/{}", target.name)
    }
}

/// Gets a preview of cancelling the job; `Err` if there is nothing to do or the request is refused.
pub async fn plan(client: &Client, job: &FluxionJob, with_others: bool) -> Result<CancelAnswer, Outcome> {
    let answer = client.cancel(job, Cancel::DryRun).await?;
    match answer.outcome {
        CancelOutcome::AlreadyEnding => Err(Outcome::AlreadyEnding),
        CancelOutcome::AlreadyEnded => Err(Outcome::AlreadyEnded),
        CancelOutcome::Cancelled | CancelOutcome::DryRun
            if !answer.also_deletes.is_empty() && !with_others =>
        {
            Err(Outcome::Refused(format!(
                "this would also delete Pods of other jobs ({}); pass --with-others to proceed",
                some(&answer.also_deletes)
            )))
        }
        CancelOutcome::Cancelled | CancelOutcome::DryRun => Ok(answer),
    }
}

/// Carries out a plan. If `standalone`, the server deletes the objects itself.
pub async fn carry_out(
    client: &Client,
    deleter: &Deleter,
    standalone: bool,
    job: &FluxionJob,
    plan: &CancelAnswer,
) -> Outcome {
    if standalone {
        // Others' Pods go only where the user has said so, which `plan` has seen to.
        let how = if plan.also_deletes.is_empty() { Cancel::Job } else { Cancel::WithOthers };
        return match client.cancel(job, how).await {
            Ok(answer) => match answer.outcome {
                CancelOutcome::Cancelled => Outcome::Cancelled,
                CancelOutcome::AlreadyEnding => Outcome::AlreadyEnding,
                CancelOutcome::AlreadyEnded => Outcome::AlreadyEnded,
                CancelOutcome::DryRun => Outcome::Refused(answer.message),
            },
            Err(error) => error.into(),
        };
    }
    if plan.targets.is_empty() {
        return Outcome::Refused(if plan.message.is_empty() {
            "the inspector returned no objects to delete".to_owned()
        } else {
            plan.message.clone()
        });
    }
    let mut gone_now = 0;
    let mut gone = Outcome::AlreadyEnding;
    for target in &plan.targets {
        match deleter.delete(target).await {
            Ok(()) => gone_now += 1,
            Err(outcome @ (Outcome::AlreadyEnding | Outcome::AlreadyEnded)) => gone = outcome,
            Err(outcome) if gone_now == 0 => return outcome,
            Err(outcome) => {
                return Outcome::Failed(
                    Exit::Partly,
                    format!("{gone_now} of {} objects deleted; {}", plan.targets.len(), outcome.text()),
                );
            }
        }
    }
    if gone_now > 0 { Outcome::Cancelled } else { gone }
}

/// Whether the server is standalone and deletes objects itself.
pub async fn is_standalone(client: &Client, namespace: &str) -> Result<bool, Error> {
    Ok(client.list_head::<FluxionJob>(namespace).await?.role == Role::Standalone)
}

fn some(names: &[String]) -> String {
    let shown = names.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > 5 { format!("{shown} and {} more", names.len() - 5) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_written_as_kubectl_takes_them() {
        let job = CancelTarget {
            api_version: "batch/v1".into(),
            kind: "Job".into(),
            name: "a".into(),
            ..CancelTarget::default()
        };
        let pod = CancelTarget {
            api_version: "v1".into(),
            kind: "Pod".into(),
            name: "b".into(),
            ..CancelTarget::default()
        };
        assert_eq!((name(&job).as_str(), name(&pod).as_str()), ("job.batch/a", "pod/b"));
    }

    #[test]
    fn outcomes_have_their_exit_codes() {
        for (outcome, exit) in [
            (Outcome::Cancelled, Exit::Done),
            (Outcome::AlreadyEnded, Exit::Done),
            (Outcome::NotFound(String::new()), Exit::NotFound),
            (Outcome::Forbidden(String::new()), Exit::Forbidden),
            (Outcome::Refused(String::new()), Exit::Refused),
            (Failure::new(Exit::TimedOut, "x").into(), Exit::TimedOut),
        ] {
            assert_eq!(outcome.exit(), exit);
        }
    }
}
