//! The engine as a state machine: `step(now, events) -> effects`.
//!
//! It has one owner, who passes events in order. A clone is a snapshot: it only costs what changed.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::constraint::volumes::ClaimKey;
use crate::event::{Effect, Event};
use crate::inventory::Inventory;
use crate::model::SharedStr;
use crate::queue::{OnPartialBind, QueueConfig};

mod announced;
mod answers;
mod apply;
mod ask;
mod assumed;
mod attempt;
mod belonging;
mod binding;
mod bindings;
mod claims;
mod delivered;
mod ending;
mod evaluate;
mod gate;
mod grouping;
mod jobs;
mod let_go;
mod lifecycle;
mod lineup;
mod members;
mod membership;
mod memory;
mod merged;
mod moved;
mod owed;
mod partial;
mod pass_state;
mod passed_over;
mod peering;
mod pod;
mod preferred;
mod queued;
mod reasons;
mod refusals;
mod refused;
mod release;
mod remembered;
mod schedule;
mod selectors;
mod stored;
mod summary;
mod tell;
mod tell_group;
mod told;
mod transitions;
mod trial;
mod uncreated;
mod unknown;
mod volumes;
mod waiting;
mod work;

pub use crate::job::{
    Asked, ExitCause, HistoryEntry, Job, JobId, JobKey, JobState, LostMember, Members, Reason, ReasonClass,
    Reservation,
};
pub use answers::{CancelPlan, FINDING_CLASSES, Finding};
pub use pass_state::PassReport;
pub use reasons::NamesFor;
pub use trial::Trial;

use announced::Announced;
use belonging::Belonging;
use bindings::Bindings;
use delivered::Delivered;
use jobs::Jobs;
use pass_state::PassState;
use remembered::Memory;
use selectors::Peering;
use transitions::RefusedTransitions;
use uncreated::Failures;
use waiting::Waiting;
use work::StepWork;

/// Configuration settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// In scheduling order. The first one is the default.
    pub queues: Vec<QueueConfig>,
    /// `spec.schedulerName` of the Pods to schedule.
    pub scheduler_names: Vec<SharedStr>,
    /// Topology keys that are always levels of the graph.
    pub topology_keys: Vec<SharedStr>,
    /// Key prefixes of taints that controllers remove once a node has started, in addition to the known ones.
    pub startup_taints: Vec<SharedStr>,
    /// Seconds after which a partially bound gang is held or released (default 300).
    pub bind_deadline: i64,
    /// Seconds that resources are reserved for the replacement of a lost member (default 600); 0 reserves none.
    pub lost_member_deadline: i64,
    /// What happens to a partially bound gang; none: Pods with a controller are released, others held.
    pub on_partial_bind: Option<OnPartialBind>,
    /// Seconds that finished jobs are kept (default 3600).
    pub keep_ended: i64,
    /// Maximum number of finished jobs kept (default 10,000).
    pub keep_ended_max: usize,
    /// Maximum number of jobs with PodScheduled=False/Unschedulable (which triggers cluster autoscalers).
    pub unschedulable_max: usize,
    /// Maximum size of a group (members).
    pub group_size_max: u32,
    /// Maximum number of nodes visited in one step (default 5,000,000); the next step continues.
    pub visits_per_step: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            queues: vec![QueueConfig::default()],
            scheduler_names: vec!["fluxion".into()],
            topology_keys: Vec::new(),
            startup_taints: Vec::new(),
            bind_deadline: 300,
            lost_member_deadline: 600,
            on_partial_bind: None,
            keep_ended: 3600,
            keep_ended_max: 10_000,
            unschedulable_max: 100,
            group_size_max: 100_000,
            visits_per_step: 5_000_000,
        }
    }
}

