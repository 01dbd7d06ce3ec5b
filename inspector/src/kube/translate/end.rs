//! How a Pod ended, according to its status.

use std::sync::Arc;

use fluxion_scheduler::model::{ContainerExit, Phase, PodEnd};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, PodStatus};

use super::seconds;

/// Maximum length of a Pod's status message, in characters.
const MESSAGE_MAX: usize = 200;

/// How the Pod ended; `None` if it has not.
pub(super) fn end(phase: Phase, status: Option<&PodStatus>) -> Option<Arc<PodEnd>> {
    let status = status.filter(|_| phase.ended())?;
    let lists = [&status.init_container_statuses, &status.container_statuses];
    let stopped: Vec<_> = lists.into_iter().flatten().flatten().filter_map(terminated).collect();
    let finished = |state: &ContainerStateTerminated| seconds(state.finished_at.as_ref());
    let failed = stopped
        .iter()
        .filter(|(_, state)| phase == Phase::Failed && state.exit_code != 0)
        .min_by_key(|(_, state)| finished(state).unwrap_or(i64::MAX));
    let at = stopped.iter().filter_map(|(_, state)| finished(state)).max();
    Some(Arc::new(PodEnd {
        at: at.or_else(|| not_ready_since(status)),
        container: failed.map(|(container, state)| ContainerExit {
            name: container.name.as_str().into(),
            code: state.exit_code,
            reason: state.reason.as_deref().filter(|reason| !reason.is_empty()).map(Into::into),
        }),
        message: status.message.as_deref().filter(|message| !message.is_empty()).map(|message| {
            let kept: String = message.chars().take(MESSAGE_MAX).collect();
            kept.trim().into()
        }),
    }))
}

fn terminated(container: &ContainerStatus) -> Option<(&ContainerStatus, &ContainerStateTerminated)> {
    Some((container, container.state.as_ref()?.terminated.as_ref()?))
}

/// The end of a Pod without any known container run: it was evicted before, or has no kubelet.
fn not_ready_since(status: &PodStatus) -> Option<i64> {
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let since = |kind: &str, value: &str| {
        let condition =
            conditions.iter().find(|condition| condition.type_ == kind && condition.status == value)?;
        seconds(condition.last_transition_time.as_ref())
    };
    since("DisruptionTarget", "True").or_else(|| since("Ready", "False"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(phase: Phase, status: Value) -> Option<Arc<PodEnd>> {
        end(phase, Some(&serde_json::from_value(status).unwrap()))
    }

    fn container(name: &str, code: i32, reason: &str, second: u32) -> Value {
        json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": {
            "exitCode": code, "reason": reason, "finishedAt": format!("2026-01-01T00:00:{second:02}Z")}}})
    }

    #[test]
    fn the_container_that_failed_first_is_named_and_the_last_one_tells_when() {
        let statuses = json!([
            container("side", 143, "Error", 9),
            container("app", 137, "OOMKilled", 5),
            container("log", 0, "Completed", 4)
        ]);
        let end = read(Phase::Failed, json!({"containerStatuses": statuses})).unwrap();
        assert_eq!(end.at, Some(1_767_225_609));
        let app = ContainerExit { name: "app".into(), code: 137, reason: Some("OOMKilled".into()) };
        assert_eq!(end.container, Some(app));
        let end = read(Phase::Succeeded, json!({"containerStatuses": statuses})).unwrap();
        assert_eq!((end.at, &end.container), (Some(1_767_225_609), &None), "a sidecar is stopped at the end");
        assert_eq!(read(Phase::Running, json!({"containerStatuses": statuses})), None);
    }

    #[test]
    fn a_pod_whose_containers_never_ran_ended_when_it_was_disrupted() {
        let condition = |kind: &str, value: &str, second: u32| json!({"type": kind, "status": value, "lastTransitionTime": format!("2026-01-01T00:00:{second:02}Z")});
        let conditions = json!([condition("Ready", "False", 7), condition("DisruptionTarget", "True", 3)]);
        let long = "The node was low on resource: memory. ".repeat(20);
        let end = read(Phase::Failed, json!({"conditions": conditions, "message": long})).unwrap();
        assert_eq!((end.at, &end.container), (Some(1_767_225_603), &None));
        assert!(end.message.as_deref().unwrap().chars().count() <= MESSAGE_MAX);
        let end = read(Phase::Succeeded, json!({"conditions": [condition("Ready", "False", 7)]})).unwrap();
        assert_eq!(end.at, Some(1_767_225_607));
    }
}
