//! The virtual kubelet: the next transition of a Pod bound to a node, and when it is due.
//!
//! A bound Pod runs immediately. It succeeds after its annotation `fluxion.flux-framework.org/run-time` (its own,
//! which may come from a template, else its controller's), else at the planned end of its allocation;
//! `activeDeadlineSeconds` ends it like a real kubelet would. Time is an argument; nothing here waits.

use fluxion_scheduler::duration::InvalidDuration;
use fluxion_scheduler::model::AllocationRecord;
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodStatus};

use super::metadata::{seconds, time};
use super::object::Object;
use crate::kube::translate::ALLOCATION;

/// How long a virtual Pod runs.
pub use fluxion_scheduler::marks::RUN_TIME;

/// A transition of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Start,
    Succeed,
    /// Terminated by its time limit.
    Expire,
    /// Removed: it was deleted and has stopped, or it finished long ago.
    Remove,
}

/// Whether the Pod is bound and has not finished: it holds its requests.
pub fn holds_a_node(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()) && !ended(pod)
}

/// Whether its phase is terminal.
pub fn ended(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// `status.phase`.
pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// When a condition was last written (epoch seconds).
fn condition_since(pod: &Pod, kind: &str) -> Option<i64> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    seconds(conditions.iter().find(|condition| condition.type_ == kind)?.last_transition_time.as_ref())
}

/// The next transition of the Pod, and when it is due (epoch seconds). `controller` is its owner, if it exists;
/// finished Pods without one are kept for `keep_ended` seconds.
pub fn next(pod: &Pod, controller: Option<&Object>, keep_ended: i64) -> Option<(i64, Step)> {
    if let Some(stopped) = seconds(pod.metadata.deletion_timestamp.as_ref()) {
        return Some((stopped, Step::Remove));
    }
    match phase(pod) {
        "Pending" if holds_a_node(pod) => {
            Some((condition_since(pod, "PodScheduled").unwrap_or(0), Step::Start))
        }
        "Running" => end(pod, controller),
        _ if ended(pod) && controller.is_none() => {
            let since =
                condition_since(pod, "Ready").or_else(|| seconds(pod.metadata.creation_timestamp.as_ref()));
            Some((since.unwrap_or(0).saturating_add(keep_ended), Step::Remove))
        }
        _ => None,
    }
}

fn end(pod: &Pod, controller: Option<&Object>) -> Option<(i64, Step)> {
    let start = seconds(pod.status.as_ref()?.start_time.as_ref())?;
    let limit = pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
    let expires = limit.map(|limit| start.saturating_add(limit));
    let done =
        run_time(pod, controller).map(|length| start.saturating_add(length)).or_else(|| planned_end(pod));
    match (done, expires) {
        (Some(done), Some(expires)) if expires < done => Some((expires, Step::Expire)),
        (Some(done), _) => Some((done, Step::Succeed)),
        (None, Some(expires)) => Some((expires, Step::Expire)),
        (None, None) => None,
    }
}

/// Run time in seconds; invalid durations were rejected before.
fn run_time(pod: &Pod, controller: Option<&Object>) -> Option<i64> {
    let own = pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(RUN_TIME));
    let text = own.map(String::as_str).or_else(|| controller?.annotation(RUN_TIME))?;
    span(text).ok()
}

/// The value of an annotation in seconds: a duration, or zero (`0`, `0s`).
pub fn span(text: &str) -> Result<i64, InvalidDuration> {
    match fluxion_scheduler::duration::parse(text) {
        Err(InvalidDuration::Zero(_)) => Ok(0),
        other => other,
    }
}

fn planned_end(pod: &Pod) -> Option<i64> {
    let text = pod.metadata.annotations.as_ref()?.get(ALLOCATION)?;
    serde_json::from_str::<AllocationRecord>(text).ok()?.planned_end
}

