//! Derives a job's state from its members: everything that doesn't depend on nodes.

use std::collections::BTreeSet;
use std::sync::Arc;

use fluxion_api::reason::{Fact, MissingMembers};

use crate::job::{GroupKey, Job, JobId, JobState, Losses, Reason, ReasonClass};
use crate::marks;
use crate::model::{PodSpec, SharedStr};
use crate::resources::ResourceList;
use crate::state::State;
use crate::state::ending::{cancelled, disrupted};
use crate::state::membership::{Membership, Size};
use crate::state::summary::MemberSummary;

impl State {
    /// Assigns Pods whose labels, annotations, group or owner changed to the right job.
    pub(super) fn regroup_pods(&mut self) {
        let mut created = Vec::new();
        for uid in std::mem::take(&mut self.work.regroup) {
            let Some(pod) = self.delivered.pod(&uid).cloned() else { continue };
            let known = self.belonging.job_of(&uid);
            if known.is_some() && self.outlives_its_owner(&pod) {
                self.work.dirty.extend(known);
                continue;
            }
            let membership = self.membership(&pod);
            let same = self.belonging.membership(&uid).is_some_and(|old| old.key == membership.key);
            let ours = self.is_ours(&pod);
            let keep = known.and_then(|id| self.jobs.get(id)).is_some_and(|job| job.state.ended() || same);
            self.set_membership(&uid, Some(membership.clone()));
            if keep {
                if let Some(id) = known {
                    self.name_after(id, &membership);
                    self.follow_pinned(id, &pod);
                    self.work.dirty.insert(id);
                }
                continue;
            }
            if let Some(old) = self.belonging.unassign(&uid) {
                self.move_out(old, &pod);
            }
            if let Some(past) = self.past_life(&pod, &membership.key) {
                self.belonging.assign(uid, past);
                continue;
            }
            let id = match self.belonging.active(&membership.key) {
                Some(id) => id,
                // Pods of other schedulers are not jobs, but they may be members of one.
                None if !ours => {
                    if membership.key.anchor.as_ref() != Some(&uid) {
                        self.belonging.keep_in_mind(membership.key, uid);
                    }
                    continue;
                }
                None => {
                    let id = self.create_job(&pod, &membership);
                    created.push(id);
                    id
                }
            };
            self.join(id, &pod);
            self.follow_pinned(id, &pod);
            if ours {
                self.adopt_strays(id, &membership.key);
            }
        }
        for id in created {
            self.go_on(id);
        }
    }

    /// Its controller existed and was deleted: the Pod will be deleted too, and until then remains a member of its
    /// controller's gang or a job of its own.
    fn outlives_its_owner(&self, pod: &PodSpec) -> bool {
        let Some(controller) = &pod.controller else { return false };
        let Some(membership) = self.belonging.membership(&pod.uid) else { return false };
        let gone = |uid: &SharedStr| !self.delivered.has_owner(uid);
        match &membership.size {
            Size::OwnerNeeds { owner } | Size::GangOfOwner { owner, .. } => {
                gone(&controller.uid) || gone(owner)
            }
            _ => {
                let alone = membership.key.anchor.as_ref() == Some(&pod.uid);
                alone && self.delivered.observes(controller) && gone(&controller.uid)
            }
        }
    }

    /// Adds other schedulers' Pods that reference the same group, so that the group can't start.
    fn adopt_strays(&mut self, id: JobId, key: &GroupKey) {
        for uid in self.belonging.take_unassigned(key) {
            if let Some(pod) = self.delivered.pod(&uid).cloned() {
                self.join(id, &pod);
            }
        }
    }

    /// Sets the Pod's group information.
    pub(super) fn set_membership(&mut self, uid: &SharedStr, membership: Option<Membership>) {
        let membership = membership.map(|membership| {
            // Members of a job share equal values.
            let of_job = self.belonging.active(&membership.key).and_then(|id| self.jobs.get(id));
            let other = of_job.and_then(|job| self.belonging.membership(job.pods.iter().next()?));
            let same = other.filter(|other| ***other == membership).cloned();
            same.unwrap_or_else(|| Arc::new(membership))
        });
        self.belonging.set_membership(uid, membership);
    }

    pub(super) fn evaluate_dirty(&mut self) {
        while let Some(id) = self.work.dirty.pop_first() {
            // Only its members or their owners may have changed.
            self.jobs.touch(id);
            if self.jobs.get(id).is_some_and(|job| !job.state.ended()) {
                self.evaluate(id);
            }
        }
    }

