//! The Job controller: completions, parallelism, indexes, failures, limits.
//!
//! Like in a cluster with default settings, except that deleted Pods are ignored.

use std::collections::BTreeSet;

use fluxion::formats::idset::Idset;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};

use super::{Actions, CREATE_MAX, cut, pod_of};
use crate::standalone::metadata::{seconds, time};
use crate::standalone::object::Object;
use crate::standalone::packed::{Brief, INDEX, Phase};

/// When the Job has to be reconciled without a change of its Pods: its time limit, or the end of its retention (epoch
/// seconds).
pub fn due(job: &Job, keep_ended: i64) -> Option<i64> {
    let status = job.status.as_ref()?;
    if let Some(since) = ended_since(status) {
        let own = job.spec.as_ref().and_then(|spec| spec.ttl_seconds_after_finished).map(i64::from);
        return Some(since.saturating_add(own.unwrap_or(keep_ended)));
    }
    let limit = job.spec.as_ref()?.active_deadline_seconds?;
    Some(seconds(status.start_time.as_ref())?.saturating_add(limit))
}

/// When the Job completed or failed.
pub fn ended_since(status: &JobStatus) -> Option<i64> {
    let conditions = status.conditions.as_ref()?;
    let end = conditions.iter().find(|condition| {
        (condition.type_ == "Complete" || condition.type_ == "Failed") && condition.status == "True"
    })?;
    Some(seconds(end.last_transition_time.as_ref()).unwrap_or(0))
}

/// Its Pods by state.
struct Count<'a> {
    /// Neither finished nor being deleted.
    active: Vec<&'a Brief>,
    succeeded: usize,
    failed: usize,
    indexes_done: BTreeSet<i32>,
    indexes_active: BTreeSet<i32>,
}

fn count<'a>(pods: impl IntoIterator<Item = &'a Brief>) -> Count<'a> {
    let mut count = Count {
        active: Vec::new(),
        succeeded: 0,
        failed: 0,
        indexes_done: BTreeSet::new(),
        indexes_active: BTreeSet::new(),
    };
    for pod in pods {
        match pod.phase {
            Phase::Succeeded => {
                count.succeeded += 1;
                count.indexes_done.extend(pod.index);
            }
            Phase::Failed => count.failed += 1,
            _ if pod.active() => {
                count.active.push(pod);
                count.indexes_active.extend(pod.index);
            }
            _ => {}
        }
    }
    count
}

/// The actions needed by the Job.
pub fn reconcile<'a>(job: &Job, pods: impl IntoIterator<Item = &'a Brief>, now: i64) -> Actions {
    let mut actions = Actions::default();
    let Some(spec) = &job.spec else { return actions };
    let mut status = job.status.clone().unwrap_or_default();
    if ended_since(&status).is_some() {
        return actions;
    }
    let suspended = spec.suspend == Some(true);
    if !suspended && status.start_time.is_none() {
        status.start_time = time(now);
    }
    let count = count(pods);
    let parallelism = usize::try_from(spec.parallelism.unwrap_or(1)).unwrap_or(0);
    let completions = spec.completions.map(|number| usize::try_from(number).unwrap_or(0));
    let indexed = spec.completion_mode.as_deref() == Some("Indexed");
    let succeeded = if indexed { count.indexes_done.len() } else { count.succeeded };

    let expired = spec.active_deadline_seconds.zip(seconds(status.start_time.as_ref()));
    let expired = !suspended && expired.is_some_and(|(limit, start)| start.saturating_add(limit) <= now);
    let too_many = count.failed > usize::try_from(spec.backoff_limit.unwrap_or(6)).unwrap_or(0);
    let complete = match completions {
        Some(wanted) => succeeded >= wanted,
        // A work queue: one success means that there is no more work, and the other Pods may finish theirs.
        None => succeeded > 0 && count.active.is_empty(),
    };
    let mut active = count.active.len();
    if complete || expired || too_many {
        actions.delete = count.active.iter().map(|pod| pod.uid.clone()).collect();
        active = 0;
        end(&mut status, complete, expired, now);
    } else if suspended {
        actions.delete = count.active.iter().map(|pod| pod.uid.clone()).collect();
        active = 0;
    } else {
        let wanted = match completions {
            Some(wanted) => parallelism.min(wanted - succeeded),
            None if succeeded > 0 => active,
            None => parallelism,
        };
        let missing = wanted.saturating_sub(active).min(CREATE_MAX);
        actions.create = create(job, &count, completions.filter(|_| indexed), missing);
        active += actions.create.len();
        // Scaled down: Pods that were not started are deleted first.
        let mut surplus = count.active.clone();
        surplus.sort_by_key(|pod| (pod.phase == Phase::Running, &pod.name));
        let surplus = surplus.into_iter().take(active.saturating_sub(wanted));
        actions.delete = surplus.map(|pod| pod.uid.clone()).collect();
    }
    let number = |number: usize| i32::try_from(number).ok().filter(|number| *number > 0);
    status.active = number(active);
    status.succeeded = number(succeeded);
    status.failed = number(count.failed);
    status.ready = number(count.active.iter().filter(|pod| pod.phase == Phase::Running).count());
    status.completed_indexes =
        (indexed && !count.indexes_done.is_empty()).then(|| ranges(&count.indexes_done));
    if job.status.as_ref() != Some(&status) {
        actions.owner = Some(Object::Job(Box::new(Job { status: Some(status), ..job.clone() })));
    }
    actions
}

fn end(status: &mut JobStatus, complete: bool, expired: bool, now: i64) {
    let (kind, reason, message) = if complete {
        ("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    } else if expired {
        ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    } else {
        ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    };
    if complete {
        status.completion_time = time(now);
    }
    status.conditions.get_or_insert_default().push(JobCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_transition_time: time(now),
        last_probe_time: None,
    });
}

/// Creates `missing` Pods; `indexes` is the number of indexes of an Indexed Job.
fn create(job: &Job, count: &Count<'_>, indexes: Option<usize>, missing: usize) -> Vec<Object> {
    let Some(spec) = &job.spec else { return Vec::new() };
    let owner = Object::Job(Box::new(job.clone()));
    let free: Vec<Option<i32>> = match indexes {
        None => vec![None; missing],
        Some(indexes) => (0..i32::try_from(indexes).unwrap_or(i32::MAX))
            .filter(|index| !count.indexes_done.contains(index) && !count.indexes_active.contains(index))
            .take(missing)
            .map(Some)
            .collect(),
    };
    let (name, uid) = (cut(owner.name()), owner.uid());
    let mut objects = Vec::with_capacity(free.len());
    for index in free {
        let start = index.map_or_else(|| name.to_owned(), |index| format!("{name}-{index}"));
        let mut pod = pod_of(&owner, &start, &spec.template);
        let labels = pod.metadata.labels.get_or_insert_default();
        for (key, value) in [
            ("batch.kubernetes.io/controller-uid", uid),
            ("batch.kubernetes.io/job-name", owner.name()),
            ("job-name", owner.name()),
        ] {
            labels.insert(key.to_owned(), value.to_owned());
        }
        if let Some(index) = index {
            labels.insert(INDEX.to_owned(), index.to_string());
            pod.metadata.annotations.get_or_insert_default().insert(INDEX.to_owned(), index.to_string());
        }
        objects.push(Object::Pod(Box::new(pod)));
    }
    objects
}

/// `0-2,4`.
fn ranges(indexes: &BTreeSet<i32>) -> String {
    Idset::from_ids(indexes.iter().filter_map(|index| u64::try_from(*index).ok())).to_string()
}

#[cfg(test)]
mod tests;
