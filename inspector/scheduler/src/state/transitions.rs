//! Invalid state transitions, which were not made.

use crate::job::{Job, JobState};
use crate::state::Finding;

/// Their number, and the latest.
#[derive(Clone, Debug, Default)]
pub(super) struct RefusedTransitions {
    count: u64,
    last: Option<(String, JobState, JobState)>,
}

impl RefusedTransitions {
    /// Records that a job was not moved to a state.
    pub(super) fn refuse(&mut self, job: &Job, to: JobState) {
        self.count = self.count.saturating_add(1);
        let name = format!("{}/{}", job.key.namespace, job.key.display());
        self.last = Some((name, job.state, to));
    }

    /// The audit finding.
    pub(super) fn finding(&self) -> Option<Finding> {
        let (object, from, to) = self.last.as_ref()?;
        let text = format!(
            "invalid transition from {} to {} was not made ({} in total): report this as a bug in the inspector",
            from.as_str(),
            to.as_str(),
            self.count
        );
        Some(Finding { class: "Invariant", object: object.clone(), text })
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::event::Event;
    use crate::model::{Phase, PodSpec};
    use crate::state::{Settings, State};
    use crate::testing::pod;

    #[test]
    fn an_ended_job_stays_ended_and_the_audit_tells_who_tried() {
        let pod = PodSpec {
            scheduler_name: "fluxion".into(),
            created: 50,
            phase: Phase::Succeeded,
            node: Some("n1".into()),
            needs: Ok(pod("cpu=1")),
            scheduled_at: Some(60),
            ..PodSpec::new("team", "web", "u1")
        };
        let mut state = State::new(Settings::default());
        state.step(100, vec![Event::Pod(Box::new(pod)), Event::Synced]);
        let job = state.job_named("team", "pod.web").unwrap();
        let (id, before) = (job.id, job.history.clone());
        assert_eq!((job.state, state.audit().len()), (JobState::Completed, 0));
        for _ in 0..2 {
            state.settle(id, JobState::Running, None, false);
        }
        let job = state.job_named("team", "pod.web").unwrap();
        assert_eq!((job.state, &job.history), (JobState::Completed, &before));
        let findings = state.audit();
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].class, &*findings[0].object), ("Invariant", "team/pod/web"));
        assert!(findings[0].text.contains("from Completed to Running"), "{}", findings[0].text);
        assert!(findings[0].text.contains("(2 in total)"), "{}", findings[0].text);
    }
}
