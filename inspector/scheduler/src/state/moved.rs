//! Changes of planned starts: recorded in the job's history with their cause.

use std::sync::Arc;

use crate::explain::utc;
use crate::job::{HISTORY_MAX, HistoryEntry, Job, JobId, JobState, Move, Reservation};
use crate::model::SharedStr;
use crate::request::Shape;
use crate::state::State;

/// Maximum number of jobs listed as the cause.
const NAMED: usize = 3;

impl State {
    /// Records a change of a planned start; `before` is the job's previous state, with the jobs it waited for.
    pub(super) fn note_move(&mut self, before: &Job, start: i64) {
        let Some(planned) = before.reservation.as_ref().filter(|planned| planned.start != start) else {
            return;
        };
        let Some(job) = self.jobs.get(before.id) else { return };
        let why = if start > planned.start {
            self.why_later(before, job, planned)
        } else {
            self.why_earlier(before, job)
        };
        let now = self.now;
        let Some(job) = self.jobs.get_mut(before.id) else { return };
        // Repeated changes with the same cause are one entry.
        let last = job.history.last();
        let goes_on = job
            .moved
            .as_ref()
            .filter(|moved| moved.why == why && last.is_some_and(|last| last.reason == moved.text));
        let from = goes_on.map_or(planned.start, |moved| moved.from);
        let goes_on = goes_on.is_some();
        let text = format!("planned start moved from {} to {}: {why}", utc(from), utc(start));
        job.moved = Some(Move { from, why, text: text.clone() });
        let class = job.reason.as_ref().map(|reason| reason.class);
        let history = Arc::make_mut(&mut job.history);
        if goes_on {
            history.pop();
        } else {
            if history.len() >= HISTORY_MAX {
                history.remove(1);
            }
            job.entries = job.entries.saturating_add(1);
        }
        history.push(HistoryEntry { time: now, state: JobState::Reserved, class, reason: text });
        if !goes_on {
            let job = job.clone();
            self.note_transition(&job);
        }
    }

    fn why_later(&self, before: &Job, job: &Job, planned: &Reservation) -> String {
        // Evaluated with the job's own constraints: a tolerated taint is not a cause.
        let takes_none = |node: &&SharedStr| {
            let takes = |shape: &Shape| self.inventory.takes(node, &shape.constraint);
            job.request.as_ref().is_some_and(|request| !request.shapes.iter().any(takes))
        };
        if let Some(node) = planned.nodes.iter().find(takes_none) {
            return format!("node {node} is no longer available");
        }
        let named = |others: &[JobId]| self.names_for(job, others);
        let new: Vec<JobId> =
            job.waits_for.iter().filter(|other| !before.waits_for.contains(other)).copied().collect();
        if !new.is_empty() {
            return format!("{} was scheduled ahead of it", named(&new));
        }
        let late = |id: &&JobId| {
            self.job(**id).is_some_and(|other| other.planned_end.is_some_and(|end| end <= self.now))
        };
        let late: Vec<JobId> = job.waits_for.iter().filter(late).copied().collect();
        if !late.is_empty() {
            return format!("{} exceeded its planned duration", named(&late));
        }
        let assumed = |id: &&JobId| {
            self.job(**id).and_then(|other| self.release_of(other)).is_some_and(|end| end.assumed)
        };
        let assumed: Vec<JobId> = job.waits_for.iter().filter(assumed).copied().collect();
        if !assumed.is_empty() {
            return format!("{} is assumed to run longer", named(&assumed));
        }
        "its nodes are in use for longer".to_owned()
    }

    fn why_earlier(&self, before: &Job, job: &Job) -> String {
        let gone: Vec<JobId> =
            before.waits_for.iter().filter(|other| !job.waits_for.contains(other)).copied().collect();
        if gone.is_empty() {
            return "resources are available earlier".to_owned();
        }
        format!("no longer waiting for {}", self.names_for(job, &gone))
    }

    fn names_for(&self, job: &Job, others: &[JobId]) -> String {
        let mut names: Vec<String> = others.iter().map(|other| self.name_for(job, *other)).collect();
        names.dedup();
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        let names = names.join(", ");
        if more > 0 { format!("{names} and {more} more") } else { names }
    }
}
