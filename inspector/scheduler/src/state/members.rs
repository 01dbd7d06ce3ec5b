//! Members of a job: counts, and total requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fluxion_text::natural_order;

use fluxion_api::reason::Fact;

use crate::job::{Job, Members, ReasonClass};
use crate::model::{Marks, OwnerDetail, OwnerSpec, PodSpec, SharedStr};
use crate::request::Request;
use crate::resources::ResourceList;
use crate::state::State;
use crate::state::membership::{Membership, OWNERS_DEEP, Size};
use crate::state::pod::avoiding;
use crate::state::summary::{MemberSummary, Source};
use crate::{duration, marks};

/// Maximum number of problems listed for a job's Pods.
const PROBLEMS_MAX: usize = 10;

impl MemberSummary {
    /// Members of which a first start includes as many as fit; none if too few exist.
    pub(super) fn starters(&self) -> Option<&[Arc<PodSpec>]> {
        let size = self.start_size()? as usize;
        let there = if size == 0 { 0 } else { self.waiting.len() };
        self.waiting.get(..there.max(size))
    }

    /// Number of members that have to start together, also if the gang continues after some have finished.
    pub(super) fn start_size(&self) -> Option<u32> {
        let wanted = self.members.wanted?;
        // A member created after all required ones have succeeded is on its own.
        Some(if self.continuing { self.owed.max(1) } else { wanted })
    }

    /// Number of members that a started gang should have, but which are neither assigned nor being bound.
    pub(super) fn missing(&self) -> u32 {
        self.owed.saturating_sub(self.assigned.saturating_add(self.in_flight))
    }

    /// Whether resources are reserved for the missing members.
    pub(super) fn replaceable(&self) -> bool {
        let Source { recreates, going, suspended } = self.source;
        recreates && !going && !suspended && self.assigned.saturating_add(self.in_flight) > 0
    }
}

impl State {
    /// Evaluates all members of a job.
    pub(super) fn summary(&self, job: &Job) -> MemberSummary {
        let mut pods: Vec<Arc<PodSpec>> =
            job.pods.iter().filter_map(|uid| self.delivered.pod(uid)).cloned().collect();
        pods.sort_by(|a, b| natural_order(&a.name, &b.name).then_with(|| a.uid.cmp(&b.uid)));
        let live = || pods.iter().filter(|pod| !pod.phase.ended());
        let mut summary = MemberSummary {
            members: Members::default(),
            holds: ResourceList::default(),
            waiting: Vec::new(),
            in_flight: 0,
            assigned: 0,
            on_lost_nodes: Vec::new(),
            gates: BTreeSet::new(),
            live: 0,
            deleting: 0,
            succeeded: 0,
            failed: 0,
            continuing: false,
            creatable: None,
            owed: 0,
            leaving_in_place: 0,
            displaced: Vec::new(),
            sibling: None,
            source: Source::default(),
            problem: None,
            set_aside: None,
            duration: None,
            limit: None,
            priority: live().map(|pod| pod.priority).max().unwrap_or(job.priority),
            queue: self.settings.queues.first().map_or_else(|| "default".into(), |queue| queue.name.clone()),
            created: live().map(|pod| pod.created).min().unwrap_or(job.created),
            level: None,
            killed_at: None,
            disruption: None,
            deleted_ended: false,
            rejected: None,
        };
        for pod in &pods {
            self.count(&mut summary, pod);
        }
        if let Some(sets) = self.queued(job) {
            self.count_queued(job, &sets, &mut summary);
            pods.extend(sets.into_iter().map(|(template, _)| template));
        }
        if job.uncreated
            && let Some(object) = &job.object
        {
            summary.members.wanted = self.owner_needs(&object.uid).ok();
        }
        self.wanted(job, &pods, &mut summary);
        self.continuation(job, &pods, &mut summary);
        self.settings_of(job, &pods, &mut summary);
        summary
    }

