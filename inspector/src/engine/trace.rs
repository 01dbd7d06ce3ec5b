//! Spans of passes, and below them of the jobs that they start: from the decision until all members are bound.

use fluxion_scheduler::event::Effect;
use fluxion_scheduler::model::SharedStr;
use fluxion_scheduler::record::JournalEntry;
use fluxion_scheduler::state::{JobState, State};

use crate::telemetry::{Span, SpanKind, Tracer};

/// The pass under way.
#[derive(Debug)]
pub(super) struct PassTrace {
    tracer: Tracer,
    /// Whether it was decided if the pass is recorded: once, not in every step.
    decided: bool,
    span: Option<Span>,
    /// Number of jobs with spans below it.
    starts: u32,
}

impl PassTrace {
    pub(super) fn new(tracer: Tracer) -> Self {
        Self { tracer, decided: false, span: None, starts: 0 }
    }

    /// A step begins, which may be the first one of a pass.
    pub(super) fn begin(&mut self) {
        if !std::mem::replace(&mut self.decided, true) {
            self.span = self.tracer.start("pass", SpanKind::Internal, None);
        }
    }

    /// Observes an effect of the step.
    pub(super) fn observe(&mut self, state: &State, effect: &Effect) {
        if !self.tracer.enabled() {
            return;
        }
        match effect {
            Effect::Journal(JournalEntry::Transition { uid, job, entry, .. }) => match entry.state {
                JobState::Binding => self.starts(state, uid, job),
                JobState::Running => drop(self.tracer.job_started(uid)),
                other => self.gave_up(uid, other.as_str()),
            },
            Effect::Journal(JournalEntry::Ended(ended)) => {
                self.gave_up(&ended.key.uid, ended.state.as_str());
            }
            Effect::Journal(JournalEntry::Forgotten { uid, ended_at: None }) => self.gave_up(uid, "deleted"),
            _ => {}
        }
    }

    fn starts(&mut self, state: &State, uid: &SharedStr, name: &str) {
        let Some(pass) = &self.span else { return };
        // Otherwise, why it is not done yet has changed.
        if self.tracer.start_of(uid).is_some() {
            return;
        }
        let mut span = self.tracer.start("start job", SpanKind::Internal, Some(pass.context()));
        if let Some(span) = &mut span {
            span.set("fluxion.job", name);
            span.set("fluxion.job.uid", uid);
            let job = name.split_once('/').and_then(|(namespace, name)| state.job_named(namespace, name));
            if let Some(job) = job {
                span.set("fluxion.queue", &job.queue);
                span.set_number("fluxion.members", job.members.wanted.unwrap_or(0));
            }
            self.starts += 1;
        }
        self.tracer.job_starts(uid, span);
    }

    fn gave_up(&self, uid: &SharedStr, state: &str) {
        if let Some(mut span) = self.tracer.job_started(uid) {
            span.fail(&format!("the job is {state}"));
        }
    }

    /// The pass has ended, if there was one.
    pub(super) fn end(&mut self, state: &State, passed: bool) {
        self.decided = false;
        let starts = std::mem::take(&mut self.starts);
        let Some(mut span) = self.span.take() else { return };
        if !passed && starts == 0 {
            return span.discard();
        }
        let (mut tried, mut started) = (0, 0);
        for queue in state.queues() {
            let report = state.last_pass(&queue.name);
            tried += i64::from(report.tried_since);
            started += i64::from(report.started);
        }
        span.set_number("fluxion.jobs.considered", tried);
        span.set_number("fluxion.jobs.started", started);
    }
}

#[cfg(test)]
mod tests {
    use fluxion_scheduler::state::Settings;

    use super::*;
    use crate::metrics::Metrics;
    use crate::telemetry::{Exporter, TraceSettings};

    #[tokio::test]
    async fn whether_a_pass_is_recorded_is_decided_once() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let half = |name: &str| match name {
            "OTEL_TRACES_SAMPLER" => Some("traceidratio".to_owned()),
            "OTEL_TRACES_SAMPLER_ARG" => Some("0.5".to_owned()),
            _ => None,
        };
        let settings = TraceSettings::read(Some("http://127.0.0.1:9"), half).unwrap().unwrap();
        let (_exporter, tracer) = Exporter::start(settings, &Metrics::new()).unwrap();
        let state = State::new(Settings::default());
        let mut trace = PassTrace::new(tracer);
        let mut recorded = 0;
        for _ in 0..200 {
            trace.begin();
            let first = trace.span.as_ref().map(Span::context);
            for _ in 0..20 {
                trace.begin();
                assert!(trace.span.as_ref().map(Span::context) == first);
            }
            recorded += usize::from(first.is_some());
            trace.end(&state, false);
        }
        assert!((1..200).contains(&recorded), "each pass is decided anew: {recorded}");
    }
}
