//! Owners whose Pods can't come to be: suspended by their users, or because the API server rejects the Pods (a quota, a limit
//! range, an admission webhook). They are jobs too, so that they are seen, and the cause is part of the reason for waiting.
//!
//! Such a job has no Pods. When the first one is created, it becomes that Pod's job, or if each Pod is a job by itself, it
//! is removed; likewise when there is nothing left to be told.

use std::collections::BTreeSet;
use std::sync::Arc;

use fluxion_api::reason::Fact;

use crate::job::{Job, Reason};
use crate::marks;
use crate::model::{ControllerRef, OwnerSpec, SharedStr};
use crate::state::State;
use crate::state::grouping::gang_of;
use crate::state::membership::{Membership, Size, owner_key};

mod failures;

pub(super) use failures::Failures;

/// Seconds after which a failure that was not repeated no longer counts: controllers try again at least this often.
const FRESH: i64 = 20 * 60;
/// Maximum length of a cause, in characters.
const CAUSE: usize = 300;

impl State {
    /// The API server rejected Pods of this owner, according to an Event in this namespace.
    pub(super) fn creation_failed(&mut self, namespace: SharedStr, owner: SharedStr, why: &str, at: i64) {
        let at = at.min(self.now);
        if at.saturating_add(FRESH) <= self.now {
            return;
        }
        let why = fluxion_text::shorten(why, CAUSE).as_ref().into();
        if self.failures.add((namespace, owner.clone()), why, at) {
            self.look_at_owner(&owner);
        }
    }

    /// The owner was added or changed, or its Pods could not be created.
    pub(super) fn look_at_owner(&mut self, uid: &SharedStr) {
        self.work.uncreated.insert(uid.clone());
        if let Some(owner) = self.delivered.owner(uid).cloned() {
            let top = self.named_after(&owner).uid.clone();
            let top = self.delivered.owner(&top).map_or_else(|| owner_key(&owner), |top| owner_key(top));
            // What was taken for the top before this one came.
            let below = self.delivered.owners_below(uid).map(|below| owner_key(below));
            let keys: Vec<_> = below.chain([owner_key(&owner), top]).collect();
            for key in keys {
                self.work.dirty.extend(self.belonging.active(&key));
            }
        }
    }

    /// A Pod of this owner was created, which may be a job by itself.
    pub(super) fn note_created(&mut self, owner: &SharedStr) {
        let Some(owner) = self.delivered.owner(owner) else { return };
        let Some(id) = self.belonging.active(&owner_key(self.named_after(owner))) else { return };
        if self.jobs.get(id).is_some_and(|job| job.uncreated) {
            self.work.dirty.insert(id);
        }
    }

    /// Drops failures that are too old.
    pub(super) fn forget_failures(&mut self) {
        let before = self.now.saturating_sub(FRESH);
        while self.failures.first().is_some_and(|at| at <= before)
            && let Some((_, uid)) = self.failures.take_first()
        {
            self.look_at_owner(&uid);
        }
    }

    /// When the first failure becomes too old.
    pub(super) fn next_forgotten_failure(&self) -> Option<i64> {
        self.failures.first().map(|at| at.saturating_add(FRESH))
    }

    /// The owner was deleted.
    pub(super) fn owner_has_gone(&mut self, uid: &SharedStr) {
        if let Some(owner) = self.delivered.owner(uid) {
            self.failures.remove(&(owner.namespace.clone(), uid.clone()));
        }
    }

    /// Makes jobs of owners that would otherwise not be seen.
    pub(super) fn enter_uncreated(&mut self) {
        // Many may be below the same one.
        let mut seen = BTreeSet::new();
        for uid in std::mem::take(&mut self.work.uncreated) {
            let Some(owner) = self.delivered.owner(&uid).cloned() else { continue };
            let top = self.named_after(&owner).clone();
            let key = owner_key(&top);
            let known = !seen.insert(top.uid.clone()) || self.belonging.active(&key).is_some();
            if known || !self.is_uncreated(&top) {
                continue;
            }
            let membership = Membership {
                key,
                size: Size::OwnerNeeds { owner: top.uid.clone() },
                object: Some(top.object()),
                group: None,
            };
            let id = self.create_job_of(top.created, 0, &top.uid, &membership);
            if let Some(job) = self.jobs.get_mut(id) {
                job.uncreated = true;
            }
            self.go_on(id);
            self.work.dirty.insert(id);
        }
    }

