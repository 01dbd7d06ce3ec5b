//! Matches a gang on the graph: slots that are each within one node, with amounts of pools.
//!
//! [`placement`] decides on nodes and time; here, its result is converted to amounts of the graph's pools, which the
//! engine books and reports like any other match.

use std::collections::BTreeMap;
use std::sync::Arc;

use fluxion::errno::Errno;
use fluxion::graph::{EdgeId, VertexId};
use fluxion::matcher::extension::{Ask, Choice, Extension, Pieces, View};
use fluxion::matcher::policy::{Order, Scoring};
use fluxion::matcher::{Engine, Failure, JobId, LIFETIME, Operation};

use super::index::{Beside, Node, Nodes};
use crate::constraint::{HostPort, NodeConstraint};
use crate::explain::{WhyNot, why_not};
use crate::inventory::Inventory;
use crate::inventory::share::Share;
use crate::placement::{self, Availability, NodePolicy, Plan, Work};
use crate::request::{Placement, Planned, Request, Shape, Slot};
use crate::resources::ResourceList;

/// Maximum number of searches per match; more than one is only needed for fragmented pools.
const SEARCHES: u32 = 1_000;

/// Why there is no index of nodes.
const NO_INDEX: &str = "the nodes of the graph have too many vertices above them: flatten it";

/// Matches gangs on the graph of the engine that it is plugged into.
#[derive(Clone, Debug, Default)]
pub struct GangMatcher {
    /// The nodes as read by the search; created on first use.
    nodes: Option<Nodes>,
    beside: Beside,
    /// Host ports of the last selection, by node.
    ports: BTreeMap<VertexId, Vec<HostPort>>,
}

impl Extension for GangMatcher {
    fn boxed_clone(&self) -> Box<dyn Extension> {
        Box::new(self.clone())
    }

    fn forget(&mut self) {
        self.nodes = None;
    }

    fn follow(&mut self, view: View<'_>, changed: Option<Vec<VertexId>>) {
        match (&mut self.nodes, changed) {
            (Some(nodes), Some(changed)) => nodes.follow(changed, view.allocations, &self.beside),
            (nodes, _) => *nodes = Nodes::new(view, &self.beside),
        }
    }

    fn choose(&mut self, view: View<'_>, ask: Ask<'_>) -> Result<Choice, Failure> {
        let Some(request) = ask.request.get::<Request>() else {
            return Err(Failure::new(Errno::Einval, "the request is not a gang"));
        };
        let search = self.search(view, request)?;
        let (operation, now) = (ask.operation, ask.now);
        let possible = || {
            if placement::satisfiable(&search.nodes.inventory, request) {
                Errno::Ebusy
            } else {
                Errno::Enodev
            }
        };
        if operation == Operation::Satisfiability {
            return match possible() {
                Errno::Ebusy => {
                    Ok(Choice { at: now, duration: duration_from(request, now), pieces: Pieces::new() })
                }
                errno => Err(Failure::new(errno, "")),
            };
        }
        let found = search.run(operation, now).filter(|(planned, _)| (0..LIFETIME).contains(&planned.start));
        let Some((planned, pieces)) = found else {
            let errno = if operation == Operation::Allocate || operation == Operation::WithoutAllocating {
                Errno::Ebusy
            } else {
                possible()
            };
            return Err(Failure::new(errno, ""));
        };
        self.ports = ports_of(search.nodes, request, &planned.placement);
        Ok(Choice { at: planned.start, duration: duration_from(request, planned.start), pieces })
    }

    fn booked(&mut self, job: JobId) {
        let ports = std::mem::take(&mut self.ports);
        self.beside.ports.extend(ports.into_iter().map(|(node, ports)| ((node, job), ports)));
    }

    fn cancelled(&mut self, job: JobId) {
        self.beside.ports.retain(|(_, holder), _| *holder != job);
    }

    fn way_to(&self, id: VertexId) -> Option<EdgeId> {
        self.nodes.as_ref().and_then(|nodes| nodes.way_to(id))
    }

    /// Whether the index of nodes equals a new one.
    fn check(&self, view: View<'_>, pending: &[VertexId]) -> Vec<String> {
        let mut findings = Vec::new();
        let Some(mut nodes) = self.nodes.clone() else { return findings };
        nodes.follow(pending.to_vec(), view.allocations, &self.beside);
        let Some(new) = Nodes::new(view, &self.beside) else { return findings };
        for (known, new) in nodes.inventory.nodes().zip(new.inventory.nodes()) {
            if known != new {
                findings.push(format!("{}: its index is out of date", new.spec.name));
            }
        }
        findings.extend(crate::check::check(&nodes.inventory));
        findings
    }
}