/// Applies a transition at a time (epoch seconds). The store handles [`Step::Remove`].
pub fn apply(step: Step, pod: &mut Pod, at: i64) {
    let status = pod.status.get_or_insert_with(PodStatus::default);
    match step {
        Step::Start => {
            status.phase = Some("Running".to_owned());
            status.start_time = time(at);
            set_condition(status, "Ready", true, None, at);
        }
        Step::Succeed => {
            status.phase = Some("Succeeded".to_owned());
            set_condition(status, "Ready", false, Some(("PodCompleted", "")), at);
        }
        Step::Expire => {
            let message = "Pod was active on the node longer than the specified deadline";
            status.phase = Some("Failed".to_owned());
            status.reason = Some("DeadlineExceeded".to_owned());
            status.message = Some(message.to_owned());
            set_condition(status, "Ready", false, Some(("PodFailed", message)), at);
        }
        Step::Remove => {}
    }
}

/// Sets a condition; its transition time only changes with its status.
pub fn set_condition(status: &mut PodStatus, kind: &str, yes: bool, why: Option<(&str, &str)>, at: i64) {
    let conditions = status.conditions.get_or_insert_default();
    let word = if yes { "True" } else { "False" };
    let index = conditions.iter().position(|condition| condition.type_ == kind).unwrap_or_else(|| {
        conditions.push(PodCondition { type_: kind.to_owned(), ..PodCondition::default() });
        conditions.len() - 1
    });
    let condition = &mut conditions[index];
    if condition.status != word {
        word.clone_into(&mut condition.status);
        condition.last_transition_time = time(at);
    }
    condition.reason = why.map(|(reason, _)| reason.to_owned());
    condition.message = why.map(|(_, message)| message.to_owned()).filter(|message| !message.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const NOW: i64 = 1_700_000_000;

    fn pod(annotations: Value, spec: Value) -> Pod {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": annotations},
            "spec": {"containers": [{"name": "c"}], "nodeName": "n1"}, "status": {"phase": "Pending"}});
        for (key, value) in spec.as_object().unwrap() {
            pod["spec"][key] = value.clone();
        }
        let mut pod: Pod = serde_json::from_value(pod).unwrap();
        set_condition(pod.status.as_mut().unwrap(), "PodScheduled", true, None, NOW);
        pod
    }

    fn running(annotations: Value, spec: Value) -> Pod {
        let mut pod = pod(annotations, spec);
        assert_eq!(next(&pod, None, 60), Some((NOW, Step::Start)));
        apply(Step::Start, &mut pod, NOW);
        pod
    }

    #[test]
    fn a_pod_runs_for_its_run_time_and_is_kept_for_a_while() {
        let mut pod = running(json!({RUN_TIME: "1m30s"}), json!({"activeDeadlineSeconds": 600}));
        assert_eq!(next(&pod, None, 60), Some((NOW + 90, Step::Succeed)));
        apply(Step::Succeed, &mut pod, NOW + 90);
        assert_eq!((phase(&pod), holds_a_node(&pod)), ("Succeeded", false));
        assert_eq!(next(&pod, None, 60), Some((NOW + 150, Step::Remove)));
    }

    #[test]
    fn a_limit_ends_it_and_a_plan_lets_it_succeed() {
        let limited = running(json!({RUN_TIME: "1h"}), json!({"activeDeadlineSeconds": 600}));
        assert_eq!(next(&limited, None, 60), Some((NOW + 600, Step::Expire)));
        let record = format!(r#"{{"job":"pod.p","start":{NOW},"plannedEnd":{},"size":1}}"#, NOW + 600);
        let planned = running(json!({ALLOCATION: record}), json!({"activeDeadlineSeconds": 600}));
        assert_eq!(next(&planned, None, 60), Some((NOW + 600, Step::Succeed)));
        let short = running(json!({RUN_TIME: "0s"}), json!({}));
        assert_eq!(next(&short, None, 60), Some((NOW, Step::Succeed)), "it ends at once");
    }

    #[test]
    fn a_deleted_pod_stops() {
        let mut pod = running(json!({}), json!({}));
        pod.metadata.deletion_timestamp = time(NOW + 5);
        assert_eq!(next(&pod, None, 60), Some((NOW + 5, Step::Remove)));
    }
}
