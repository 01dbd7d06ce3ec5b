//! A request prepared for searching: resources as IDs, shapes in placement order.

use std::cmp::Reverse;
use std::sync::Arc;

use super::policy::NodePolicy;
use crate::constraint::{HostPort, NodeConstraint, Peer, Preferences};
use crate::inventory::{Domains, Eligibility, Inventory, KindId, NodeId};
use crate::request::{Request, Shape};

/// A shape, prepared for searching.
#[derive(Debug)]
pub(crate) struct PlannedShape<'a> {
    /// Index into the request's shapes.
    pub(crate) index: u32,
    pub(crate) count: u32,
    /// Positions in the plan's kinds, and the amount of each needed by one slot.
    pub(crate) needs: Vec<(usize, u64)>,
    /// It needs a resource that no node ever had.
    pub(crate) impossible: bool,
    pub(crate) eligibility: Eligibility<'a>,
    pub(crate) ports: &'a [HostPort],
    pub(crate) constraint: &'a NodeConstraint,
    pub(crate) peer: Option<&'a Peer>,
    pub(crate) preferences: Option<&'a Preferences>,
}

impl PlannedShape<'_> {
    /// How many slots fit into the available amounts, at most `most`.
    pub(crate) fn fits(&self, available: &[u64], most: u32) -> u32 {
        self.fits_into(|at| available[at], most)
    }

    /// The same, with the available amount of each kind given by its position in the plan's kinds.
    pub(crate) fn fits_into(&self, available: impl Fn(usize) -> u64, most: u32) -> u32 {
        let mut fits = u64::from(most);
        for (at, need) in &self.needs {
            let there = available(*at);
            if there < *need {
                return 0;
            }
            // Usually one slot is requested; a division is more expensive than a comparison.
            if fits > 1 {
                fits = fits.min(there / need);
            }
        }
        u32::try_from(fits).unwrap_or(most)
    }
}

/// A request prepared for searching.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) inventory: &'a Inventory,
    /// Every resource that any shape needs.
    pub(crate) kinds: Vec<KindId>,
    /// Shapes with slots to place, hardest to place first.
    pub(crate) shapes: Vec<PlannedShape<'a>>,
    pub(crate) policy: NodePolicy,
    /// Minimum number of slots; none: all of them.
    pub(crate) minimum: Option<u32>,
    /// Constraints between Pods may apply.
    pub(crate) constrained: bool,
    /// Some nodes may be preferred to others.
    pub(crate) scored: bool,
    /// Node lists to be tried in order, with the domain's name; a single one without a level.
    groups: Groups<'a>,
}

#[derive(Debug)]
enum Groups<'a> {
    All,
    /// Of all nodes, only these have room.
    Among(&'a [NodeId]),
    Domains(Arc<Domains>, Option<Arc<str>>),
}

impl<'a> Plan<'a> {
    pub(crate) fn new(inventory: &'a Inventory, request: &'a Request, policy: NodePolicy) -> Self {
        let mut kinds = Vec::new();
        let mut shapes: Vec<_> = request
            .shapes
            .iter()
            .zip(0_u32..)
            .filter(|(shape, _)| shape.count > 0)
            .map(|(shape, index)| plan_shape(inventory, shape, index, &mut kinds))
            .collect();
        if shapes.len() > 1 {
            shapes.sort_by_key(|planned| {
                let shape = &request.shapes[planned.index as usize];
                (Reverse(is_choosy(shape)), Reverse(share(inventory, planned, &kinds)), planned.index)
            });
        }
        let groups = match &request.level {
            Some(level) => Groups::Domains(inventory.domains(level), request.domain.clone()),
            None => Groups::All,
        };
        let minimum = request.minimum.filter(|minimum| u64::from(*minimum) < request.slots());
        let constrained = shapes
            .iter()
            .filter_map(|shape| shape.peer)
            .any(|peer| peer.terms.is_some() || peer.volumes.is_some() || inventory.keeps_away(peer));
        let scored = policy == NodePolicy::Spread
            || inventory.has_discouraging_taints()
            || shapes.iter().any(|shape| {
                let others = shape.peer.is_some_and(|peer| inventory.preferred_by(peer).next().is_some());
                others || shape.preferences.is_some()
            });
        Self { inventory, kinds, shapes, policy, minimum, constrained, scored, groups }
    }