    fn evaluate(&mut self, id: JobId) {
        self.check_places(id);
        if self.ready {
            self.advance_claims(id);
        }
        let Some(job) = self.jobs.get(id).cloned() else { return };
        if self.is_superseded(&job) {
            self.dissolve(id);
            return;
        }
        let summary = self.summary(&job);
        // A gang without assigned members starts again, all or nothing.
        let started = summary.assigned > 0 || summary.in_flight > 0 || !summary.on_lost_nodes.is_empty();
        self.keep_places(id, &summary);
        let Some(job) = self.jobs.get(id).cloned() else { return };
        let waits = !started && !job.binds.paused(self.now);
        let request = if waits { self.first_request(&job, &summary).map(Arc::new) } else { None };
        let (state, reason) = self.derive(&job, &summary, started);
        let changed_request =
            request != job.request || summary.queue != job.queue || summary.priority != job.priority;
        let graph = self.inventory.graph_generation();
        let was_queued = self.dequeue(&job) && job.state != JobState::Unsatisfiable;
        let labels = self.shared_labels(&job);
        let holds = self.kept_holds(&job, &summary.holds);
        let described = !job.pods.is_empty() || self.queued(&job).is_some();
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.labels = labels.unwrap_or_else(|| std::mem::take(&mut job.labels));
        job.members = summary.members;
        job.holds = holds;
        job.priority = summary.priority;
        job.created = summary.created;
        if described {
            job.queue = summary.queue.clone();
            job.duration = summary.duration;
            job.limit = summary.limit;
            job.level.clone_from(&summary.level);
        }
        job.killed_at = summary.killed_at;
        if changed_request {
            job.request = request;
            job.checked = None;
            // It leaves its place, or is no longer what was considered there.
            self.pass.wanted |= was_queued;
        }
        if started {
            job.checked = Some(graph);
        }
        job.degraded = state == JobState::Running && started && summary.missing() > 0;
        if started && summary.missing() == 0 && summary.owed > 0 {
            job.losses = Losses::default();
        }
        self.follow_attempt(id, summary.live, state);
        self.settle(id, state, reason, changed_request);
        // It is no longer ahead of others, and has no reservation any more.
        self.pass.wanted |= was_queued && !started && !self.is_queued(id);
        self.note_unknown_marks(id);
        self.note_start_times(id);
        if started {
            if let Some(job) = self.jobs.get(id).cloned() {
                self.time_members(&job);
            }
            self.find_incomplete(id, &summary);
            if self.ready {
                self.check_partial(id);
            }
        } else {
            self.waiting.incomplete.remove(&id);
            if self.ready {
                self.expire_selected(id);
            }
        }
    }

    /// The members' total, sharing an existing list if it is equal to that of the job or a member.
    fn kept_holds(&self, job: &Job, holds: &ResourceList) -> Arc<ResourceList> {
        let member = job.pods.iter().next().and_then(|uid| self.delivered.pod(uid)?.needs.as_ref().ok());
        let known = [member, Some(&job.holds)].into_iter().flatten().find(|known| ***known == *holds);
        known.cloned().unwrap_or_else(|| Arc::new(holds.clone()))
    }

    /// The resulting state, and why; for jobs that may start, the result of the last pass is kept.
    fn derive(&self, job: &Job, summary: &MemberSummary, started: bool) -> (JobState, Option<Reason>) {
        let reason = |class, fact| Some(Reason::new(class, fact));
        if !started && let Some(resuming) = self.resuming(job, summary) {
            return resuming;
        }
        let owner = job.object.as_ref().and_then(|object| self.delivered.owner(&object.uid));
        let owner_ended = owner.and_then(|owner| match owner.detail.ended()? {
            Ok(()) => Some((JobState::Completed, None)),
            Err(why) => Some((JobState::Failed, Some(why.clone()))),
        });
        if summary.live == 0 {
            return match owner_ended {
                Some((state, why)) => (state, why.map(|why| self.owner_failed(job, &why))),
                None => self.without_members(job, summary, owner.is_some_and(|owner| !owner.deleting)),
            };
        }
        let owner_deleting = owner.is_some_and(|owner| owner.deleting);
        let members_go = summary.deleting > 0 && summary.waiting.is_empty() && !started;
        if summary.deleting == summary.live || members_go || (owner_deleting && started) {
            let fact = match &summary.disruption {
                Some(why) => Fact::Disrupted { reason: marks::shorten(why) },
                None => Fact::Terminating { pods: summary.live },
            };
            return (JobState::Releasing, reason(ReasonClass::Held, fact));
        }
        if started {
            let state = if summary.in_flight > 0 { JobState::Binding } else { JobState::Running };
            return (state, Self::why_incomplete(job, summary));
        }
        if let Some((class, text)) = &summary.problem {
            let state = match class {
                ReasonClass::GroupNotFound | ReasonClass::SizesDisagree => JobState::Gathering,
                ReasonClass::InvalidRequest => JobState::Unsatisfiable,
                _ => JobState::Pending,
            };
            return (state, Some(Reason::message(*class, text)));
        }
        let wanted = summary.start_size().unwrap_or(u32::MAX);
        if summary.members.seen < wanted {
            let gated = summary.members.gated;
            let gates = summary.gates.iter().take(GATES).map(|name| marks::shorten(name)).collect();
            let class = if gated > 0 { ReasonClass::Gated } else { ReasonClass::Gathering };
            let created = summary.members.seen;
            let fact = Fact::WaitingForMembers { created, wanted, gated, gates, joining: false };
            return (JobState::Gathering, Some(self.with_cause(job, Reason::new(class, fact))));
        }
        if let Some(why) = job.binds.why.as_ref().filter(|_| job.binds.paused(self.now)) {
            let facts = Arc::new([why.clone(), Fact::RetriedLater]);
            return (JobState::Pending, Some(Reason { class: ReasonClass::BindFailed, facts }));
        }
        // An earlier problem of the request concerned a different request.
        let invalid = job.reason.as_ref().is_some_and(|reason| reason.class == ReasonClass::InvalidRequest);
        match job.state {
            JobState::Pending | JobState::Reserved | JobState::Unsatisfiable if !invalid => {
                (job.state, job.reason.clone())
            }
            _ => (JobState::Pending, reason(ReasonClass::QueueOrder, Fact::InQueue)),
        }
    }

