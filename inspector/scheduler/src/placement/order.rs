//! Nodes chosen in time: of those that fit, the ones that would otherwise stand idle.
//!
//! A start now takes the nodes whose next promise comes soonest, as long as they are free until then; a planned start
//! takes those that become free last before it. So no idle node is promised where a busy one will be free in time, and
//! no promise is broken. Among nodes that are alike in this the policy decides, and before it [`super::scored`].

use std::cmp::Reverse;

use super::availability::Availability;
use super::plan::Plan;
use super::policy::NodePolicy;
use crate::inventory::{Inventory, NodeId, Timeline};

/// What is to be taken first of two nodes in which nothing else differs: their ranks among all nodes.
pub(super) fn rank(inventory: &Inventory, policy: NodePolicy, id: NodeId) -> usize {
    let rank = inventory.rank(id);
    if policy == NodePolicy::High { usize::MAX - rank } else { rank }
}

/// For a start now: the nodes with promises, of these (none: of all), those whose next promise comes soonest first. They
/// come before all others.
pub(super) fn promised_soonest(
    plan: &Plan<'_>,
    availability: &Availability<'_>,
    among: Option<&[NodeId]>,
) -> Vec<NodeId> {
    let inventory = plan.inventory;
    if !availability.minds_promises_now() || !inventory.promises() {
        return Vec::new();
    }
    let mut nodes: Vec<(i64, usize, NodeId)> = match among {
        None => inventory.promised().map(|(next, id)| (next, rank(inventory, plan.policy, id), id)).collect(),
        Some(nodes) => nodes
            .iter()
            .filter_map(|id| Some((inventory.next_promise(*id)?, rank(inventory, plan.policy, *id), *id)))
            .collect(),
    };
    nodes.retain(|(.., id)| inventory.rank(*id) != usize::MAX);
    nodes.sort_unstable();
    nodes.into_iter().map(|(.., id)| id).collect()
}

/// For a planned start: these nodes, those that become free last before it first. None for other starts.
pub(super) fn free_last(
    plan: &Plan<'_>,
    availability: &Availability<'_>,
    nodes: &[NodeId],
) -> Option<Vec<NodeId>> {
    let start = availability.planned_start()?;
    let key = |id: &NodeId| {
        let timeline = plan.inventory.timeline(*id, plan.inventory.book(*id)?);
        Some((
            in_time(plan, timeline, start, availability.now()),
            rank(plan.inventory, plan.policy, *id),
            *id,
        ))
    };
    let mut nodes: Vec<_> = nodes.iter().filter_map(key).collect();
    nodes.sort_unstable();
    Some(nodes.into_iter().map(|(.., id)| id).collect())
}

/// What comes first of two nodes in time; the least is the first.
pub(super) type Class = (Reverse<i64>, i64);

/// These nodes with their classes: the first in time first, then in the policy's order.
pub(super) fn by_class(
    plan: &Plan<'_>,
    availability: &Availability<'_>,
    nodes: &[NodeId],
) -> (Vec<Class>, Vec<NodeId>) {
    let inventory = plan.inventory;
    let promises = availability.minds_promises_now() && inventory.promises();
    let class = |id: &NodeId| match availability.planned_start() {
        Some(start) => {
            let timeline = inventory.timeline(*id, inventory.book(*id)?);
            Some(in_time(plan, timeline, start, availability.now()))
        }
        None if promises => Some((Reverse(0), inventory.next_promise(*id).unwrap_or(i64::MAX))),
        None => Some((Reverse(0), 0)),
    };
    let key = |id: &NodeId| Some((class(id)?, rank(inventory, plan.policy, *id), *id));
    let mut keyed: Vec<_> = nodes.iter().filter_map(key).collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(class, _, id)| (class, id)).unzip()
}

/// The order of nodes for a start that is planned: since when there has been what there is then, the latest first, and
/// when something is taken of it next, the soonest first.
pub(super) fn in_time(plan: &Plan<'_>, timeline: &Timeline, start: i64, now: i64) -> Class {
    // Whoever is past his planned end is there until a second from now.
    let risen =
        timeline.risen_at(&plan.kinds, start).map_or(i64::MIN, |risen| risen.max(now.saturating_add(1)));
    (Reverse(risen), timeline.next_fall(start))
}