    /// The same, ignoring constraints between Pods.
    pub(super) fn unconstrained(self) -> Self {
        Self { constrained: false, ..self }
    }

    /// The same, looking only at these nodes, in natural order, because no other has room.
    pub(crate) fn among(self, nodes: &'a [NodeId]) -> Self {
        Self { groups: Groups::Among(nodes), ..self }
    }

    /// Whether all that matters of a node is what is free there: no node is better than another, and none is required
    /// together with another.
    pub(super) fn is_plain(&self) -> bool {
        let single = matches!(self.groups, Groups::All | Groups::Among(_));
        single && self.minimum.is_none() && !self.constrained && !self.scored
    }

    /// Whether a list does not have all nodes.
    pub(super) fn is_partial(&self) -> bool {
        !matches!(self.groups, Groups::All)
    }

    /// Total number of requested slots.
    pub(crate) fn slots(&self) -> u64 {
        self.shapes.iter().map(|shape| u64::from(shape.count)).sum()
    }

    /// Number of node lists.
    pub(crate) fn group_count(&self) -> usize {
        match &self.groups {
            Groups::All | Groups::Among(_) => 1,
            Groups::Domains(domains, _) => domains.members.len(),
        }
    }

    /// The list's domain and nodes in natural order; `None` for a domain that was not requested.
    pub(crate) fn group(&self, index: usize) -> Option<(Option<&Arc<str>>, &[NodeId])> {
        match &self.groups {
            Groups::All => Some((None, self.inventory.order())),
            Groups::Among(nodes) => Some((None, nodes)),
            Groups::Domains(domains, wanted) => {
                let (value, nodes) = domains.members.get(index)?;
                wanted
                    .as_ref()
                    .is_none_or(|wanted| wanted == value)
                    .then_some((Some(value), nodes.as_slice()))
            }
        }
    }

    /// List indices in the order in which they are tried.
    pub(crate) fn group_order(&self) -> impl Iterator<Item = usize> {
        let count = self.group_count();
        let high = self.policy == NodePolicy::High;
        (0..count).map(move |index| if high { count - 1 - index } else { index })
    }
}

fn plan_shape<'a>(
    inventory: &'a Inventory,
    shape: &'a Shape,
    index: u32,
    kinds: &mut Vec<KindId>,
) -> PlannedShape<'a> {
    let mut needs = Vec::new();
    let mut impossible = false;
    for (resource, need) in shape.needs.iter().filter(|(_, need)| *need > 0) {
        let Some(kind) = inventory.columns().kind(resource) else {
            impossible = true;
            continue;
        };
        let at = kinds.iter().position(|k| *k == kind).unwrap_or_else(|| {
            kinds.push(kind);
            kinds.len() - 1
        });
        needs.push((at, need));
    }
    PlannedShape {
        index,
        count: shape.count,
        needs,
        impossible,
        eligibility: inventory.eligibility(&shape.constraint),
        ports: &shape.ports,
        constraint: &shape.constraint,
        peer: shape.peer.as_deref(),
        preferences: shape.preferences.as_deref(),
    }
}

/// Whether the shape has constraints.
fn is_choosy(shape: &Shape) -> bool {
    !shape.constraint.selector.is_empty()
        || shape.constraint.affinity.is_some()
        || !shape.ports.is_empty()
        || shape.peer.as_ref().is_some_and(|peer| peer.terms.is_some())
}

/// The largest fraction that one slot needs of the total of all nodes of a resource, in 2⁻³².
fn share(inventory: &Inventory, shape: &PlannedShape<'_>, kinds: &[KindId]) -> u128 {
    let part = |(at, need): &(usize, u64)| {
        let total = inventory.columns().total(kinds[*at]);
        (u128::from(*need) << 32) / total.max(1)
    };
    shape.needs.iter().map(part).max().unwrap_or(0)
}
