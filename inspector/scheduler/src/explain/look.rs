//! Examines all nodes and counts reasons.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::why::{Count, GangWhy, NearestMiss, NodeReason, ShapeWhy, Short, WhyNot};
use crate::constraint::words::affinity;
use crate::constraint::{Exclusion, HostPort, eligible};
use crate::inventory::{Allocation, Inventory, KindId, NodeId, Release, planned_end};
use crate::placement::{Availability, Plan, PlannedShape, Room, Rules, room};
use crate::request::{Request, Shape};

/// Maximum number of jobs listed per reason.
const NAMED: usize = 16;
/// Maximum number of shapes examined.
const LOOKED_AT: usize = 16;

pub(super) fn look(
    plan: &Plan<'_>,
    request: &Request,
    availability: &Availability<'_>,
    now: i64,
    never: bool,
) -> WhyNot {
    let inventory = plan.inventory;
    let rules = Rules::new(plan, availability);
    let mut shapes: Vec<ShapeWhy> = plan
        .shapes
        .iter()
        .enumerate()
        .take(LOOKED_AT)
        .map(|(at, planned)| {
            let rules = rules.as_ref().map(|rules| (rules, at));
            let shape = &request.shapes[planned.index as usize];
            let affinity = affinity(shape.constraint.affinity.as_deref().unwrap_or_default()).into();
            let wanted = wanted(inventory, shape);
            Looker { plan, planned, shape, wanted, affinity, availability, rules, now, never }.shape()
        })
        .collect();
    shapes.sort_by_key(|why| why.shape);
    WhyNot {
        never,
        nodes: inventory.node_count(),
        shapes,
        left_out: plan.shapes.len().saturating_sub(LOOKED_AT),
        gang: gang(plan, request, availability, rules.as_ref()),
        behind: Vec::new(),
        down: false,
        no_estimate: false,
        no_end: Vec::new(),
        no_end_jobs: Vec::new(),
    }
}

struct Looker<'a> {
    plan: &'a Plan<'a>,
    planned: &'a PlannedShape<'a>,
    shape: &'a Shape,
    /// What a slot of it needs.
    wanted: Vec<Wanted<'a>>,
    /// Its required node affinity, as text.
    affinity: Arc<str>,
    availability: &'a Availability<'a>,
    /// Constraints between Pods, and the shape's place in the plan.
    rules: Option<(&'a Rules, usize)>,
    now: i64,
    never: bool,
}

/// An amount of a resource that is needed.
struct Wanted<'a> {
    resource: &'a Arc<str>,
    need: u64,
    /// None if no node ever had it.
    kind: Option<KindId>,
}

/// What a slot of a shape needs: reasons of few nodes are more informative than those of all, and come first.
fn wanted<'a>(inventory: &Inventory, shape: &'a Shape) -> Vec<Wanted<'a>> {
    let needs = shape.needs.iter().filter(|(_, need)| *need > 0);
    let kind = |resource: &str| inventory.columns().kind(resource);
    let mut wanted: Vec<_> =
        needs.map(|(resource, need)| Wanted { resource, need, kind: kind(resource) }).collect();
    wanted.sort_by_key(|wanted| (!wanted.resource.contains('/'), wanted.resource.as_ref() == "pods"));
    wanted
}

/// A reason and its details on one node.
struct Found {
    reason: NodeReason,
    need: u64,
    has: u64,
    room_at: Option<Release>,
    jobs: Vec<u32>,
}

impl From<NodeReason> for Found {
    fn from(reason: NodeReason) -> Self {
        Self { reason, need: 0, has: 0, room_at: None, jobs: Vec::new() }
    }
}