    /// Labels common to all members, including finished ones; none without members.
    pub(super) fn shared_labels(&self, job: &Job) -> Option<Marks> {
        let mut pods = job.pods.iter().filter_map(|uid| self.delivered.pod(uid));
        let mut shared = pods.next()?.labels.clone();
        for pod in pods {
            if shared.iter().any(|(key, value)| pod.labels.get(key) != Some(value)) {
                shared.retain(|key, value| pod.labels.get(key) == Some(value));
            }
        }
        Some(shared)
    }

    fn count(&self, summary: &mut MemberSummary, pod: &Arc<PodSpec>) {
        let let_go = self.bindings.let_go(&pod.uid).is_some();
        if let Some(reason) = pod.disruption.as_ref().filter(|_| !let_go) {
            summary.disruption = Some(reason.clone());
        }
        if pod.phase.ended() {
            summary.members.ended += 1;
            summary.deleted_ended |= pod.deleting && pod.disruption.is_none();
            if pod.phase == crate::model::Phase::Succeeded {
                summary.succeeded += 1;
            } else {
                summary.failed += 1;
                if let Some(reason) = pod.rejection() {
                    let (pod, reason) = (pod.name.to_string(), reason.to_string());
                    summary.rejected = Some(Fact::Rejected { pod, reason });
                }
            }
            return;
        }
        summary.live += 1;
        summary.deleting += u32::from(pod.deleting || let_go);
        if let Ok(needs) = &pod.needs
            && let Ok(sum) = summary.holds.checked_add(needs)
        {
            summary.holds = sum;
        }
        if let_go {
            return;
        }
        if self.is_gated(pod) {
            summary.members.gated += 1;
            summary.gates.extend(self.foreign_gates(pod).cloned());
            return;
        }
        summary.members.seen += u32::from(!pod.deleting);
        if let Some(node) = &pod.node {
            summary.members.bound += 1;
            if self.ready && !self.inventory.has_node(node) {
                summary.on_lost_nodes.push(node.clone());
                summary.displaced.push(pod.clone());
            } else if !pod.deleting {
                summary.assigned += 1;
                summary.sibling.get_or_insert_with(|| pod.clone());
            } else if self.inventory.takes(node, &pod.constraint) {
                summary.leaving_in_place += 1;
            } else {
                summary.displaced.push(pod.clone());
            }
            summary.members.running += u32::from(pod.phase == crate::model::Phase::Running);
        } else if self.bindings.is_assumed(&pod.uid) {
            summary.in_flight += 1;
        } else if !pod.deleting && !self.bindings.is_unbindable(&pod.uid) {
            summary.waiting.push(pod.clone());
        }
    }

    /// Number of members required, and problems with their specifications.
    fn wanted(&self, job: &Job, pods: &[Arc<PodSpec>], summary: &mut MemberSummary) {
        let open = |pod: &&Arc<PodSpec>| !pod.phase.ended() && !pod.deleting;
        let mut said: Vec<(&Arc<PodSpec>, &Membership)> = Vec::new();
        for pod in pods.iter().filter(open).chain(pods.iter().filter(|pod| !open(pod))) {
            if let Some(membership) = self.belonging.membership(&pod.uid) {
                said.push((pod, membership));
            }
        }
        let live: Vec<_> = said.iter().filter(|(pod, _)| open(pod)).copied().collect();
        let said = if live.is_empty() { said } else { live };
        let mut sizes: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        let mut what = "size";
        for (pod, membership) in &said {
            let size = match &membership.size {
                Size::Given { size, what: mark } => {
                    what = mark;
                    Ok(*size)
                }
                Size::OwnerNeeds { owner } => {
                    self.owner_needs(owner).map_err(|text| (ReasonClass::InvalidRequest, text))
                }
                Size::GangOfOwner { size, owner } => {
                    Ok(self.owner_needs(owner).map_or(*size, |left| left.min(*size)))
                }
                Size::Unknown { class, text } => Err((*class, text.clone())),
            };
            match size {
                Ok(size) => sizes.entry(size).or_default().push(&pod.name),
                Err((class, text)) => {
                    let problem = || (class, format!("Pod {}: {text}", marks::shorten(&pod.name)));
                    summary.problem.get_or_insert_with(problem);
                }
            }
        }
        if summary.problem.is_none() && sizes.len() > 1 {
            let parts: Vec<String> = sizes
                .iter()
                .map(|(size, names)| {
                    format!("{size} ({}{})", names[0], if names.len() > 1 { ", …" } else { "" })
                })
                .collect();
            let text = format!(
                "members have different values of {what}: {}; the value must be the same for all members",
                parts.join(", ")
            );
            summary.problem = Some((ReasonClass::SizesDisagree, text));
        }
        // If there is a problem, the previous number still shows the progress.
        let wanted = sizes.keys().next().copied().filter(|_| summary.problem.is_none());
        summary.members.wanted = wanted.or(summary.members.wanted).or(job.members.wanted);
        let schedulers: BTreeSet<&str> = pods.iter().filter(open).map(|pod| &*pod.scheduler_name).collect();
        if schedulers.len() > 1 && summary.problem.is_none() {
            let names: Vec<&str> = schedulers.into_iter().collect();
            summary.problem = Some((
                ReasonClass::InvalidRequest,
                format!(
                    "all Pods of a group must have the same schedulerName, but these have {}",
                    marks::shorten(&names.join(", "))
                ),
            ));
        }
        if let Some(pod) = self.slipped_by(pods).filter(|_| summary.problem.is_none()) {
            let name = marks::shorten(&pod.name);
            let text = format!("Pod {name} has no scheduling gate {}: kube-scheduler places it", marks::GATE);
            summary.problem = Some((ReasonClass::Held, text));
        }
        if summary.problem.is_none() {
            self.set_aside(summary);
        }
    }

