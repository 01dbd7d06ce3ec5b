//! Unknown labels and annotations with one of our prefixes: a misspelled one would be ignored silently.

use std::collections::BTreeMap;

use crate::event::Effect;
use crate::job::{Job, JobId};
use crate::marks;
use crate::model::{Marks, SharedStr};
use crate::state::State;

/// Maximum number listed per job.
const NAMED: usize = 10;

impl State {
    /// Warnings about unknown keys on a job's Pods and the objects above them; independent of which Pods exist.
    pub(super) fn unknown_marks(&self, job: &Job) -> Vec<String> {
        let mut found: BTreeMap<(SharedStr, &str), String> = BTreeMap::new();
        let mut look = |labels: &Marks, annotations: &Marks, at: &dyn Fn() -> String| {
            for key in marks::unknown(annotations, false) {
                found.entry((key.clone(), "annotation")).or_insert_with(at);
            }
            for key in marks::unknown(labels, true) {
                found.entry((key.clone(), "label")).or_insert_with(at);
            }
        };
        let pods = || job.pods.iter().filter_map(|uid| self.delivered.pod(uid));
        // An owner's own metadata is a better place to report than its Pods.
        if let Some(group) = self.group_of(job) {
            look(&group.labels, &group.annotations, &|| format!("PodGroup {}", group.name));
        }
        let direct = pods().find_map(|pod| self.delivered.owner(&pod.controller.as_ref()?.uid));
        for owner in direct
            .into_iter()
            .flat_map(|direct| std::iter::once(&**direct).chain(self.controllers_of(direct)))
        {
            look(&owner.labels, &owner.annotations, &|| format!("{} {}", owner.kind, owner.name));
        }
        for pod in pods() {
            look(&pod.labels, &pod.annotations, &|| "the Pods".to_owned());
        }
        let count = found.len();
        let mut said: Vec<String> = found
            .into_iter()
            .take(NAMED)
            .map(|((key, what), at)| {
                let (shown, advice) = (marks::shorten(&key), marks::advice(&key));
                format!("ignoring unknown {what} '{shown}' on {at}: {advice}")
            })
            .collect();
        if count > NAMED {
            said.push(format!("ignoring {} more unknown labels and annotations", count - NAMED));
        }
        said
    }

    /// Records them on the job, and that they have to be reported.
    pub(super) fn note_unknown_marks(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(id) else { return };
        let found = self.unknown_marks(job);
        if found == job.unknown_marks {
            return;
        }
        self.work.changed.insert(id);
        if let Some(job) = self.jobs.get_mut(id) {
            job.unknown_marks = found;
        }
    }

    /// An Event for each, once. For a running job, they were reported before it started.
    pub(super) fn tell_unknown_marks(&mut self, job: &Job) {
        let first = || job.pods.iter().find_map(|uid| self.delivered.pod(uid)).map(|pod| pod.object());
        let news: Vec<&String> =
            job.unknown_marks.iter().filter(|text| !job.told_marks.contains(text)).collect();
        if news.is_empty() {
            return;
        }
        let Some(regarding) = job.object.clone().or_else(first) else { return };
        if job.members.bound == 0 {
            self.work.effects.extend(news.into_iter().map(|text| Effect::Note {
                regarding: regarding.clone(),
                warning: true,
                reason: "UnknownAnnotation",
                action: "Scheduling",
                note: text.clone(),
            }));
        }
        if let Some(kept) = self.jobs.get_mut(job.id) {
            kept.told_marks.clone_from(&job.unknown_marks);
        }
    }
}