/// Explains why a gang does not start at `now` (seconds), as the inspector does for its jobs, and when it could start
/// with the current allocations: `now` if it fits, none if no start can be planned. Nothing is booked.
///
/// Errors: those of [`Engine::match_job`] for an invalid request, and for an engine without a [`GangMatcher`].
pub fn why_gang(engine: &mut Engine, request: &Request, now: i64) -> Result<(WhyNot, Option<i64>), Failure> {
    let Some((gangs, view)) = engine.extension::<GangMatcher>() else {
        return Err(Failure::new(Errno::Einval, "the engine does not match gangs"));
    };
    let search = gangs.search(view, request)?;
    let found = search.run(Operation::WithoutAllocatingFuture, now);
    let start = found.map(|(planned, _)| planned.start).filter(|start| (0..LIFETIME).contains(start));
    Ok((why_not(&search.nodes.inventory, request, now), start))
}

impl GangMatcher {
    pub(super) fn nodes(&self) -> Option<&Nodes> {
        self.nodes.as_ref()
    }

    /// Stores data about a share that its job's allocations can't contain.
    pub(super) fn note(&mut self, node: VertexId, job: JobId, share: Share) {
        if !share.ports.is_empty() {
            self.beside.ports.insert((node, job), share.ports);
        }
        if share.permanent {
            self.beside.permanent.insert(job);
        }
    }

    /// A search for a request that can be reported and booked.
    fn search<'a>(&'a self, view: View<'a>, request: &'a Request) -> Result<Search<'a>, Failure> {
        let Some(nodes) = &self.nodes else {
            return Err(Failure::new(Errno::Einval, NO_INDEX));
        };
        can_be_asked(view, request)?;
        let policy = match view.policy.scoring {
            Scoring::Id(Order::Descending) if !view.policy.stop_on_first => NodePolicy::High,
            _ => NodePolicy::Low,
        };
        Ok(Search { view, nodes, request, policy })
    }
}

/// One search.
#[derive(Clone, Copy)]
struct Search<'a> {
    view: View<'a>,
    nodes: &'a Nodes,
    request: &'a Request,
    /// The order in which nodes are used.
    policy: NodePolicy,
}

impl Search<'_> {
    /// Node selection and time, and the amounts of each pool.
    fn run(self, operation: Operation, now: i64) -> Option<(Planned, Pieces)> {
        let Self { nodes, request, policy, .. } = self;
        let inventory = &nodes.inventory;
        let mut searches = 0;
        let mut planned = if operation.looks_ahead() {
            placement::earliest(inventory, request, now, policy).ok()?
        } else {
            let placement = placement::place_now(inventory, request, now, policy).ok()?;
            Planned { start: now, end: request.end(now), placement, assumed: false }
        };
        loop {
            if let Some(found) = self.cut_at(planned.clone(), now, &mut searches) {
                return Some(found);
            }
            if !operation.looks_ahead() || searches >= SEARCHES {
                return None;
            }
            // If it fits at no start up to this one, it fits at the earliest when something else is released.
            let mut work = Work::default();
            let (now, before) = (planned.start, i64::MAX);
            let between = placement::Between { now, from: now, before };
            planned = placement::first_start(inventory, request, between, policy, &mut work).ok()?;
        }
    }

    /// The amounts of each pool at a start: if the vertices of a node have less than their total promises, the search
    /// is repeated without it.
    fn cut_at(self, mut planned: Planned, now: i64, searches: &mut u32) -> Option<(Planned, Pieces)> {
        let Self { nodes, request, policy, .. } = self;
        let mut inventory = nodes.inventory.clone();
        while *searches < SEARCHES {
            *searches += 1;
            match self.cut(&planned) {
                Ok(pieces) => return Some((planned, pieces)),
                Err((node, missing)) => block(&mut inventory, *searches, &node, missing, &planned),
            }
            let plan = Plan::new(&inventory, request, policy);
            let end = planned.end.unwrap_or(i64::MAX);
            let availability = Availability::window(&inventory, now, planned.start, end);
            planned.placement = placement::place(&plan, &availability, &mut Work::default())?;
        }
        None
    }

    /// Allocates the needs of the slots from the pools of their nodes. A pool consisting of several vertices may have
    /// less than its total if no vertex is free for the whole time: the error contains the node and the shortfall.
    fn cut(self, planned: &Planned) -> Result<Pieces, (Arc<str>, ResourceList)> {
        let Self { view, nodes, request, policy } = self;
        let duration = duration_from(request, planned.start);
        let free = |id| view.allocations.min_free(view.graph, id, planned.start, duration).unwrap_or(0);
        let mut pieces = Pieces::new();
        for (key, mut needs) in needs_by_node(request, &planned.placement) {
            let Some(node) = nodes.by_key(&key) else { continue };
            let mut pools: Vec<_> = node.pools.iter().filter(|pool| pool.up).collect();
            if policy == NodePolicy::High {
                pools.reverse();
            }
            for pool in pools {
                let wanted = needs.get(&pool.type_name);
                let taken = if wanted == 0 { 0 } else { wanted.min(free(pool.vertex)) };
                if taken > 0 {
                    pieces.insert(pool.vertex, taken);
                    needs.set(pool.type_name.clone(), wanted - taken);
                }
            }
            if needs.iter().any(|(_, missing)| missing > 0) {
                return Err((key, self.overstated(node, &needs, planned, duration)));
            }
        }
        Ok(pieces)
    }

    /// By how much the index overstates the missing types.
    fn overstated(
        self,
        node: &Node,
        missing: &ResourceList,
        planned: &Planned,
        duration: i64,
    ) -> ResourceList {
        let Self { view, nodes, .. } = self;
        let mut over = ResourceList::new();
        for (name, _) in missing.iter().filter(|(_, quantity)| *quantity > 0) {
            let pieces = node.pools.iter().filter(|pool| pool.up && pool.type_name == *name);
            let real = pieces.fold(0_u64, |sum, pool| {
                let free = view.allocations.min_free(view.graph, pool.vertex, planned.start, duration);
                sum.saturating_add(free.unwrap_or(0))
            });
            let promised = nodes.inventory.available(&node.key, name, planned.start, planned.end);
            over.set(name.clone(), promised.saturating_sub(real).max(1));
        }
        over
    }
}