    /// Whether the gang continues after members have finished, and how many it should have: both are derived from the
    /// API server's objects, so that a restart gives the same result.
    fn continuation(&self, job: &Job, pods: &[Arc<PodSpec>], summary: &mut MemberSummary) {
        let mut controllers: BTreeSet<Option<&SharedStr>> =
            pods.iter().map(|pod| pod.controller.as_ref().map(|controller| &controller.uid)).collect();
        if pods.is_empty() {
            let owner = job.object.as_ref().filter(|object| self.delivered.has_owner(&object.uid));
            controllers.extend(owner.map(|object| Some(&object.uid)));
        }
        let ours = |pod: &&Arc<PodSpec>| {
            self.belonging.membership(&pod.uid).is_some_and(|membership| membership.key == job.group)
        };
        let siblings = controllers.iter().flatten().flat_map(|uid| self.delivered.pods_of_owner(uid));
        let siblings = siblings.filter_map(|uid| self.delivered.pod(uid)).filter(ours);
        let bare = pods.iter().filter(|pod| pod.controller.is_none());
        let owners: Vec<&OwnerSpec> = controllers
            .iter()
            .flatten()
            .filter_map(|uid| self.delivered.owner(uid))
            .map(AsRef::as_ref)
            .collect();
        let progressed = |owner: &&OwnerSpec| matches!(owner.detail, OwnerDetail::Job { succeeded, failed_indexes, .. } if succeeded + failed_indexes > 0);
        let alone = job.object.as_ref().is_some_and(|object| &*object.kind == "Pod");
        summary.continuing = !alone
            && (owners.iter().any(progressed)
                || siblings
                    .chain(bare)
                    .any(|pod| pod.phase.ended() && pod.node.is_some() && !job.binds.gave_up(pod)));
        summary.creatable = controllers.iter().try_fold(0_u32, |sum, controller| {
            let left = self.owner_needs((*controller)?).ok()?;
            Some(sum.saturating_add(left))
        });
        let bare_done = pods
            .iter()
            .filter(|pod| pod.controller.is_none() && pod.phase == crate::model::Phase::Succeeded)
            .count();
        let wanted = summary.members.wanted.unwrap_or(0);
        let wanted = wanted.saturating_sub(u32::try_from(bare_done).unwrap_or(u32::MAX));
        summary.owed = summary.creatable.map_or(wanted, |left| left.min(wanted));
        let group = job.pods.iter().find_map(|pod| self.belonging.membership(pod)?.group.as_ref());
        let group = group.and_then(|uid| self.delivered.group(uid));
        summary.source.recreates = group.is_some() || controllers.iter().any(Option::is_some);
        let orphan = |pod: &Arc<PodSpec>| {
            let observed = pod.controller.as_ref().filter(|controller| self.delivered.observes(controller));
            !pod.phase.ended()
                && observed.is_some_and(|controller| !self.delivered.has_owner(&controller.uid))
        };
        summary.source.going = group.is_some_and(|group| group.deleting)
            || owners.iter().any(|owner| owner.deleting)
            || pods.iter().any(orphan);
        summary.source.suspended = owners.iter().any(|owner| owner.detail.suspended());
    }

