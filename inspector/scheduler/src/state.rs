//! The engine as a state machine: `step(now, events) -> effects`.
//!
//! One owner feeds it in order. A clone is a snapshot: it costs what changed, not what there is.

use std::sync::Arc;

use crate::event::{Effect, Event};
use crate::inventory::Inventory;
use crate::model::{PodSpec, SharedStr};
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
mod delivered;
mod ending;
mod evaluate;
mod grouping;
mod jobs;
mod let_go;
mod lifecycle;
mod members;
mod membership;
mod memory;
mod moved;
mod owed;
mod partial;
mod pass_state;
mod pod;
mod reasons;
mod refusals;
mod refused;
mod release;
mod remembered;
mod schedule;
mod summary;
mod tell;
mod tell_group;
mod told;
mod transitions;
mod trial;
mod unknown;
mod waiting;
mod work;

pub use crate::job::{
    Asked, ExitCause, HistoryEntry, Job, JobId, JobKey, JobState, LostMember, Members, Reason, ReasonClass,
    Reservation,
};
pub use answers::{CancelPlan, Finding};
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
use transitions::RefusedTransitions;
use waiting::Waiting;
use work::StepWork;

/// What can be configured.
#[derive(Clone, Debug)]
pub struct Settings {
    /// In the order in which they get nodes. The first one is the default.
    pub queues: Vec<QueueConfig>,
    /// `spec.schedulerName` of the Pods that are ours.
    pub scheduler_names: Vec<SharedStr>,
    /// Topology keys that are always levels of the graph.
    pub topology_keys: Vec<SharedStr>,
    /// Beginnings of keys of taints that controllers remove when a node has started up, besides those that are known
    /// to do so.
    pub startup_taints: Vec<SharedStr>,
    /// Seconds after which a gang that is bound only in part is given up (default 300).
    pub bind_deadline: i64,
    /// Seconds that the place of a member which a started gang lost is kept (default 600); 0 keeps none.
    pub lost_member_deadline: i64,
    /// What then becomes of it; none: Pods with a controller are released, others held.
    pub on_partial_bind: Option<OnPartialBind>,
    /// Seconds that ended jobs are kept (default 3600).
    pub keep_ended: i64,
    /// At most this many ended jobs are kept (default 10,000).
    pub keep_ended_max: usize,
    /// How many jobs at once may carry PodScheduled=False/Unschedulable (what cluster autoscalers look for).
    pub unschedulable_max: usize,
    /// The largest group that is taken (members).
    pub group_size_max: u32,
    /// Nodes that one step may look at before it hands the loop back (default 5,000,000); the next goes on.
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
    /// Whether it decides.
    ready: bool,
    /// When it began to.
    synced_at: i64,
    /// Whether everything that there is was delivered once, whoever leads.
    whole: bool,
    refused_transitions: RefusedTransitions,
    now: i64,
    work: StepWork,
}

impl State {
    /// An engine that knows nothing yet.
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
            ready: false,
            synced_at: 0,
            whole: false,
            refused_transitions: RefusedTransitions::default(),
            now: 0,
            work: StepWork::default(),
        }
    }

    /// Takes what happened, decides, and says what is wanted.
    ///
    /// `now` is in epoch seconds; a clock that was set back counts as standing still. Send another `Tick` at
    /// [`Self::next_wake`], and at once while [`Self::unfinished`].
    pub fn step(&mut self, now: i64, events: Vec<Event>) -> Vec<Effect> {
        self.now = self.now.max(now);
        // What is planned behind them is planned anew.
        self.pass.wanted |= self.inventory.prolong(self.now);
        for event in events {
            self.apply(event);
        }
        if self.whole {
            // Before that, what was delivered first would look like all of a gang, or like nobody's Pod; and a job
            // that is taken for ended takes in nobody any more.
            self.regroup_pods();
            self.forget_refusals();
            self.run_timers();
            self.evaluate_dirty();
        }
        if self.ready {
            self.complete_started();
            self.run_pass();
            self.evaluate_dirty();
            self.tell();
        }
        self.forget_ended();
        self.forget_memory();
        self.work.new_jobs.clear();
        std::mem::take(&mut self.work.effects)
    }

    fn is_ours(&self, pod: &PodSpec) -> bool {
        self.settings.scheduler_names.contains(&pod.scheduler_name)
    }

    /// Jobs of one name are told apart otherwise than before: wherever they are named, that changes.
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