impl Looker<'_> {
    fn inventory(&self) -> &Inventory {
        self.plan.inventory
    }

    fn shape(&self) -> ShapeWhy {
        let mut counts: BTreeMap<NodeReason, Count> = BTreeMap::new();
        let (mut fitting, mut slots) = (0, 0_u32);
        let mut nearest: Option<(u128, NearestMiss)> = None;
        let mut available = Vec::new();
        for id in self.inventory().order() {
            self.availability.available(*id, &self.plan.kinds, &mut available);
            let capacity = self.availability.capacity(self.planned, *id, &available);
            let denied = self.rules.and_then(|(rules, at)| rules.check(at, *id).err());
            if capacity > 0 && denied.is_none() {
                fitting += 1;
                slots = slots.saturating_add(capacity).min(self.shape.count);
                continue;
            }
            let found = match denied {
                Some(denied) if capacity > 0 => NodeReason::Denied(denied).into(),
                _ => self.node(*id, &available),
            };
            if !matches!(
                found.reason,
                NodeReason::Excluded(_) | NodeReason::Affinity { .. } | NodeReason::Denied(_)
            ) {
                let distance = self.distance(*id);
                if distance > 0 && nearest.as_ref().is_none_or(|(least, _)| distance < *least) {
                    nearest = Some((distance, self.miss(*id)));
                }
            }
            let count = counts.entry(found.reason.clone()).or_insert_with(|| Count {
                reason: found.reason,
                nodes: 0,
                need: found.need,
                largest: 0,
                soonest: None,
                endless: 0,
                jobs: Vec::new(),
            });
            count.nodes += 1;
            count.largest = count.largest.max(found.has);
            if matches!(count.reason, NodeReason::Busy { .. }) {
                count.endless += usize::from(found.room_at.is_none());
                count.soonest = [count.soonest, found.room_at].into_iter().flatten().min();
            }
            for job in found.jobs {
                if count.jobs.len() < NAMED && !count.jobs.contains(&job) {
                    count.jobs.push(job);
                }
            }
        }
        let mut counts: Vec<Count> = counts.into_values().collect();
        counts.sort_by(|a, b| b.nodes.cmp(&a.nodes).then_with(|| a.reason.cmp(&b.reason)));
        ShapeWhy {
            shape: self.planned.index,
            wanted: self.shape.count,
            needs: self.shape.needs.clone(),
            fitting,
            room: slots,
            counts,
            nearest: nearest.map(|(_, miss)| miss),
        }
    }

    /// Why this node has no room for a slot: permanent reasons come before temporary ones.
    fn node(&self, id: NodeId, available: &[u64]) -> Found {
        let Some(book) = self.inventory().book(id) else {
            return NodeReason::Excluded(Exclusion::Deleting).into();
        };
        let excluded = eligible(&self.shape.constraint, &book.facts).err();
        if let Some(exclusion) = excluded.filter(|exclusion| !(self.never && exclusion.is_temporary())) {
            return match exclusion {
                Exclusion::Affinity => NodeReason::Affinity { wanted: self.affinity.clone() }.into(),
                exclusion => NodeReason::Excluded(exclusion).into(),
            };
        }
        let offered = |kind: KindId| {
            let offer = book.offer(kind);
            offer.capacity.max(offer.allocatable)
        };
        let columns = self.inventory().columns();
        for Wanted { resource, need, kind } in &self.wanted {
            if book.spec.is_none() || kind.map_or(0, offered) == 0 {
                return Found { need: *need, ..NodeReason::Missing { resource: (*resource).clone() }.into() };
            }
        }
        if let Some((resource, need, has)) = shortest(&self.wanted, |kind| columns.most(id, kind)) {
            return Found { need, has, ..NodeReason::TooSmall { resource }.into() };
        }
        if !self.never {
            if let Some((resource, need, has)) = shortest(&self.wanted, |kind| book.when_empty(kind)) {
                return Found { need, has, ..NodeReason::Withheld { resource }.into() };
            }
            if let Some((resource, need, has)) = shortest(&self.wanted, |kind| columns.free(id, kind)) {
                let room_at = self.room_at(id);
                return Found { need, has, room_at, ..NodeReason::Busy { resource }.into() };
            }
        }
        for port in self.shape.ports.iter() {
            if book.clashes(std::slice::from_ref(port), |hold| hold.permanent || !self.never) {
                return NodeReason::PortTaken { port: port.clone() }.into();
            }
        }
        debug_assert!(!self.never && self.planned.fits(available, 1) == 0 || !self.shape.ports.is_empty());
        let mut jobs: Vec<u32> = self.inventory().reserved_on(id).iter().map(|entry| entry.job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        Found { jobs, ..NodeReason::Reserved.into() }
    }

    /// When planned ends free enough for one slot on the node, ignoring reservations.
    fn room_at(&self, id: NodeId) -> Option<Release> {
        let book = self.inventory().book(id)?;
        let balance = |(at, need): &(usize, u64)| (book.balance(self.plan.kinds[*at]), *need);
        let mut left: Vec<(i128, u64)> = self.planned.needs.iter().map(balance).collect();
        // The same without holders with an assumed end.
        let mut said = left.clone();
        let enough = |left: &[(i128, u64)]| left.iter().all(|(balance, need)| *balance >= i128::from(*need));
        let mut ends: Vec<_> = book
            .holds
            .iter()
            .filter(|(_, held)| held.hold.until.is_some())
            .map(|(_, held)| (planned_end(held.hold.until, self.now), held))
            .collect();
        ends.sort_by_key(|(end, held)| (*end, held.hold.end_assumed));
        for (end, held) in ends {
            for (((balance, _), (said, _)), (at, _)) in
                left.iter_mut().zip(&mut said).zip(&self.planned.needs)
            {
                let freed = held.needs.iter().find(|(kind, _)| *kind == self.plan.kinds[*at]);
                let freed = freed.map_or(0, |(_, quantity)| i128::from(*quantity));
                *balance += freed;
                *said += if held.hold.end_assumed { 0 } else { freed };
            }
            if enough(&left) {
                return Some(Release { at: end, assumed: !enough(&said) });
            }
        }
        None
    }

    /// What the node lacks for one slot: resources with their needs and amounts, by name.
    fn lacks(&self, id: NodeId) -> impl Iterator<Item = (&Arc<str>, u64, u64)> {
        let columns = self.inventory().columns();
        let has = move |kind| if self.never { columns.most(id, kind) } else { columns.free(id, kind) };
        let wanted = self.wanted.iter();
        wanted
            .map(move |wanted| (wanted.resource, wanted.need, wanted.kind.map_or(0, has)))
            .filter(|(_, need, has)| has < need)
    }

    /// The first host port that is in use.
    fn taken_port(&self, id: NodeId) -> Option<&HostPort> {
        let book = self.inventory().book(id)?;
        let counts = |hold: &Allocation| hold.permanent || !self.never;
        self.shape.ports.iter().find(|port| book.clashes(std::slice::from_ref(*port), counts))
    }

    /// The sum of the missing fractions of the needs, in 2⁻³²; a host port counts as a whole resource.
    fn distance(&self, id: NodeId) -> u128 {
        let missing =
            |(_, need, has): (&Arc<str>, u64, u64)| (u128::from(need - has) << 32) / u128::from(need);
        let port = if self.taken_port(id).is_some() { 1 << 32 } else { 0 };
        self.lacks(id).map(missing).sum::<u128>() + port
    }

    fn miss(&self, id: NodeId) -> NearestMiss {
        let mut lacks: Vec<_> =
            self.lacks(id).map(|(resource, need, has)| (resource.clone(), need, has)).collect();
        lacks.sort_unstable();
        NearestMiss { node: self.inventory().name(id), lacks, port: self.taken_port(id).cloned() }
    }
}