    /// Queue, priority, time limits and topology, from the Pods and their owners.
    fn settings_of(&self, job: &Job, pods: &[Arc<PodSpec>], summary: &mut MemberSummary) {
        let first = pods.iter().find(|pod| !pod.phase.ended()).or(pods.first());
        let membership = first.and_then(|pod| self.belonging.membership(&pod.uid));
        let group = membership
            .and_then(|membership| membership.group.as_ref())
            .and_then(|uid| self.delivered.group(uid));
        let direct =
            first.and_then(|pod| pod.controller.as_ref()).and_then(|owner| self.delivered.owner(&owner.uid));
        let owners: Vec<_> = direct
            .into_iter()
            .map(Arc::as_ref)
            .chain(direct.into_iter().flat_map(|owner| self.controllers_of(owner)))
            .collect();
        let annotation = |key: &str| {
            let on_group = group.and_then(|group| group.annotations.get(key));
            let on_pod = first.and_then(|pod| pod.annotations.get(key));
            on_group.or(on_pod).or_else(|| owners.iter().find_map(|owner| owner.annotations.get(key)))
        };
        if let Some(group) = group {
            summary.level.clone_from(&group.topology);
            summary.created = group.created;
            summary.priority = group.priority.unwrap_or(summary.priority);
            if group.deleting {
                let text = format!("PodGroup {} is being deleted: no Pods are started", group.name);
                summary.problem.get_or_insert((ReasonClass::GroupNotFound, text));
            }
        }
        if owners.len() > OWNERS_DEEP {
            let text =
                format!("the chain of owner references is longer than {OWNERS_DEEP} or contains a cycle");
            summary.problem.get_or_insert((ReasonClass::InvalidRequest, text));
        }
        if let Some(object) = job.object.as_ref().and_then(|object| self.delivered.owner(&object.uid)) {
            summary.created = object.created;
        }
        if let Some(name) = annotation(marks::QUEUE) {
            if let Some(queue) = self.settings.queues.iter().find(|queue| queue.name == *name) {
                summary.queue = queue.name.clone();
            } else {
                let known: Vec<&str> = self.settings.queues.iter().map(|queue| &*queue.name).collect();
                let text =
                    format!("queue '{}' not found: must be {}", marks::shorten(name), known.join(", "));
                summary.problem.get_or_insert((ReasonClass::InvalidRequest, text));
            }
        }
        let default = self.settings.queues.iter().find(|queue| queue.name == summary.queue);
        summary.duration = default.and_then(|queue| queue.default_duration);
        let none_left = pods.iter().all(|pod| pod.phase.ended());
        let limits: Option<Vec<i64>> = pods
            .iter()
            .filter(|pod| none_left || !pod.phase.ended())
            .map(|pod| pod.active_deadline)
            .collect();
        let of_pods = limits.and_then(|limits| limits.into_iter().max());
        let of_job = owners.iter().find_map(|owner| match owner.detail {
            OwnerDetail::Job { active_deadline: Some(limit), start_time, .. } => Some((limit, start_time)),
            _ => None,
        });
        if let Some((limit, Some(start))) = of_job {
            summary.killed_at = Some(start.saturating_add(limit));
        }
        summary.limit = [of_pods, of_job.map(|(limit, _)| limit)].into_iter().flatten().min();
        match annotation(marks::DURATION).map(|text| (text, duration::parse(text))) {
            // A plan beyond the Pods' limit would be wrong. The rest of a Job's limit is known at its start.
            Some((_, Ok(seconds))) => {
                summary.duration = Some(of_pods.map_or(seconds, |limit| limit.min(seconds)));
            }
            Some((text, Err(error))) => {
                let text = format!("invalid {} '{}': {error}", marks::DURATION, marks::shorten(text));
                summary.problem.get_or_insert((ReasonClass::InvalidRequest, text));
            }
            None => summary.duration = summary.limit.or(summary.duration),
        }
    }