    /// No runnable member is left.
    fn without_members(
        &self,
        job: &Job,
        summary: &MemberSummary,
        owner_lives: bool,
    ) -> (JobState, Option<Reason>) {
        let alone = job.object.as_ref().is_some_and(|object| &*object.kind == "Pod");
        let goes_on =
            owner_lives || (!summary.source.going && summary.creatable.is_some_and(|left| left > 0));
        if goes_on && !alone {
            if summary.source.suspended {
                return (JobState::Suspended, Some(Reason::new(ReasonClass::Held, Fact::Suspended)));
            }
            let wanted = summary.start_size().unwrap_or(0);
            let ended = summary.members.ended;
            // Between the last success and its controller's reaction, nothing has gone wrong.
            let done = ended > 0 && summary.succeeded == ended && job.state == JobState::Running;
            let state = if done { JobState::Running } else { JobState::Gathering };
            let fact = match ended {
                0 => waiting_for_members(0, wanted, false),
                finished => Fact::MembersFinished { finished },
            };
            return (state, Some(self.with_cause(job, Reason::new(ReasonClass::Gathering, fact))));
        }
        // The latest event decides; for a Pod that was never observed running, its object does.
        let nothing_seen = job.losses == Losses::default();
        let deleted = job.losses.deleted.or((nothing_seen && summary.deleted_ended).then_some(0));
        let disruption = match &job.losses.disrupted {
            Some((at, why)) => Some((*at, why)),
            None => summary.disruption.as_ref().filter(|_| nothing_seen).map(|why| (0, why)),
        };
        if let Some((at, why)) = disruption
            && job.cancelled_by.is_none()
            && deleted.is_none_or(|deleted| deleted <= at)
        {
            return (JobState::Failed, Some(disrupted(why)));
        }
        if let Some(why) = &summary.rejected {
            return (JobState::Failed, Some(Reason::new(ReasonClass::BindFailed, why.clone())));
        }
        if job.cancelled_by.is_some() || summary.members.ended == 0 || deleted.is_some() {
            return (JobState::Cancelled, Some(cancelled(job)));
        }
        if summary.failed > 0 {
            (JobState::Failed, Some(self.pods_failed(job, summary.failed)))
        } else {
            (JobState::Completed, None)
        }
    }

    /// Why a started job has members without a node.
    fn why_incomplete(job: &Job, summary: &MemberSummary) -> Option<Reason> {
        if let Some(volumes) = job.binds.volumes.as_ref().filter(|_| summary.in_flight > 0) {
            return Some(Reason::new(ReasonClass::ConstraintNotMet, volumes.clone()));
        }
        let wanted = summary.members.wanted.unwrap_or(0);
        if summary.waiting.is_empty() {
            if !summary.on_lost_nodes.is_empty() {
                let members = u32::try_from(summary.on_lost_nodes.len()).unwrap_or(u32::MAX);
                let distinct: BTreeSet<&SharedStr> = summary.on_lost_nodes.iter().collect();
                let nodes = distinct.into_iter().take(NODES).map(ToString::to_string).collect();
                let fact = Fact::MembersOnDeletedNodes { members, wanted, nodes };
                return Some(Reason::new(ReasonClass::NodesDown, fact));
            }
            if let Some((class @ ReasonClass::GroupNotFound, _)) = summary.problem {
                let name = job.key.name.to_string();
                return Some(Reason::new(class, Fact::PodGroupDeleted { name }));
            }
            if let Some((class, text)) = &summary.set_aside {
                return Some(Reason::message(*class, text));
            }
            let failing = |reason: &Reason| reason.class == ReasonClass::BindFailed && summary.in_flight > 0;
            return job.reason.clone().filter(failing).or_else(|| why_degraded(job, summary));
        }
        if let Some((class, text)) = &summary.problem {
            return Some(Reason::message(*class, text));
        }
        if may_join(summary) {
            return job.reason.clone().or_else(|| {
                let count = u32::try_from(summary.waiting.len()).unwrap_or(u32::MAX);
                Some(Reason::new(ReasonClass::Busy, Fact::MembersWaiting { count }))
            });
        }
        if summary.assigned == 0 && summary.in_flight == 0 {
            return Some(Reason::new(ReasonClass::Gathering, Fact::NodesDeleted));
        }
        let there = summary.assigned + u32::try_from(summary.waiting.len()).unwrap_or(u32::MAX);
        Some(Reason::new(ReasonClass::Gathering, waiting_for_members(there, wanted, true)))
    }