/// Rejects requests that can't be reported or booked.
fn can_be_asked(view: View<'_>, request: &Request) -> Result<(), Failure> {
    let refuse = |message: String| Err(Failure::new(Errno::Einval, message));
    if request.slots() == 0 {
        return refuse("the request is empty".to_owned());
    }
    if request.duration.is_some_and(|seconds| seconds > LIFETIME) {
        return refuse(format!("the duration must be between 0 and the lifetime of the graph, {LIFETIME} s"));
    }
    for shape in request.shapes.iter().filter(|shape| shape.count > 0) {
        if shape.needs.iter().all(|(_, quantity)| quantity == 0) {
            return refuse("a slot within a node must request at least one pool".to_owned());
        }
        for (name, _) in shape.needs.iter().filter(|(_, quantity)| *quantity > 0) {
            let vertices = view.graph.find_type(name).map_or(&[][..], |of| view.graph.of_type(of));
            let inner = |id: &VertexId| view.graph.children(*id, view.dominant).next().is_some();
            if vertices.iter().any(inner) {
                return refuse(format!(
                    "a slot within a node requests quantities of pools, but {name} has child vertices: request those"
                ));
            }
        }
    }
    Ok(())
}

/// Seconds from a start; without a limit, the rest of the graph's lifetime.
fn duration_from(request: &Request, at: i64) -> i64 {
    let left = LIFETIME.saturating_sub(at);
    request.duration.map_or(left, |seconds| seconds.clamp(1, left.max(1)))
}

/// Total needs of all slots on each node.
fn needs_by_node(request: &Request, placement: &Placement) -> BTreeMap<Arc<str>, ResourceList> {
    let mut all: BTreeMap<Arc<str>, ResourceList> = BTreeMap::new();
    for slot in &placement.slots {
        let Some(shape) = request.shapes.get(slot.shape as usize) else { continue };
        let needs = all.entry(slot.node.clone()).or_default();
        for (name, quantity) in shape.needs.iter() {
            // Slots placed on a node fit there.
            let more = quantity.saturating_mul(u64::from(slot.count));
            needs.set(name.clone(), needs.get(name).saturating_add(more));
        }
    }
    all
}

/// Host ports of a placement, by node.
fn ports_of(nodes: &Nodes, request: &Request, placement: &Placement) -> BTreeMap<VertexId, Vec<HostPort>> {
    let mut all: BTreeMap<VertexId, Vec<_>> = BTreeMap::new();
    for slot in &placement.slots {
        let shape = request.shapes.get(slot.shape as usize);
        let ports = shape.map_or(&[][..], |shape| &shape.ports);
        if let Some(node) = nodes.by_key(&slot.node).filter(|_| !ports.is_empty()) {
            all.entry(node.vertex).or_default().extend_from_slice(ports);
        }
    }
    all
}

/// Excludes amounts that a node does not really have from the search at this time.
fn block(inventory: &mut Inventory, attempt: u32, node: &Arc<str>, needs: ResourceList, planned: &Planned) {
    let shape = Shape {
        count: 1,
        needs: Arc::new(needs),
        constraint: Arc::new(NodeConstraint::default()),
        ports: Arc::new([]),
        peer: None,
        preferences: None,
    };
    let request = Request { shapes: vec![shape], ..Request::default() };
    let slots = vec![Slot { shape: 0, node: node.clone(), count: 1 }];
    let placement = Placement { slots, domain: None };
    inventory.reserve(u32::MAX - attempt, &request, placement, planned.start, planned.end);
}
