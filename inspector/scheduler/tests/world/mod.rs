//! A cluster in miniature around the engine: it carries out what the engine wants and reports it back, as the
//! API server and kubelets would.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, clippy::single_match_else, reason = "a test may panic")]

pub mod controllers;
pub mod owed;
pub mod past;
pub mod storage;

use std::collections::BTreeMap;
use std::sync::Arc;

use fluxion_scheduler::constraint::volumes::{StorageKey, StorageObject};
use fluxion_scheduler::constraint::{Expression, Operator, Term};
use fluxion_scheduler::event::{BindOutcome, Effect, Event};
use fluxion_scheduler::inventory::NodeSpec;
use fluxion_scheduler::model::{
    AllocationRecord, ControllerRef, GroupApi, GroupSpec, Marks, ObjectRef, OwnerDetail, OwnerSpec, Phase,
    PodSpec, SharedStr,
};
use fluxion_scheduler::resources::ResourceList;
use fluxion_scheduler::state::{Job, JobState, Settings, State};

use owed::Moment;

pub struct World {
    pub state: State,
    pub now: i64,
    pub pods: BTreeMap<SharedStr, PodSpec>,
    pub owners: BTreeMap<SharedStr, OwnerSpec>,
    pub groups: BTreeMap<SharedStr, GroupSpec>,
    pub nodes: BTreeMap<SharedStr, NodeSpec>,
    pub storage: BTreeMap<StorageKey, StorageObject>,
    /// Everything the engine wanted, in order.
    pub effects: Vec<Effect>,
    /// Answers to bindings; `None` carries them out.
    pub bind: fn(&ObjectRef, &SharedStr) -> Option<BindOutcome>,
    /// Whether bindings are carried out at all.
    pub binding: bool,
    /// Whether kube-scheduler binds what was pinned.
    pub kube_scheduler: bool,
    /// Each step as the cluster was after it; `None` notes nothing.
    pub moments: Option<Vec<Moment>>,
    pub restarted: bool,
}

impl Default for World {
    fn default() -> Self {
        Self::new(Settings::default())
    }
}

/// The scheduling gate of Pods that we place and kube-scheduler binds.
pub const GATE: &str = "fluxion.flux-framework.org/gate";

/// As admission leaves a Pod in mode `gate`.
pub fn gated(pod: &mut PodSpec) {
    pod.scheduler_name = "default-scheduler".into();
    pod.gates = vec![GATE.into()];
}

impl World {
    /// Two nodes with 2 cores each, and this bind deadline in seconds.
    pub fn of_two(bind_deadline: i64) -> Self {
        let mut world = Self::new(Settings { bind_deadline, ..Settings::default() });
        world.node("n1", "cpu=2000");
        world.node("n2", "cpu=2000");
        world
    }

    pub fn new(settings: Settings) -> Self {
        let mut world = Self {
            state: State::new(settings),
            now: 1_000_000,
            pods: BTreeMap::new(),
            owners: BTreeMap::new(),
            groups: BTreeMap::new(),
            nodes: BTreeMap::new(),
            storage: BTreeMap::new(),
            effects: Vec::new(),
            bind: |_, _| None,
            binding: true,
            kube_scheduler: true,
            moments: None,
            restarted: false,
        };
        world.step(vec![Event::Synced]);
        world
    }

