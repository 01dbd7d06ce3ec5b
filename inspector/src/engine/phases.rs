//! How long the phases of starting a job take: waiting in the queue, placement, binding, and all from its creation.

use std::collections::HashMap;
use std::time::Duration;

use fluxion_scheduler::event::Effect;
use fluxion_scheduler::model::SharedStr;
use fluxion_scheduler::record::JournalEntry;
use fluxion_scheduler::state::{Job, JobState, State};
use tokio::time::Instant;

use crate::metrics::{Metrics, StartPhase};

/// Jobs whose members are being bound, by UID, as far as this process started them.
#[derive(Debug, Default)]
pub(super) struct Phases {
    binding: HashMap<SharedStr, Binding>,
}

#[derive(Debug)]
struct Binding {
    since: Instant,
    /// Of the job; epoch seconds.
    created: i64,
}

impl Phases {
    /// Observes an effect of a step; `pass` is the duration of the pass so far.
    pub(super) fn observe(&mut self, state: &State, effect: &Effect, pass: Duration, metrics: &Metrics) {
        let (uid, name, entry) = match effect {
            Effect::Journal(JournalEntry::Transition { uid, job, entry, .. }) => (uid, job, entry),
            Effect::Journal(JournalEntry::Ended(ended)) => {
                self.binding.remove(&ended.key.uid);
                return;
            }
            Effect::Journal(JournalEntry::Forgotten { uid, .. }) => {
                self.binding.remove(uid);
                return;
            }
            _ => return,
        };
        match entry.state {
            JobState::Binding if !self.binding.contains_key(uid) => {
                let (namespace, name) = name.split_once('/').unwrap_or_default();
                let Some(job) = state.job_named(namespace, name) else { return };
                metrics.job_waited(&job.queue, entry.time.saturating_sub(job.created));
                metrics.phase(StartPhase::Queue, seconds(entry.time.saturating_sub(queued(job, entry.time))));
                metrics.phase(StartPhase::Placement, pass);
                self.binding.insert(uid.clone(), Binding { since: Instant::now(), created: job.created });
            }
            // Why it is not done yet has changed.
            JobState::Binding => {}
            JobState::Running => {
                if let Some(binding) = self.binding.remove(uid) {
                    metrics.phase(StartPhase::Binding, binding.since.elapsed());
                    metrics.phase(StartPhase::EndToEnd, seconds(entry.time.saturating_sub(binding.created)));
                }
            }
            _ => {
                self.binding.remove(uid);
            }
        }
    }
}

/// When the job that starts now (`start`) was complete and entered the queue.
fn queued(job: &Job, start: i64) -> i64 {
    let before = job.history.iter().rev().skip_while(|entry| entry.state == JobState::Binding);
    let waiting = before.take_while(|entry| matches!(entry.state, JobState::Pending | JobState::Reserved));
    waiting.last().map_or(start, |entry| entry.time)
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
