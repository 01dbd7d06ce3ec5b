//! One pass over the queue, or a slice of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::job::{Carry, PassJob, PassResult, Refusal};
use super::turn::Turn;
use super::{QueueConfig, QueuePolicy};
use crate::constraint::NodeConstraint;
use crate::inventory::Inventory;

/// Number of jobs of an fcfs queue that are prepared at once: usually, few are considered.
const AT_ONCE: usize = 64;

/// Considers the jobs in queue order until the budget of visits is used up. Without `carry`, it first removes all
/// reservations; the slots of started jobs are not held in the inventory when it returns: that is up to the caller.
pub fn pass(
    inventory: &mut Inventory,
    config: &QueueConfig,
    jobs: &[PassJob],
    now: i64,
    budget: u64,
    carry: Option<Carry>,
) -> PassResult {
    let mut carry = carry.unwrap_or_else(|| {
        inventory.clear_reservations();
        Carry::default()
    });
    let freed = inventory.freed_generation();
    let begins = !std::mem::replace(&mut carry.begun, true);
    if begins || !carry.memory.stands(freed) {
        Arc::make_mut(&mut carry.memory).begin(freed, jobs.len());
    }
    let mut turn = Turn::new(inventory, config, now, carry);
    if begins && config.keeps() {
        if turn.carry.stored.is_some() {
            prepare(turn.inventory, jobs);
        }
        turn.restore(jobs);
        turn.forget_others(jobs);
    }
    let at_once = if config.policy == QueuePolicy::Fcfs { AT_ONCE } else { jobs.len() };
    for (at, job) in jobs.iter().enumerate() {
        if turn.carry.blocked {
            turn.leave(jobs.len(), at);
            break;
        }
        if at % at_once == 0 {
            prepare(turn.inventory, &jobs[at..jobs.len().min(at + at_once)]);
        }
        if turn.carry.done.contains(&job.id) {
            continue;
        }
        if turn.work.visited >= budget && turn.result.tried > 0 {
            turn.carry.done.extend(jobs[..at].iter().map(|job| job.id));
            return turn.finish(true);
        }
        let place = turn.place(job);
        if config.keeps() && turn.keep(jobs, at, place) {
            continue;
        }
        if turn.carry.counted >= config.queue_depth {
            turn.result.look_again = turn.carry.started > 0;
            turn.result.refused.push((job.id, Refusal::DepthReached));
            continue;
        }
        turn.carry.counted += 1;
        turn.result.tried += 1;
        if config.keeps() {
            turn.decide_first(jobs, at, place);
        } else {
            turn.decide(job, place);
        }
    }
    turn.finish(false)
}

/// Prepares the inventory for these requests. Most of them share their constraints.
fn prepare(inventory: &mut Inventory, jobs: &[PassJob]) {
    let mut constraints: BTreeMap<usize, &Arc<NodeConstraint>> = BTreeMap::new();
    let mut levels: BTreeSet<&Arc<str>> = BTreeSet::new();
    let mut last = None;
    for request in jobs.iter().map(|job| &job.request) {
        levels.extend(&request.level);
        for constraint in request.shapes.iter().map(|shape| &shape.constraint) {
            let address = Arc::as_ptr(constraint).addr();
            if last.replace(address) != Some(address) {
                constraints.insert(address, constraint);
            }
        }
    }
    inventory.prepare(constraints.into_values());
    let requests = jobs.iter().map(|job| job.request.as_ref());
    inventory
        .prepare_peers(requests.filter(|request| request.shapes.iter().any(|shape| shape.peer.is_some())));
    for level in levels {
        inventory.prepare_level(level);
    }
}