    /// One event, and everything that follows from it at this moment.
    pub fn step(&mut self, mut events: Vec<Event>) {
        let mut binds = Vec::new();
        for _ in 0..1000 {
            self.state.receive(self.now, std::mem::take(&mut events));
            // This is shown, too.
            self.check();
            let effects = self.state.decide();
            self.check();
            for effect in effects {
                if let Effect::Bind { pod, node, record } = &effect
                    && self.binding
                {
                    match (self.bind)(pod, node) {
                        Some(outcome) => events.push(Event::Bound { pod: pod.uid.clone(), outcome }),
                        None => {
                            let known =
                                self.pods.get_mut(&pod.uid).expect("only Pods that are there are bound");
                            assert_eq!(known.node, None, "bound twice: {}", known.name);
                            if record.pin.is_some() && known.gates.is_empty() {
                                let outcome = BindOutcome::Gone("somebody else removed the gate".into());
                                events.push(Event::Bound { pod: pod.uid.clone(), outcome });
                                continue;
                            }
                            if record.pin.is_some() {
                                pin(known, node, record);
                                events
                                    .push(Event::Bound { pod: pod.uid.clone(), outcome: BindOutcome::Done });
                                events.push(Event::Pod(Box::new(known.clone())));
                                if !self.kube_scheduler {
                                    self.effects.push(effect);
                                    continue;
                                }
                            }
                            known.node = Some(node.clone());
                            known.scheduled_at = Some(self.now);
                            known.record = Some(record.clone());
                            known.phase = Phase::Running;
                            binds.push((pod.uid.clone(), node.clone()));
                            events.push(Event::Bound { pod: pod.uid.clone(), outcome: BindOutcome::Done });
                            events.push(Event::Pod(Box::new(known.clone())));
                        }
                    }
                }
                if let Effect::Reserved { pod, reservation } = &effect
                    && let Some(known) = self.pods.get_mut(&pod.uid)
                {
                    known.reserved.clone_from(reservation);
                    events.push(Event::Pod(Box::new(known.clone())));
                }
                events.extend(self.write_storage(&effect));
                self.effects.push(effect);
            }
            if events.is_empty() && !self.state.unfinished() {
                return self.note(binds);
            }
        }
        panic!("the engine does not come to rest");
    }

    /// Keeps the cluster as it is after a step, where that is asked for.
    fn note(&mut self, binds: Vec<(SharedStr, SharedStr)>) {
        let restarted = std::mem::take(&mut self.restarted);
        let Some(moments) = &mut self.moments else { return };
        let running = self.state.jobs().filter(|job| job.state == JobState::Running);
        let marked = |job: &Job| {
            let object = job.object.as_ref().map(|object| object.uid.clone());
            object.map(|uid| (uid, job.degraded))
        };
        moments.push(Moment {
            now: self.now,
            restarted,
            nodes: self.nodes.clone(),
            pods: self.pods.clone(),
            owners: self.owners.clone(),
            groups: self.groups.clone(),
            binds,
            running: running.filter_map(marked).collect(),
        });
    }

    /// The books are right, whatever happened.
    pub fn check(&self) {
        assert_eq!(fluxion_scheduler::check::check(self.state.inventory()), Vec::<String>::new());
        for node in self.state.inventory().nodes() {
            let bound = |pod: &&PodSpec| pod.node.as_ref() == Some(&node.spec.name) && !pod.phase.ended();
            let mut sum = ResourceList::default();
            for pod in self.pods.values().filter(bound) {
                sum = sum.checked_add(pod.needs.as_ref().unwrap()).unwrap();
            }
            for (name, amount) in sum.iter() {
                assert!(node.allocated.get(name) >= amount, "{}: {name}", node.spec.name);
            }
        }
    }

    pub fn at(&mut self, seconds: i64) {
        self.now += seconds;
        self.step(vec![Event::Tick]);
    }

    /// Lets time pass as the clock does, waking the engine when it asks for it.
    pub fn pass(&mut self, seconds: i64) {
        let until = self.now + seconds;
        while let Some(wake) = self.state.next_wake().filter(|wake| *wake <= until) {
            self.now = wake.max(self.now + 1);
            self.step(vec![Event::Tick]);
        }
        self.now = until;
        self.step(vec![Event::Tick]);
    }

    pub fn node(&mut self, name: &str, amounts: &str) {
        self.node_with(name, amounts, |_| ());
    }

