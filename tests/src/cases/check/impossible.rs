//! Checks that no scheduler could pass, by what the API server itself says.

use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;

use super::super::model::Check;
use super::World;

/// Why the check can't hold; `None` when the API server knows nothing against it.
pub(in super::super) async fn why(world: &World<'_>, check: &Check) -> Result<Option<String>> {
    let Some(name) = check.job.as_deref().and_then(|job| job.strip_prefix("job/")) else { return Ok(None) };
    if world.cluster.is_none() || check.state.is_none() {
        return Ok(None);
    }
    let jobs: Api<Job> = Api::namespaced(world.client()?.clone(), check.namespace());
    Ok(jobs.get_opt(name).await?.as_ref().and_then(failed_before_its_deadline))
}

/// The Job's own controller has ended it for a deadline that is not over, before it had made a Pod.
fn failed_before_its_deadline(job: &Job) -> Option<String> {
    let status = job.status.as_ref()?;
    let ended = status.conditions.as_ref()?.iter().find(|one| {
        one.type_ == "Failed" && one.status == "True" && one.reason.as_deref() == Some("DeadlineExceeded")
    })?;
    let limit = job.spec.as_ref()?.active_deadline_seconds?;
    let began = status.start_time.as_ref()?.0.as_second();
    let at = ended.last_transition_time.as_ref()?.0.as_second();
    let pods = status.failed.unwrap_or(0) + status.succeeded.unwrap_or(0) + status.active.unwrap_or(0);
    (at - began < limit && pods == 0).then(|| {
        format!(
            "the Job's controller failed it {} s after its start, before it had a Pod, for a deadline of {limit} s",
            at - began
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(limit: i64, ended: &str, status: Value) -> Job {
        let mut job = json!({
            "spec": { "activeDeadlineSeconds": limit, "template": {} },
            "status": {
                "startTime": "2030-01-01T00:00:00Z",
                "conditions": [{
                    "type": "Failed", "status": "True", "reason": "DeadlineExceeded", "lastTransitionTime": ended
                }],
            },
        });
        for (key, value) in status.as_object().unwrap() {
            job["status"][key] = value.clone();
        }
        serde_json::from_value(job).unwrap()
    }

    #[test]
    fn a_job_that_its_controller_ends_at_once_cannot_run() {
        let why = failed_before_its_deadline(&job(i64::MAX, "2030-01-01T00:00:00Z", json!({})));
        assert!(why.unwrap().contains("0 s after its start"));
    }

    #[test]
    fn a_job_that_had_its_time_or_pods_is_no_excuse() {
        assert_eq!(failed_before_its_deadline(&job(5, "2030-01-01T00:00:05Z", json!({}))), None);
        assert_eq!(
            failed_before_its_deadline(&job(60, "2030-01-01T00:00:05Z", json!({ "failed": 1 }))),
            None
        );
        assert_eq!(failed_before_its_deadline(&Job::default()), None);
    }
}
