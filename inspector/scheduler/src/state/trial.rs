//! What-if: the same decisions on a clone, which changes nothing.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::event::Event;
use crate::inventory::Inventory;
use crate::job::{Job, JobId, JobState};
use crate::model::SharedStr;
use crate::placement::{NodePolicy, place_now, satisfiable};
use crate::queue::{self, Carry, PassJob, Planning, QueueConfig, QueuePolicy};
use crate::request::{Placement, Request};
use crate::state::State;
use crate::state::answers::CancelPlan;

/// Maximum number of steps for a clone to settle.
const STEPS: usize = 8;
/// Maximum number of nodes and alternatives examined for an estimate.
const ESTIMATE_VISITS: u64 = 20_000_000;

/// A job's position in its queue, for trying what would start there.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The inventory as of the job's turn in the pass.
    inventory: Inventory,
    now: i64,
    policy: NodePolicy,
    default_duration: Option<i64>,
}

impl Trial {
    /// Where the request would start now in the job's position.
    pub fn start(&self, request: &Request) -> Option<Placement> {
        let request = Request { duration: request.duration.or(self.default_duration), ..request.clone() };
        place_now(&self.inventory, &request, self.now, self.policy).ok()
    }

    /// Whether the request could ever start here.
    pub fn possible(&self, request: &Request) -> bool {
        satisfiable(&self.inventory, request)
    }
}

impl State {
    /// What a pass would find in this job's position if its request were a different one: after the reservations of
    /// the jobs before it. None if no pass would consider it, because its queue does not allow overtaking, or because
    /// of its depth.
    pub fn trial(&self, job: &Job) -> Option<Trial> {
        let rested = self.rested()?;
        let state = &*rested;
        let job =
            state.job(job.id).filter(|job| state.ready && job.state.waiting() && job.request.is_some())?;
        let key = state.order_key(job);
        let config = state.settings.queues.get(key.queue)?;
        let before =
            state.waiting.up_to(&key).filter(|other| **other != key).filter(|other| other.queue == key.queue);
        let before = before
            .filter_map(|other| state.job(other.id))
            .filter(|other| matches!(other.state, JobState::Pending | JobState::Reserved))
            .count();
        if before >= config.queue_depth || (config.policy == QueuePolicy::Fcfs && before > 0) {
            return None;
        }
        let mut inventory = state.inventory.clone();
        let promised: Vec<u32> = inventory.reservations().map(|(id, _)| id).collect();
        for id in promised {
            // Later jobs yield; if reservations are kept, only those with a lower priority.
            let yields = |other: &Job| {
                let other = state.order_key(other);
                let kept = config.keeps() && other.queue == key.queue && other.id != key.id;
                if kept { other.priority > key.priority } else { other >= key }
            };
            if state.job(JobId(id)).is_none_or(yields) {
                inventory.clear_reservation(id);
            }
        }
        Some(Trial {
            inventory,
            now: state.now,
            policy: config.node_policy,
            default_duration: config.default_duration,
        })
    }

    /// When a waiting job without a reservation would start if every job before it, and the job itself, got a
    /// reservation now; and whether that depends on an assumption. None if no such plan can be made, or only with too
    /// much work.
    pub fn estimate(&self, job: &Job) -> Option<(i64, bool)> {
        let rested = self.rested()?;
        let state = &*rested;
        let waits = |job: &&Job| matches!(job.state, JobState::Pending | JobState::Reserved);
        let job = state.job(job.id).filter(|job| state.ready && waits(job) && job.request.is_some())?;
        let key = state.order_key(job);
        let config = state.settings.queues.get(key.queue)?;
        // The reservations of jobs behind it are kept, too.
        let keeps = config.keeps();
        let jobs: Vec<PassJob> = state
            .waiting
            .in_order()
            .filter(|other| other.queue == key.queue && (keeps || **other <= key))
            .filter_map(|other| state.job(other.id).filter(waits))
            .filter_map(|other| {
                let request = other.request.clone()?;
                Some(PassJob { id: other.id.0, priority: other.priority.into(), request })
            })
            .collect();
        let planning = if keeps { Planning::Compress } else { Planning::Replan };
        let memory = if keeps { state.pass.memory.get(&config.name).cloned() } else { None };
        let config = QueueConfig {
            policy: QueuePolicy::Conservative,
            planning,
            queue_depth: usize::MAX,
            max_reservation_depth: usize::MAX,
            ..config.clone()
        };
        let mut inventory = state.inventory.clone();
        let promised: Vec<u32> = inventory.reservations().map(|(id, _)| id).collect();
        for id in promised {
            let yields = |other: &Job| {
                let other = state.order_key(other).queue;
                if keeps { other > key.queue } else { other >= key.queue }
            };
            if state.job(JobId(id)).is_none_or(yields) {
                inventory.clear_reservation(id);
            }
        }
        let carry = Some(Carry::remembering(memory.unwrap_or_default()));
        let result = queue::pass(&mut inventory, &config, &jobs, state.now, ESTIMATE_VISITS, carry);
        let (_, planned) = result.reserved.into_iter().find(|(id, _)| *id == job.id.0)?;
        Some((planned.start, planned.assumed))
    }

    /// Jobs that would start if this one, and everything deleted with it, were gone; in queue order.
    pub fn starts_without(&self, job: &Job, plan: &CancelPlan) -> Vec<JobId> {
        let mut pods: BTreeSet<SharedStr> = job.pods.iter().cloned().collect();
        let mut gone = Vec::new();
        for target in &plan.targets {
            match &*target.kind {
                "Pod" => {
                    pods.insert(target.uid.clone());
                }
                "PodGroup" => gone.push(Event::GroupGone(target.uid.clone())),
                _ => {
                    pods.extend(self.pods_below(&target.uid).into_iter().map(|pod| pod.uid.clone()));
                    gone.push(Event::OwnerGone(target.uid.clone()));
                }
            }
        }
        let events = pods.into_iter().map(Event::PodGone).chain(gone).collect();
        let Some(after) = self.at_rest(events).filter(|_| self.ready) else { return Vec::new() };
        let waits = |id: &JobId| self.job(*id).is_some_and(|job| job.state.waiting());
        let mut started: Vec<&Job> =
            after.jobs.iter().map(AsRef::as_ref).filter(|job| job.state == JobState::Binding).collect();
        started.retain(|job| waits(&job.id));
        started.sort_by_key(|job| after.order_key(job));
        started.into_iter().map(|job| job.id).collect()
    }

    /// The state after the current pass has ended.
    fn rested(&self) -> Option<Cow<'_, Self>> {
        if self.unfinished() { self.at_rest(Vec::new()).map(Cow::Owned) } else { Some(Cow::Borrowed(self)) }
    }

    /// A clone that has processed these events and settled; none if that takes too long.
    fn at_rest(&self, mut events: Vec<Event>) -> Option<Self> {
        let mut state = self.clone();
        for _ in 0..STEPS {
            state.step(state.now, std::mem::take(&mut events));
            if !state.unfinished() {
                return Some(state);
            }
        }
        None
    }
}