    pub fn node_with(&mut self, name: &str, amounts: &str, change: impl FnOnce(&mut NodeSpec)) {
        let mut list = resources(amounts);
        if !list.contains("pods") {
            list = list.checked_add(&resources("pods=20")).unwrap();
        }
        let mut spec = NodeSpec {
            name: name.into(),
            uid: format!("node-{name}").into(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            unschedulable: false,
            ready: true,
            deleting: false,
            capacity: list.clone(),
            allocatable: list,
            problems: Vec::new(),
        };
        change(&mut spec);
        self.nodes.insert(name.into(), spec.clone());
        self.step(vec![Event::Node(Box::new(spec))]);
    }

    pub fn pod(&mut self, name: &str, amounts: &str) {
        self.pod_with(name, amounts, |_| ());
    }

    pub fn pod_with(&mut self, name: &str, amounts: &str, change: impl FnOnce(&mut PodSpec)) {
        let pod = self.make_pod(name, amounts, change);
        self.step(vec![Event::Pod(Box::new(pod))]);
    }

    pub fn make_pod(&mut self, name: &str, amounts: &str, change: impl FnOnce(&mut PodSpec)) -> PodSpec {
        let needs = resources(amounts).checked_add(&resources("pods=1")).unwrap();
        let mut pod = PodSpec {
            scheduler_name: "fluxion".into(),
            created: self.now,
            needs: Ok(Arc::new(needs)),
            ..PodSpec::new("default", name, format!("uid-{name}"))
        };
        change(&mut pod);
        self.pods.insert(pod.uid.clone(), pod.clone());
        pod
    }

    pub fn change_pod(&mut self, name: &str, change: impl FnOnce(&mut PodSpec)) {
        let pod = self.pods.values_mut().find(|pod| &*pod.name == name).expect("a known Pod");
        change(pod);
        let pod = pod.clone();
        self.step(vec![Event::Pod(Box::new(pod))]);
    }

    /// kube-scheduler binds the Pods that were pinned while it did not run.
    pub fn bind_pinned(&mut self) {
        let mut events = Vec::new();
        for pod in self.pods.values_mut() {
            let Some(pin) = pod.record.as_ref().and_then(|record| record.pin.clone()) else { continue };
            let open = pod.node.is_none() && !pod.deleting && !pod.phase.ended();
            if open && self.nodes.contains_key(&pin.node) {
                pod.node = Some(pin.node);
                pod.scheduled_at = Some(self.now);
                pod.phase = Phase::Running;
                events.push(Event::Pod(Box::new(pod.clone())));
            }
        }
        self.step(events);
    }

    pub fn end_pod(&mut self, name: &str, phase: Phase) {
        self.change_pod(name, |pod| pod.phase = phase);
    }

    pub fn delete_pod(&mut self, name: &str) {
        let uid = self.pods.values().find(|pod| &*pod.name == name).expect("a known Pod").uid.clone();
        self.pods.remove(&uid);
        self.step(vec![Event::PodGone(uid)]);
    }

    pub fn group(&mut self, name: &str, min: Option<i64>, level: Option<&str>) {
        let group = GroupSpec {
            api: GroupApi::Native,
            uid: format!("pg-{name}").into(),
            namespace: "default".into(),
            name: name.into(),
            api_version: "scheduling.k8s.io/v1beta1".into(),
            created: self.now,
            deleting: false,
            min_count: min,
            topology: level.map(Into::into),
            priority: None,
            labels: Marks::new(),
            annotations: Marks::new(),
            controller: None,
            scheduled: false,
            schedule_timeout: None,
        };
        self.groups.insert(group.uid.clone(), group.clone());
        self.step(vec![Event::Group(Box::new(group))]);
    }

    pub fn change_group(&mut self, name: &str, change: impl FnOnce(&mut GroupSpec)) {
        let group = self.groups.values_mut().find(|group| &*group.name == name).expect("a known PodGroup");
        change(group);
        let group = group.clone();
        self.step(vec![Event::Group(Box::new(group))]);
    }

    pub fn job_object(
        &mut self,
        name: &str,
        parallelism: i64,
        completions: i64,
        gang: bool,
    ) -> ControllerRef {
        let mut annotations = Marks::new();
        if gang {
            annotations.insert("fluxion.flux-framework.org/gang".into(), "true".into());
        }
        let owner = OwnerSpec {
            uid: format!("job-{name}").into(),
            namespace: "default".into(),
            api_version: "batch/v1".into(),
            kind: "Job".into(),
            name: name.into(),
            created: self.now,
            deleting: false,
            labels: Marks::new(),
            annotations,
            controller: None,
            scheduler: None,
            failure: None,
            detail: OwnerDetail::Job {
                parallelism,
                completions: Some(completions),
                succeeded: 0,
                failed_indexes: 0,
                active_deadline: None,
                start_time: None,
                complete: false,
                failed: None,
                ended_at: None,
                suspended: false,
                gang: None,
                template: None,
            },
        };
        self.owners.insert(owner.uid.clone(), owner.clone());
        let controller = ControllerRef {
            api_version: owner.api_version.clone(),
            kind: owner.kind.clone(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
        };
        self.step(vec![Event::Owner(Box::new(owner))]);
        controller
    }

    pub fn change_owner(&mut self, name: &str, change: impl FnOnce(&mut OwnerSpec)) {
        let owner = self.owners.values_mut().find(|owner| &*owner.name == name).expect("a known owner");
        change(owner);
        let owner = owner.clone();
        self.step(vec![Event::Owner(Box::new(owner))]);
    }

    /// A new engine that is told what the cluster holds, as after a kill.
    pub fn restart(&mut self) {
        self.state = State::new(self.state.settings().clone());
        self.restarted = true;
        let mut events: Vec<Event> =
            self.pods.values().map(|pod| Event::Pod(Box::new(pod.clone()))).collect();
        events.extend(self.storage.values().map(|object| Event::Storage(Box::new(object.clone()))));
        events.extend(self.nodes.values().map(|node| Event::Node(Box::new(node.clone()))));
        events.extend(self.groups.values().map(|group| Event::Group(Box::new(group.clone()))));
        events.extend(self.owners.values().map(|owner| Event::Owner(Box::new(owner.clone()))));
        events.push(Event::Synced);
        self.step(events);
    }

    pub fn job(&self, name: &str) -> &Job {
        self.state.job_named("default", name).unwrap_or_else(|| panic!("no job {name}: {:?}", self.names()))
    }

    pub fn names(&self) -> Vec<String> {
        self.state.jobs().map(|job| self.state.object_name(job)).collect()
    }

    pub fn state_of(&self, name: &str) -> JobState {
        self.job(name).state
    }

    /// `State k/n`: seen/wanted before the start, bound/wanted after.
    pub fn line(&self, name: &str) -> String {
        let job = self.job(name);
        let there = if job.state.waiting() { job.members.seen } else { job.members.bound };
        let wanted = job.members.wanted.map_or_else(|| "?".to_owned(), |wanted| wanted.to_string());
        format!("{} {there}/{wanted}", job.state.as_str())
    }

    /// All that a user is told about the job.
    pub fn told(&self, name: &str) -> String {
        let job = self.job(name);
        let reason =
            job.reason.as_ref().map(|reason| format!("{}: {}", reason.class.as_str(), reason.text()));
        let details = job
            .reason
            .as_ref()
            .map(|reason| fluxion_api::reason::details(&reason.facts, &str::to_owned).join("; "))
            .unwrap_or_default();
        format!("{} | {details} | {}", reason.unwrap_or_default(), job.warnings.join("; "))
    }

    pub fn node_of(&self, pod: &str) -> Option<&str> {
        self.pods.values().find(|known| &*known.name == pod).and_then(|pod| pod.node.as_deref())
    }

    pub fn bound(&self, prefix: &str) -> usize {
        self.pods
            .values()
            .filter(|pod| pod.name.starts_with(prefix) && pod.node.is_some() && !pod.phase.ended())
            .count()
    }
}

/// What an API server makes of the write that removes our gate.
fn pin(pod: &mut PodSpec, node: &SharedStr, record: &AllocationRecord) {
    assert_eq!(pod.gates, ["fluxion.flux-framework.org/gate".into()], "{}", pod.name);
    pod.gates.clear();
    pod.record = Some(record.clone());
    let name = Expression { key: "metadata.name".into(), operator: Operator::In, values: vec![node.clone()] };
    let mut constraint = (*pod.constraint).clone();
    for term in constraint.affinity.get_or_insert_with(|| vec![Term::default()]) {
        term.fields.push(name.clone());
    }
    pod.constraint = Arc::new(constraint);
}

/// `cpu=4000 memory=1024 nvidia.com/gpu=8`: cpu in milli.
pub fn resources(text: &str) -> ResourceList {
    text.split_whitespace()
        .map(|part| {
            let (name, amount) = part.split_once('=').expect("NAME=AMOUNT");
            (name.into(), amount.parse().expect("a number"))
        })
        .collect()
}

/// Label group marks.
pub fn in_group(name: &str, size: &str) -> impl FnOnce(&mut PodSpec) {
    let (name, size): (SharedStr, SharedStr) = (name.into(), size.into());
    move |pod| {
        pod.labels.insert("fluxion.flux-framework.org/group".into(), name);
        pod.labels.insert("fluxion.flux-framework.org/group-size".into(), size);
    }
}
