//! What waits: jobs that may start, in order; started jobs that miss members; and when to look at jobs again.

use std::cmp::Reverse;

use imbl::OrdSet;

use crate::job::{Job, JobId};
use crate::model::SharedStr;

/// Place of a job in the order in which nodes are given out: total, and the same after a restart. The fields are compared
/// one after the other.
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
    /// The place of a job in the queue of this index.
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

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    queue: OrdSet<OrderKey>,
    /// Started jobs with members that wait for a node.
    pub incomplete: OrdSet<JobId>,
    /// Started jobs that lost members for which a place is kept.
    pub owed: OrdSet<JobId>,
    timers: OrdSet<(i64, JobId)>,
}

impl Waiting {
    /// Puts a job into the order of those that may start; whether it is new there.
    pub(super) fn enqueue(&mut self, key: OrderKey) -> bool {
        self.queue.insert(key).is_none()
    }

    /// Takes a job out; whether it was there.
    pub(super) fn dequeue(&mut self, key: &OrderKey) -> bool {
        self.queue.remove(key).is_some()
    }

    pub(super) fn is_queued(&self, key: &OrderKey) -> bool {
        self.queue.contains(key)
    }

    /// Jobs that may start, in order.
    pub(super) fn in_order(&self) -> impl DoubleEndedIterator<Item = &OrderKey> {
        self.queue.iter()
    }

    /// Those up to one, itself included, in order.
    pub(super) fn up_to(&self, key: &OrderKey) -> impl Iterator<Item = &OrderKey> {
        self.queue.range(..=key.clone())
    }

    /// Asks for a job to be looked at again at a time (epoch seconds).
    pub(super) fn look_at(&mut self, at: i64, job: JobId) {
        self.timers.insert((at, job));
    }

    /// When a job is to be looked at next.
    pub(super) fn next_look(&self) -> Option<i64> {
        self.timers.get_min().map(|(at, _)| *at)
    }

    /// Takes out a job that is to be looked at by now.
    pub(super) fn due(&mut self, now: i64) -> Option<JobId> {
        let (at, job) = self.timers.get_min().copied().filter(|(at, _)| *at <= now)?;
        self.timers.remove(&(at, job));
        Some(job)
    }
}