    /// Whether the job only stands for an owner, and there is nothing to tell of that any more.
    pub(super) fn is_superseded(&self, job: &Job) -> bool {
        let owner = || self.delivered.owner(&job.object.as_ref()?.uid);
        let stands_for =
            |owner: &Arc<OwnerSpec>| self.named_after(owner).uid == owner.uid && self.is_uncreated(owner);
        job.uncreated && job.pods.is_empty() && !owner().is_some_and(stands_for)
    }

    /// Whether the owner is ours, has no Pods, and can't have any now.
    fn is_uncreated(&self, owner: &OwnerSpec) -> bool {
        let stuck = owner.detail.suspended() || self.failure_below(owner).is_some();
        stuck
            && !owner.deleting
            && owner.detail.ended().is_none()
            && self.owner_is_ours(owner)
            && self.delivered.pods_below(&owner.uid).is_empty()
            && self.owner_needs(&owner.uid) != Ok(0)
    }

    /// Why Pods of the job can't be created, if that is known.
    pub(super) fn why_uncreated(&self, job: &Job) -> Option<Fact> {
        let named = job.object.as_ref().and_then(|object| self.delivered.owner(&object.uid));
        let of_pods = || {
            let mut pods = job.pods.iter().filter_map(|uid| self.delivered.pod(uid)?.controller.as_ref());
            pods.find_map(|ControllerRef { uid, .. }| self.failure(self.delivered.owner(uid)?))
        };
        let why = named.and_then(|owner| self.failure_below(owner)).or_else(of_pods)?;
        Some(Fact::Message { text: format!("Pods can't be created: {why}") })
    }

    /// A reason for waiting, with the cause if Pods can't be created.
    pub(super) fn with_cause(&self, job: &Job, reason: Reason) -> Reason {
        match self.why_uncreated(job) {
            Some(cause) => {
                let facts: Vec<Fact> = reason.facts.iter().cloned().chain([cause]).collect();
                Reason { facts: facts.into(), ..reason }
            }
            None => reason,
        }
    }

    fn failure(&self, owner: &OwnerSpec) -> Option<SharedStr> {
        let told = || self.failures.why(&(owner.namespace.clone(), owner.uid.clone())).cloned();
        owner.failure.clone().or_else(told)
    }

    /// The failure of the owner, or of the first one below it.
    fn failure_below(&self, owner: &OwnerSpec) -> Option<SharedStr> {
        let below = || self.delivered.owners_below(&owner.uid).find_map(|owner| self.failure(owner));
        self.failure(owner).or_else(below)
    }

    /// The owner after which a job without Pods is named: the one whose Pods are a gang, else what its user made.
    fn named_after<'a>(&'a self, owner: &'a Arc<OwnerSpec>) -> &'a OwnerSpec {
        let above = self.controllers_of(owner);
        let chain: Vec<&OwnerSpec> =
            std::iter::once(owner.as_ref()).chain(above).take_while(|one| &*one.kind != "CronJob").collect();
        let gang = gang_of(&chain, || Ok(false)).ok().flatten();
        gang.or(chain.last().copied()).unwrap_or(owner)
    }

    /// Whether its Pods would be ours.
    fn owner_is_ours(&self, owner: &OwnerSpec) -> bool {
        let below = || self.delivered.owners_below(&owner.uid).find_map(|below| below.scheduler.clone());
        let Some(scheduler) = owner.scheduler.clone().or_else(below) else { return false };
        let mode = || self.inventory.namespaces().label(&owner.namespace, marks::ADMISSION);
        let taken_in = || mode().is_some_and(|mode| marks::MODES.contains(&&**mode));
        let exempt = owner.labels.get(marks::ADMISSION).is_some_and(|mode| &**mode == "none");
        self.settings.scheduler_names.contains(&scheduler)
            || &*scheduler == "default-scheduler" && !exempt && taken_in()
    }
}
