//! The jobs, by ID and by name, and revisions of their visible data.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::job::{Job, JobId};
use crate::model::SharedStr;
use crate::small_set::SmallSet;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Jobs {
    by_id: OrdMap<JobId, Arc<Job>>,
    /// Namespace and `KIND.NAME` to the jobs of that name, oldest first.
    by_name: OrdMap<(SharedStr, String), SmallSet<JobId>>,
    /// Counted by `revision`.
    revisions: OrdMap<JobId, u64>,
    revision: u64,
    next: u32,
    /// When finished jobs ended.
    ended: OrdSet<(i64, JobId)>,
}

impl Jobs {
    /// An unused ID.
    pub(super) fn next_id(&mut self) -> JobId {
        let id = JobId(self.next);
        self.next = self.next.wrapping_add(1);
        id
    }

    pub(super) fn get(&self, id: JobId) -> Option<&Arc<Job>> {
        self.by_id.get(&id)
    }

    /// The job, mutable.
    pub(super) fn get_mut(&mut self, id: JobId) -> Option<&mut Job> {
        self.touch(id);
        self.by_id.get_mut(&id).map(Arc::make_mut)
    }

    pub(super) fn contains(&self, id: JobId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// Ordered by ID.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.by_id.values()
    }

    /// Ordered by namespace, kind, name and age.
    pub(super) fn in_order_of_names(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.by_name.values().flatten().filter_map(|id| self.by_id.get(id))
    }

    /// Jobs with the same name, oldest first.
    pub(super) fn named(&self, namespace: &SharedStr, name: &str) -> Option<&SmallSet<JobId>> {
        self.by_name.get(&(namespace.clone(), name.to_owned()))
    }

    /// Adds a job; returns other jobs with the same name, whose distinguishing names change.
    pub(super) fn insert(&mut self, job: Job) -> Vec<JobId> {
        let of_name = self.by_name.entry((job.key.namespace.clone(), job.key.object_name())).or_default();
        let others = of_name.iter().copied().collect();
        of_name.insert(job.id);
        self.by_id.insert(job.id, Arc::new(job));
        others
    }

    /// Removes a job; returns other jobs with the same name.
    pub(super) fn remove(&mut self, job: &Job) -> Vec<JobId> {
        self.revisions.remove(&job.id);
        self.by_id.remove(&job.id);
        let name = (job.key.namespace.clone(), job.key.object_name());
        let Some(of_name) = self.by_name.get_mut(&name) else { return Vec::new() };
        of_name.remove(&job.id);
        let others: Vec<JobId> = of_name.iter().copied().collect();
        if others.is_empty() {
            self.by_name.remove(&name);
        }
        others
    }

    /// Records a visible change of the job: of itself, its members, or their owners.
    pub(super) fn touch(&mut self, id: JobId) {
        if self.by_id.contains_key(&id) {
            self.revision += 1;
            self.revisions.insert(id, self.revision);
        }
    }

    /// Incremented with every such change.
    pub(super) fn revision(&self, id: JobId) -> u64 {
        self.revisions.get(&id).copied().unwrap_or(0)
    }

    /// The job has finished, and its retention starts.
    pub(super) fn keep_from(&mut self, ended_at: i64, id: JobId) {
        self.ended.insert((ended_at, id));
    }

    /// The same; it ended at another time than was known.
    pub(super) fn keep_from_instead(&mut self, known: Option<i64>, ended_at: i64, id: JobId) {
        if let Some(known) = known {
            self.keep_no_longer(known, id);
        }
        self.keep_from(ended_at, id);
    }

    /// The finished job is not kept.
    pub(super) fn keep_no_longer(&mut self, ended_at: i64, id: JobId) {
        self.ended.remove(&(ended_at, id));
    }

    /// When the earliest finished job ended.
    pub(super) fn first_end(&self) -> Option<i64> {
        self.ended.get_min().map(|(at, _)| *at)
    }

    /// Removes and returns a finished job whose retention is over: one that ended at `before` or earlier, or the
    /// earliest if more than `most` are kept.
    pub(super) fn next_to_forget(&mut self, before: i64, most: usize) -> Option<(i64, JobId)> {
        let (at, id) = self.ended.get_min().copied()?;
        if at > before && self.ended.len() <= most {
            return None;
        }
        self.ended.remove(&(at, id));
        Some((at, id))
    }
}