/// The resource that is most insufficient relative to the need, with need and amount.
fn shortest(wanted: &[Wanted<'_>], has: impl Fn(KindId) -> u64) -> Option<(Arc<str>, u64, u64)> {
    let short = wanted.iter().map(|wanted| (wanted.resource, wanted.need, wanted.kind.map_or(0, &has)));
    let short = short.filter(|(_, need, has)| has < need);
    let least = short.min_by_key(|(_, need, has)| (u128::from(*has) << 32) / u128::from(*need));
    least.map(|(resource, need, has)| (resource.clone(), need, has))
}

/// What the gang lacks as a whole; none if first fit places all of it.
fn gang(
    plan: &Plan<'_>,
    request: &Request,
    availability: &Availability<'_>,
    rules: Option<&Rules>,
) -> Option<GangWhy> {
    let wanted = request.needed();
    let mut best: Option<(u64, usize, Room)> = None;
    let impossible = plan.minimum.is_none() && plan.shapes.iter().any(|shape| shape.impossible);
    for group in (0..plan.group_count()).filter(|group| plan.group(*group).is_some()) {
        let found = if impossible { Room::default() } else { room(plan, availability, rules, group) };
        let slots: u64 = found.slots.iter().copied().map(u64::from).sum();
        if best.as_ref().is_none_or(|(most, ..)| slots > *most) {
            best = Some((slots, group, found));
        }
    }
    let slots = best.as_ref().map_or(0, |(slots, ..)| *slots);
    let domain = match &best {
        Some((_, group, _)) => plan.group(*group).and_then(|(domain, _)| domain.cloned()),
        None => request.domain.clone(),
    };
    (slots < wanted).then(|| GangWhy {
        wanted,
        of: request.slots(),
        room: slots,
        level: request.level.clone(),
        best: domain,
        constrained: rules.is_some() && !impossible,
        cut: best.as_ref().is_some_and(|(.., found)| found.cut),
        short: best
            .filter(|_| !impossible && rules.is_none())
            .and_then(|(_, group, found)| short(plan, availability, group, &found.slots)),
    })
}

/// What most of the nodes with room for at least one slot of a shape are lacking. `found` is the number of slots with
/// room for each shape; shapes with room for all slots are ignored.
fn short(plan: &Plan<'_>, availability: &Availability<'_>, group: usize, found: &[u32]) -> Option<Short> {
    let mut counts: BTreeMap<Short, usize> = BTreeMap::new();
    let mut available = Vec::new();
    for id in plan.group(group)?.1 {
        availability.available(*id, &plan.kinds, &mut available);
        for (shape, _) in plan.shapes.iter().zip(found).filter(|(shape, found)| **found < shape.count) {
            let capacity = availability.capacity(shape, *id, &available);
            if capacity == 0 {
                continue;
            }
            let next = u64::from(capacity) + 1;
            let out = shape.needs.iter().filter(|(at, need)| need.saturating_mul(next) > available[*at]);
            // The amount that suffices for the fewest.
            let out = out.min_by_key(|(at, need)| (u128::from(available[*at]) << 32) / u128::from(*need));
            let short = match (out, shape.ports.first()) {
                (_, Some(port)) => Short::Port(port.clone()),
                (Some((at, _)), None) => {
                    Short::Resource(plan.inventory.columns().name(plan.kinds[*at]).clone())
                }
                (None, None) => continue,
            };
            *counts.entry(short).or_default() += 1;
        }
    }
    counts.into_iter().max_by(|(a, x), (b, y)| x.cmp(y).then_with(|| b.cmp(a))).map(|(short, _)| short)
}