    /// Parts of the members that could not be interpreted: each problem once, with the Pods concerned.
    pub(super) fn not_understood(&self, job: &Job) -> Vec<String> {
        let pods = job.pods.iter().filter_map(|uid| self.delivered.pod(uid));
        let odd = pods.filter(|pod| !pod.problems.is_empty() && !pod.phase.ended() && self.is_ours(pod));
        let mut found: BTreeMap<&SharedStr, (&SharedStr, usize)> = BTreeMap::new();
        for (pod, problem) in odd.flat_map(|pod| pod.problems.iter().map(move |problem| (pod, problem))) {
            found.entry(problem).or_insert((&pod.name, 0)).1 += 1;
        }
        let more = found.len().saturating_sub(PROBLEMS_MAX);
        let mut listed: Vec<String> = found
            .into_iter()
            .take(PROBLEMS_MAX)
            .map(|(problem, (name, count))| match count {
                1 => format!("Pod {name}: {problem}"),
                count => format!("Pod {name} and {} more: {problem}", count - 1),
            })
            .collect();
        if more > 0 {
            listed.push(format!("{more} more problems of this kind"));
        }
        listed
    }

    /// Members that can't be bound are set aside if there are enough others.
    fn set_aside(&self, summary: &mut MemberSummary) {
        let problem =
            |pod: &Arc<PodSpec>| pod_problem(pod, self.at_gate(pod)).or_else(|| self.missing_volume(pod));
        let problems: Vec<_> = summary.waiting.iter().map(problem).collect();
        let fit = problems.iter().filter(|problem| problem.is_none()).count();
        let there =
            u32::try_from(fit).unwrap_or(u32::MAX).saturating_add(summary.assigned + summary.in_flight);
        let enough = summary.members.wanted.is_some_and(|wanted| there >= wanted);
        if enough {
            let mut kept = problems.iter().map(Option::is_none);
            summary.waiting.retain(|_| kept.next().unwrap_or(true));
        }
        let first = problems.into_iter().flatten().next();
        *(if enough { &mut summary.set_aside } else { &mut summary.problem }) = first;
    }

    /// Why the Pod's volumes can't be used on any node yet.
    fn missing_volume(&self, pod: &PodSpec) -> Option<(ReasonClass, String)> {
        let why = self.volumes_of(pod)?.err()?;
        Some((ReasonClass::ConstraintNotMet, format!("Pod {}: {why}", marks::shorten(&pod.name))))
    }

    /// The request of the first start: all waiting members, with the required number as the minimum.
    pub(super) fn first_request(&self, job: &Job, summary: &MemberSummary) -> Option<Request> {
        if summary.problem.is_some() {
            return None;
        }
        let members = summary.starters()?;
        let size = summary.start_size()?;
        Some(Request {
            shapes: avoiding(self.shapes(members), &self.avoided(job)),
            minimum: (members.len() > size as usize).then_some(size),
            level: summary.level.clone(),
            domain: None,
            duration: summary.duration,
        })
    }
}

/// Why this Pod can't be placed, regardless of free resources. Of a Pod that kube-scheduler binds, it checks most of what
/// we don't support.
fn pod_problem(pod: &PodSpec, checked_later: bool) -> Option<(ReasonClass, String)> {
    use crate::model::Unsupported;
    let name = marks::shorten(&pod.name);
    if let Err(error) = &pod.needs {
        return Some((ReasonClass::InvalidRequest, format!("Pod {name}: {error}")));
    }
    let what = match pod.unsupported.iter().find(|_| !checked_later)? {
        Unsupported::ResourceClaim(claim) => {
            format!(
                "ResourceClaims ({}) are not supported: they are allocated by kube-scheduler",
                marks::shorten(claim)
            )
        }
        Unsupported::PodTerms(why) => why.to_string(),
    };
    Some((ReasonClass::UnsupportedConstraint, format!("Pod {name}: {what}")))
}
