//! Waiting jobs: jobs that may start, in order; started jobs with missing members; and timers for evaluation.

use std::cmp::Reverse;
use std::ops::Bound;

use imbl::{OrdMap, OrdSet};

use crate::job::{Job, JobId};
use crate::model::SharedStr;

/// Maximum number of jobs of a queue that are remembered as added or removed.
const MOVED_MAX: usize = 10_000;

/// Position of a job in scheduling order: total, and unchanged by a restart. The fields are compared in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OrderKey {
    /// Index of its queue.
    pub queue: usize,
    /// Higher first.
    pub priority: Reverse<i32>,
    /// Epoch seconds.
    pub created: i64,
    pub namespace: SharedStr,
    pub name: SharedStr,
    pub uid: SharedStr,
    pub id: JobId,
}

impl OrderKey {
    /// The position of a job in the queue with this index.
    pub(super) fn new(job: &Job, queue: usize) -> Self {
        let key = &job.key;
        Self {
            queue,
            priority: Reverse(job.priority),
            created: job.created,
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: key.uid.clone(),
            id: job.id,
        }
    }
}

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    queue: OrdSet<OrderKey>,
    /// By queue, the jobs that were added or removed since that was last asked; none if there are too many.
    moved: OrdMap<usize, Option<OrdSet<JobId>>>,
    /// Started jobs with members waiting for a node.
    pub incomplete: OrdSet<JobId>,
    /// Started jobs with resources reserved for lost members.
    pub owed: OrdSet<JobId>,
    /// Resumed jobs with resources reserved for their Pods.
    pub resumed: OrdSet<JobId>,
    timers: OrdSet<(i64, JobId)>,
}

impl Waiting {
    /// Adds a job to those that may start; returns whether it is new.
    pub(super) fn enqueue(&mut self, key: OrderKey) -> bool {
        let (queue, id) = (key.queue, key.id);
        let new = self.queue.insert(key).is_none();
        if new {
            self.note_moved(queue, id);
        }
        new
    }

    /// Removes a job; returns whether it existed.
    pub(super) fn dequeue(&mut self, key: &OrderKey) -> bool {
        let known = self.queue.remove(key).is_some();
        if known {
            self.note_moved(key.queue, key.id);
        }
        known
    }

    /// Only passes ask, and an inspector that does not lead makes none.
    fn note_moved(&mut self, queue: usize, id: JobId) {
        let moved = self.moved.entry(queue).or_insert_with(|| Some(OrdSet::new()));
        if let Some(ids) = moved {
            ids.insert(id);
            if ids.len() > MOVED_MAX {
                *moved = None;
            }
        }
    }

    /// The jobs of a queue that were added or removed since the last call; none if there are too many.
    pub(super) fn take_moved(&mut self, queue: usize) -> Option<OrdSet<JobId>> {
        self.moved.remove(&queue).unwrap_or_else(|| Some(OrdSet::new()))
    }

    pub(super) fn is_queued(&self, key: &OrderKey) -> bool {
        self.queue.contains(key)
    }

    /// Jobs that may start, in order.
    pub(super) fn in_order(&self) -> impl DoubleEndedIterator<Item = &OrderKey> {
        self.queue.iter()
    }

    /// Those of one queue, in order.
    pub(super) fn of(&self, queue: usize) -> impl Iterator<Item = &OrderKey> {
        self.queue.iter().filter(move |key| key.queue == queue)
    }

    /// Those behind one (none: all), in order.
    pub(super) fn behind(&self, key: Option<&OrderKey>) -> impl Iterator<Item = &OrderKey> {
        let from = key.map_or(Bound::Unbounded, Bound::Excluded);
        self.queue.range((from.cloned(), Bound::Unbounded))
    }

    /// The last one.
    pub(super) fn last(&self) -> Option<&OrderKey> {
        self.queue.get_max()
    }

    /// Those up to and including one, in order.
    pub(super) fn up_to(&self, key: &OrderKey) -> impl Iterator<Item = &OrderKey> {
        self.queue.range(..=key.clone())
    }

    /// Schedules evaluation of a job at a time (epoch seconds).
    pub(super) fn look_at(&mut self, at: i64, job: JobId) {
        self.timers.insert((at, job));
    }

    /// When the next evaluation is due.
    pub(super) fn next_look(&self) -> Option<i64> {
        self.timers.get_min().map(|(at, _)| *at)
    }

    /// Removes and returns a job whose evaluation is due.
    pub(super) fn due(&mut self, now: i64) -> Option<JobId> {
        let (at, job) = self.timers.get_min().copied().filter(|(at, _)| *at <= now)?;
        self.timers.remove(&(at, job));
        Some(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: u32) -> OrderKey {
        let text = SharedStr::from("x");
        let (namespace, name, uid) = (text.clone(), text.clone(), text);
        OrderKey { queue: 0, priority: Reverse(0), created: 0, namespace, name, uid, id: JobId(id) }
    }

    #[test]
    fn jobs_that_nobody_asks_for_are_not_remembered_without_bound() {
        let mut waiting = Waiting::default();
        assert!(waiting.enqueue(key(1)) && waiting.dequeue(&key(1)) && !waiting.dequeue(&key(1)));
        assert!(waiting.enqueue(key(2)));
        assert_eq!(waiting.take_moved(0), Some(OrdSet::from_iter([JobId(1), JobId(2)])));
        assert_eq!(
            (waiting.take_moved(0), waiting.take_moved(1)),
            (Some(OrdSet::new()), Some(OrdSet::new()))
        );
        for id in 0..=u32::try_from(MOVED_MAX).unwrap() {
            waiting.enqueue(key(10 + id));
        }
        assert_eq!(waiting.take_moved(0), None);
        assert_eq!(waiting.take_moved(0), Some(OrdSet::new()));
    }
}