    /// Sets the planned end of members, and determines for a waiting job whether its own time limit comes first.
    pub(super) fn note_start_times(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(id).cloned() else { return };
        let holds = job.members.bound > 0 || job.pods.iter().any(|uid| self.bindings.is_assumed(uid));
        let planned_end = if job.started_at.is_some() && holds && !job.state.ended() {
            let recorded = |uid: &SharedStr| {
                let pod = self.delivered.pod(uid).filter(|pod| !pod.phase.ended())?;
                pod.record.as_ref()?.planned_end
            };
            let counted = || job.end_when_started_at(job.started_at?);
            job.planned_end.or_else(|| job.pods.iter().find_map(recorded)).or_else(counted)
        } else {
            None
        };
        let mut warnings = self.not_understood(&job);
        warnings.extend(job.unknown_marks.iter().cloned());
        let start = job.reservation.as_ref().map_or(self.now, |reservation| reservation.start);
        let wanted_end = job.duration.map(|seconds| start.saturating_add(seconds));
        if let Some(killed) =
            job.killed_at.filter(|killed| job.state.waiting() && wanted_end.is_some_and(|end| *killed < end))
        {
            warnings.push(if killed <= start {
                "the Job's activeDeadlineSeconds includes time in the queue and will end the Job before it can start".to_owned()
            } else {
                format!(
                    "the Job's activeDeadlineSeconds includes time in the queue: only {} s of run time remain",
                    killed.saturating_sub(start)
                )
            });
        }
        if let Some(job) = self.jobs.get_mut(id) {
            job.planned_end = planned_end;
            job.warnings = warnings;
        }
    }

    fn find_incomplete(&mut self, id: JobId, summary: &MemberSummary) {
        if !summary.waiting.is_empty() && summary.problem.is_none() && may_join(summary) {
            self.waiting.incomplete.insert(id);
            self.pass.wanted = true;
        } else {
            self.waiting.incomplete.remove(&id);
        }
    }
}

/// Maximum number of scheduling gates and nodes listed in a reason.
const GATES: usize = 16;
const NODES: usize = 16;

fn waiting_for_members(created: u32, wanted: u32, joining: bool) -> Fact {
    Fact::WaitingForMembers { created, wanted, gated: 0, gates: Vec::new(), joining }
}

/// What a started gang is missing if all its members are assigned, and what is done about it.
fn why_degraded(job: &Job, summary: &MemberSummary) -> Option<Reason> {
    let missing = summary.missing();
    if missing == 0 {
        return None;
    }
    let kept: BTreeSet<&str> = job.lost.iter().filter_map(|lost| lost.kept_on.as_deref()).collect();
    let because = match (kept.is_empty(), job.lost.is_empty()) {
        (false, _) => MissingMembers::Reserved,
        (true, false) => MissingMembers::NoRoom,
        (true, true) if summary.leaving_in_place > 0 => MissingMembers::Terminating,
        (true, true) if job.given_up > 0 => MissingMembers::GivenUp,
        (true, true) if summary.source.recreates => MissingMembers::NotReserved,
        (true, true) => MissingMembers::NotRecreated,
    };
    let nodes = kept.into_iter().map(str::to_owned).collect();
    let fact = Fact::MembersMissing { missing, wanted: summary.owed, because, nodes };
    Some(Reason::new(ReasonClass::Gathering, fact))
}

/// A started gang admits members one by one once assigned and waiting ones reach its minimum; one whose members are
/// all on deleted nodes is started again as a whole.
pub(super) fn may_join(summary: &MemberSummary) -> bool {
    let waiting = u32::try_from(summary.waiting.len()).unwrap_or(u32::MAX);
    let assigned = summary.assigned.saturating_add(summary.in_flight);
    summary.members.wanted.is_some() && assigned > 0 && assigned.saturating_add(waiting) >= summary.owed
}
