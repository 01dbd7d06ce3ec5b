//! An independent checker of the allocations: it recomputes all totals and reports differences.
//!
//! It shares no totals with the inventory; it reads holders and node specs and compares them with what is shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::inventory::{Allocation, AllocationKind, Inventory, NodeView};

/// All inconsistencies; empty if there are none.
pub fn check(inventory: &Inventory) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut by_node: BTreeMap<Arc<str>, Vec<(Arc<str>, Allocation)>> = BTreeMap::new();
    for (holder, node, hold) in inventory.holdings() {
        by_node.entry(node.clone()).or_default().push((holder.clone(), hold.clone()));
    }
    let names: Vec<_> = inventory.node_names().collect();
    for pair in names.windows(2) {
        if fluxion_text::natural_order(&pair[0], &pair[1]).is_ge() {
            wrong.push(format!("node {} is listed before {}", pair[0], pair[1]));
        }
    }
    for view in inventory.nodes() {
        let holds = by_node.remove(&view.spec.name).unwrap_or_default();
        if holds != view.holders {
            wrong.push(format!("node {}: its holders differ from those recorded elsewhere", view.spec.name));
        }
        wrong.extend(check_node(&view, &holds));
        wrong.extend(inventory.check_columns(&view.spec.name));
    }
    wrong.extend(inventory.check_peers());
    for (job, reservation) in inventory.reservations() {
        if reservation.end.is_some_and(|end| end <= reservation.start) {
            wrong.push(format!("the reservation of job {job} ends before it starts"));
        }
    }
    wrong
}

fn check_node(view: &NodeView, holds: &[(Arc<str>, Allocation)]) -> Vec<String> {
    let mut wrong = Vec::new();
    let sum = |resource: &str, counts: &dyn Fn(&Allocation) -> bool| -> u128 {
        holds
            .iter()
            .filter(|(_, hold)| counts(hold))
            .map(|(_, hold)| u128::from(hold.needs.get(resource)))
            .sum()
    };
    let mut resources: Vec<Arc<str>> = view.spec.allocatable.iter().map(|(name, _)| name.clone()).collect();
    resources.extend(holds.iter().flat_map(|(_, hold)| hold.needs.iter().map(|(name, _)| name.clone())));
    resources.sort();
    resources.dedup();
    for resource in resources {
        let held = sum(&resource, &|_| true);
        let offered = u128::from(view.spec.allocatable.get(&resource));
        let shown = |quantity: u128| u64::try_from(quantity).unwrap_or(u64::MAX);
        for (what, have, want) in [
            (
                "allocated",
                view.allocated.get(&resource),
                sum(&resource, &|h| !matches!(h.kind, AllocationKind::Nominated | AllocationKind::Kept)),
            ),
            ("foreign", view.foreign.get(&resource), sum(&resource, &|h| h.kind == AllocationKind::Foreign)),
            ("kept", view.kept.get(&resource), sum(&resource, &|h| h.kind == AllocationKind::Kept)),
            (
                "nominated",
                view.nominated.get(&resource),
                sum(&resource, &|h| h.kind == AllocationKind::Nominated),
            ),
            ("free", view.free.get(&resource), offered.saturating_sub(held)),
            ("deficit", view.deficit.get(&resource), held.saturating_sub(offered)),
        ] {
            if have != shown(want) {
                wrong.push(format!(
                    "node {}: {what} {resource} is {have}, but its holders add up to {want}",
                    view.spec.name
                ));
            }
        }
    }
    wrong
}

/// Nodes on which our own decisions alone exceed the node's capacity: that is always an error. `shrunk` returns the
/// nodes whose capacity decreased since, which are exempt.
pub fn overbooked(inventory: &Inventory, shrunk: impl Fn(&str) -> bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for view in inventory.nodes().filter(|view| !shrunk(&view.spec.name)) {
        for (resource, _) in view.deficit.iter() {
            let ours: u128 = view
                .holders
                .iter()
                .filter(|(_, hold)| matches!(hold.kind, AllocationKind::Bound | AllocationKind::Assumed))
                .map(|(_, hold)| u128::from(hold.needs.get(resource)))
                .sum();
            if ours > u128::from(view.spec.allocatable.get(resource)) {
                wrong.push(format!("node {}: jobs hold more {resource} than the node has", view.spec.name));
            }
        }
    }
    wrong
}