/// The engine's state.
#[derive(Clone, Debug)]
pub struct State {
    settings: Arc<Settings>,
    inventory: Inventory,
    delivered: Delivered,
    belonging: Belonging,
    jobs: Jobs,
    memory: Memory,
    waiting: Waiting,
    bindings: Bindings,
    announced: Announced,
    pass: PassState,
    peering: Peering,
    /// Pods without a node, by the claims that they mount.
    mounts: OrdMap<ClaimKey, OrdSet<SharedStr>>,
    /// Storage has changed since anything was found out about requests, but nobody waited for it.
    storage_stale: bool,
    failures: Failures,
    /// Whether it makes decisions.
    ready: bool,
    /// When it started to.
    synced_at: i64,
    /// Whether all watches have synced once, regardless of the leader.
    whole: bool,
    refused_transitions: RefusedTransitions,
    now: i64,
    work: StepWork,
}

impl State {
    /// An engine without any objects.
    pub fn new(settings: Settings) -> Self {
        let mut inventory = Inventory::new();
        inventory.set_levels(settings.topology_keys.iter().cloned());
        inventory.set_startup_taints(settings.startup_taints.iter().cloned());
        Self {
            settings: Arc::new(settings),
            inventory,
            delivered: Delivered::default(),
            belonging: Belonging::default(),
            jobs: Jobs::default(),
            memory: Memory::default(),
            waiting: Waiting::default(),
            bindings: Bindings::default(),
            announced: Announced::default(),
            pass: PassState::default(),
            peering: Peering::default(),
            mounts: OrdMap::new(),
            storage_stale: false,
            failures: Failures::default(),
            ready: false,
            synced_at: 0,
            whole: false,
            refused_transitions: RefusedTransitions::default(),
            now: 0,
            work: StepWork::default(),
        }
    }

    /// Processes events, makes decisions, and returns effects.
    ///
    /// `now` is in epoch seconds; a clock that is set back is treated as stopped. Send another `Tick` at
    /// [`Self::next_wake`], and immediately while [`Self::unfinished`].
    pub fn step(&mut self, now: i64, events: Vec<Event>) -> Vec<Effect> {
        self.receive(now, events);
        self.decide()
    }

    /// The first part of a step: processes events and evaluates the jobs that they change, but starts none.
    /// [`Self::decide`] must follow. In between, [`Self::snapshot`] is what an inspector that does not lead shows.
    pub fn receive(&mut self, now: i64, events: Vec<Event>) {
        self.now = self.now.max(now);
        // Plans behind these are recomputed.
        self.pass.wanted |= self.inventory.prolong(self.now);
        for event in events {
            self.apply(event);
        }
        if self.whole {
            // Before that, the objects received first would look like a whole gang, or like a Pod without an owner;
            // and a job that is considered finished accepts no members.
            self.regroup_pods();
            self.enter_queued();
            self.forget_failures();
            self.enter_uncreated();
            self.forget_refusals();
            self.run_timers();
            self.revise_peers();
            self.evaluate_dirty();
        }
    }

    /// The second part of a step: makes decisions, and returns the effects of both parts.
    pub fn decide(&mut self) -> Vec<Effect> {
        if self.ready {
            self.complete_started();
            self.place_resumed();
            self.run_pass();
            self.evaluate_dirty();
            self.tell();
        }
        self.forget_ended();
        self.forget_memory();
        self.work.new_jobs.clear();
        std::mem::take(&mut self.work.effects)
    }

    /// A clone for readers, without the work of the current step.
    #[must_use]
    pub fn snapshot(&mut self) -> Self {
        let work = std::mem::take(&mut self.work);
        let snapshot = self.clone();
        self.work = work;
        snapshot
    }

    /// Updates the jobs whose distinguishing names have changed, wherever they are mentioned.
    fn renamed(&mut self, jobs: impl IntoIterator<Item = JobId>) {
        for id in jobs {
            self.jobs.touch(id);
            let Some(job) = self.jobs.get(id).cloned() else { continue };
            for holder in job.pods.iter().cloned().chain(job.lost.iter().map(|lost| lost.holder(id))) {
                self.inventory.touch_node_of(&holder);
            }
        }
    }
}
