//! Queries, which don't change the state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::explain::WhyNot;
use crate::inventory::Inventory;
use crate::job::{Job, JobId, JobState};
use crate::model::{GroupSpec, ObjectRef, OwnerSpec, PodSpec, SharedStr};
use crate::queue::QueueConfig;
use crate::resources::ResourceList;
use crate::state::answers::{CancelPlan, Finding};
use crate::state::{Settings, State};

impl State {
    /// Whether it makes decisions: all watches have synced, and it is not paused.
    pub fn ready(&self) -> bool {
        self.ready
    }

    /// Whether all watches have synced once, so that the data is complete; regardless of the leader.
    pub fn whole(&self) -> bool {
        self.whole
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The time of the last step (epoch seconds).
    pub fn now(&self) -> i64 {
        self.now
    }

    /// All jobs, by namespace, kind, name and age.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.in_order_of_names().map(AsRef::as_ref)
    }

    /// One job.
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(id).map(AsRef::as_ref)
    }

    /// Incremented with every visible change of the job: itself, its members, its owners, its name. If it mentions
    /// other jobs, their revisions have to be considered as well.
    pub fn revision_of(&self, job: JobId) -> u64 {
        self.jobs.revision(job)
    }

    /// The job of this name (`job.lammps`), the newest if there are several; or an older one with the suffix `.UID5`.
    pub fn job_named(&self, namespace: &str, name: &str) -> Option<&Job> {
        let namespace: SharedStr = namespace.into();
        let of_name = |name: &str| self.jobs.named(&namespace, name);
        if let Some(ids) = of_name(name) {
            return self.job(*ids.last()?);
        }
        let (base, tail) = name.rsplit_once('.')?;
        of_name(base)?.iter().filter_map(|id| self.job(*id)).find(|job| tail == short_uid(job))
    }

    /// `KIND.NAME`, with the suffix `.UID5` for all but the newest of that name.
    pub fn object_name(&self, job: &Job) -> String {
        let name = job.key.object_name();
        let newest = self.jobs.named(&job.key.namespace, &name).and_then(|ids| ids.last().copied());
        if newest == Some(job.id) { name } else { format!("{name}.{}", short_uid(job)) }
    }

    /// Jobs that may start, in queue order; unsatisfiable jobs have no position.
    pub fn pending(&self, queue: &str) -> Vec<&Job> {
        let index = self.settings.queues.iter().position(|config| &*config.name == queue);
        self.waiting
            .in_order()
            .filter(|key| Some(key.queue) == index)
            .filter_map(|key| self.job(key.id))
            .filter(|job| job.state != JobState::Unsatisfiable)
            .collect()
    }

    /// The queues, in scheduling order.
    pub fn queues(&self) -> &[QueueConfig] {
        &self.settings.queues
    }

    /// The inventory.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// A Pod by its UID.
    pub fn pod(&self, uid: &str) -> Option<&PodSpec> {
        self.delivered.pod(uid).map(AsRef::as_ref)
    }

    /// An owner by its UID.
    pub fn owner(&self, uid: &str) -> Option<&OwnerSpec> {
        self.delivered.owner(uid).map(AsRef::as_ref)
    }

    /// A PodGroup by its UID.
    pub fn group(&self, uid: &str) -> Option<&GroupSpec> {
        self.delivered.group(uid).map(AsRef::as_ref)
    }

    /// The job of a Pod.
    pub fn job_of_pod(&self, uid: &str) -> Option<&Job> {
        self.belonging.job_of(uid).and_then(|id| self.job(id))
    }

    /// The job of a holder in the inventory: of a Pod, or of resources reserved for a lost member.
    pub fn job_of_holder(&self, holder: &str) -> Option<&Job> {
        self.job_of_pod(holder).or_else(|| {
            let (_, hold) = self.inventory.holding(holder)?;
            self.job(JobId(hold.job?))
        })
    }

    /// Why the job does not start now; `None` for jobs that are not waiting for nodes.
    pub fn why_not(&self, job: &Job) -> Option<WhyNot> {
        let request = job.request.as_ref().filter(|_| job.state.waiting())?;
        Some(self.why_of(job, request))
    }

    /// The node that a member is bound to, or being bound to.
    pub fn node_of(&self, pod: &PodSpec) -> Option<SharedStr> {
        pod.node.clone().or_else(|| self.bindings.assumed(&pod.uid).map(|assumed| assumed.node.clone()))
    }

    /// What has to be deleted to end the job permanently.
    pub fn cancel_plan(&self, job: &Job) -> CancelPlan {
        let mut targets: BTreeMap<SharedStr, ObjectRef> = BTreeMap::new();
        let mut also = BTreeSet::new();
        let mut ending = true;
        let mut pods = 0;
        for pod in job.pods.iter().filter_map(|uid| self.delivered.pod(uid)) {
            let top = self.topmost(pod);
            if pod.phase.ended() && top.is_none() {
                continue;
            }
            pods += u32::from(!pod.phase.ended());
            let (object, deleting) = match top {
                Some(owner) => (owner.object(), owner.deleting),
                None => (pod.object(), pod.deleting),
            };
            ending &= deleting;
            targets.insert(object.uid.clone(), object);
        }
        if let Some(owner) = job.object.as_ref().and_then(|object| self.delivered.owner(&object.uid))
            && targets.is_empty()
        {
            ending &= owner.deleting;
            targets.insert(owner.uid.clone(), owner.object());
        }
        if let Some(group) = self.group_of(job).filter(|group| group.controller.is_none()) {
            ending &= group.deleting;
            targets.insert(group.uid.clone(), group.object());
        }
        for owner in targets.values().filter(|object| !matches!(&*object.kind, "Pod" | "PodGroup")) {
            for pod in self.pods_below(&owner.uid) {
                if self.belonging.job_of(&pod.uid) != Some(job.id) && !pod.phase.ended() {
                    also.insert(format!("pod/{}", pod.name));
                }
            }
        }
        CancelPlan {
            ending: ending && !targets.is_empty(),
            targets: targets.into_values().collect(),
            also_deletes: also.into_iter().collect(),
            frees: if job.started_at.is_some() { (*job.holds).clone() } else { ResourceList::default() },
            pods,
        }
    }

    /// The topmost controller of a Pod, below a `CronJob`: it would recreate the Pod.
    fn topmost(&self, pod: &PodSpec) -> Option<&OwnerSpec> {
        let direct = self.delivered.owner(&pod.controller.as_ref()?.uid)?;
        let above = self.controllers_of(direct);
        above.into_iter().take_while(|owner| &*owner.kind != "CronJob").last().or(Some(direct.as_ref()))
    }

    pub(super) fn pods_below(&self, owner: &SharedStr) -> Vec<&PodSpec> {
        let mut open = vec![owner.clone()];
        let mut seen = BTreeSet::new();
        let mut pods = Vec::new();
        while let Some(uid) = open.pop() {
            if !seen.insert(uid.clone()) {
                continue;
            }
            pods.extend(self.delivered.pods_of_owner(&uid).filter_map(|pod| self.pod(pod)));
            open.extend(self.delivered.owners_of_owner(&uid).cloned());
        }
        pods
    }

    /// All problems, and what to do about each; empty when healthy.
    pub fn audit(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for node in self.inventory.nodes() {
            if !node.deficit.is_empty() {
                findings.push(Finding {
                    class: "Overcommitted",
                    object: format!("node/{}", node.spec.name),
                    text: format!(
                        "its Pods request more than the node has (excess: {}): the kubelet may reject or evict some of \
                         them; check for Pods bound by other schedulers and for failed devices",
                        amounts(&node.deficit)
                    ),
                });
            }
        }
        findings.extend(self.refusing_nodes());
        findings.extend(self.refused_transitions.finding());
        for node in self.inventory.nodes().filter(|node| !node.spec.problems.is_empty()) {
            findings.extend(node.spec.problems.iter().map(|problem| Finding {
                class: "NotUnderstood",
                object: format!("node/{}", node.spec.name),
                text: problem.to_string(),
            }));
        }
        for job in self.jobs.iter() {
            let object = format!("{}/{}", job.key.namespace, job.key.display());
            let wanted = job.members.wanted.unwrap_or(0);
            let late =
                job.started_at.is_some_and(|at| at.saturating_add(self.settings.bind_deadline) <= self.now);
            let there = job.members.bound.saturating_add(job.members.ended);
            if matches!(job.state, JobState::Running | JobState::Binding) && there < wanted && late {
                let why = match &job.binds.why {
                    Some(why) => {
                        format!(
                            "the others could not be bound ({}): cancel the job, or fix what prevents binding",
                            why.text()
                        )
                    }
                    None => "the others are missing: cancel the job, or recreate the missing Pods".to_owned(),
                };
                let text = format!("{} of {wanted} members are bound; {why}", job.members.bound);
                findings.push(Finding { class: "PartlyBound", object: object.clone(), text });
            }
            if job.given_up > 0 {
                let text = format!(
                    "{} of {wanted} members were lost and not replaced within {} s, so no resources are reserved for them any longer: recreate the Pods, or cancel the job",
                    job.given_up, self.settings.lost_member_deadline
                );
                findings.push(Finding { class: "LostMember", object: object.clone(), text });
            }
            findings.extend(self.not_understood(job).into_iter().map(|text| Finding {
                class: "NotUnderstood",
                object: object.clone(),
                text,
            }));
            findings.extend(self.not_evicted(job).map(|text| Finding {
                class: "NotEvicted",
                object: object.clone(),
                text,
            }));
            findings.extend(self.refused_bindings(job).map(|text| Finding {
                class: "BindingRefused",
                object: object.clone(),
                text,
            }));
            if let Some(reason) = job.disruption() {
                let text = format!("members were lost ({reason}): use dedicated nodes or a higher priority");
                findings.push(Finding { class: "Preempted", object: object.clone(), text });
            }
            for pod in job.pods.iter().filter_map(|uid| self.delivered.pod(uid)) {
                if let Some(reason) = pod.rejection() {
                    let node = pod.node.as_deref().unwrap_or("its node");
                    let full = reason.starts_with("OutOf");
                    let why =
                        if full { "; another scheduler bound Pods to the node at the same time" } else { "" };
                    let text = format!("the kubelet of {node} rejected Pod {}: {reason}{why}", pod.name);
                    findings.push(Finding { class: "RejectedByKubelet", object: object.clone(), text });
                }
            }
        }
        findings.extend(crate::check::check(&self.inventory).into_iter().map(|text| Finding {
            class: "Invariant",
            object: "engine".to_owned(),
            text,
        }));
        findings.sort();
        findings
    }
}

/// `cpu 2.5, memory 1.1Ti`.
fn amounts(list: &ResourceList) -> String {
    let shown = |(resource, quantity): (&Arc<str>, u64)| {
        format!("{resource} {}", fluxion_text::quantity::shown(resource, quantity))
    };
    list.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn short_uid(job: &Job) -> String {
    job.key.uid.chars().filter(char::is_ascii_alphanumeric).take(5).collect()
}
