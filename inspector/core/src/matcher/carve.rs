//! Matching a gang on the graph: slots that each stay within one node, and quantities carved out of pools.
//!
//! Which nodes and when is the decision of [`gang`]; here its answer becomes marks on the graph, and is booked and
//! told like any other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::book::Booking;
use super::books::{Hold, JobId};
use super::engine::{Engine, Failure, LIFETIME};
use super::gang::{self, Lens, NodePolicy, Placement, Plan, Planned, Slot, Work};
use super::nodes::{Node, Nodes};
use super::operations::{Found, Operation};
use super::policy::{Order, Scoring};
use super::scratch::Mark;
use super::sink::Sink;
use crate::constraint::NodeConstraint;
use crate::errno::Errno;
use crate::explain::{WhyNot, why_not};
use crate::graph::VertexId;
use crate::inventory::Inventory;
use crate::request::{Request, Shape};
use crate::resources::ResourceList;

/// Searches for one match, at most; more than one is only needed where a pool of several pieces is in pieces.
const SEARCHES: u32 = 1_000;

/// Why there is no index of nodes.
const NO_INDEX: &str = "the nodes of the graph have too many vertices above them: flatten it";

/// What is taken of each pool.
pub(super) type Pieces = BTreeMap<VertexId, u64>;

impl Engine {
    /// Matches a gang; see [`Engine::match_job`].
    pub(super) fn match_gang(
        &mut self,
        operation: Operation,
        request: &Request,
        job: JobId,
        now: i64,
        sink: &mut dyn Sink,
    ) -> Result<Found, Failure> {
        self.read_nodes();
        let Some(nodes) = &self.nodes else {
            return Err(Failure::new(Errno::Einval, NO_INDEX));
        };
        self.can_be_asked(request)?;
        let possible = || match gang::satisfiable(&nodes.inventory, request) {
            Ok(()) => Errno::Ebusy,
            Err(_) => Errno::Enodev,
        };
        if operation == Operation::Satisfiability {
            return match possible() {
                Errno::Ebusy => Ok(Found { at: now, duration: duration_from(request, now) }),
                errno => Err(Failure::new(errno, "")),
            };
        }
        let found = self.search(nodes, operation, request, now, self.node_policy());
        let Some((planned, pieces)) = found.filter(|(planned, _)| (0..LIFETIME).contains(&planned.start))
        else {
            let errno = if operation == Operation::Allocate || operation == Operation::WithoutAllocating {
                Errno::Ebusy
            } else {
                possible()
            };
            return Err(Failure::new(errno, ""));
        };
        let ports = ports_of(nodes, request, &planned.placement);
        self.mark_pieces(&pieces);
        let at = planned.start;
        let hold = match (operation.books(), at == now) {
            (false, _) => None,
            (true, true) => Some(Hold::Allocation),
            (true, false) => Some(Hold::Reservation),
        };
        let duration = duration_from(request, at);
        let booking = Booking {
            job,
            start: at,
            duration,
            hold,
            spans_exist: false,
            carved: true,
            exclusive_types: Vec::new(),
        };
        self.scratch.errno = Errno::Unset;
        self.book(&booking, sink)?;
        if self.scratch.errno != Errno::Unset {
            // The sums above the nodes can't take it, although the nodes can.
            let errno = self.scratch.errno;
            self.cancel(job)?;
            return Err(Failure::new(errno, "the sums of the graph can't hold as much"));
        }
        if operation.books() {
            self.beside.ports.extend(ports.into_iter().map(|(node, ports)| ((node, job), ports)));
        }
        Ok(Found { at, duration })
    }

    /// Says why a gang does not start at `now` (seconds), as the inspector does for a job of its own, and when it could
    /// start as things are booked: `now` for one that fits, none when no start can be planned. Nothing is booked.
    ///
    /// Errors: those of [`Engine::match_job`] for a request that makes no sense.
    pub fn why_gang(&mut self, request: &Request, now: i64) -> Result<(WhyNot, Option<i64>), Failure> {
        self.read_nodes();
        self.can_be_asked(request)?;
        let Some(nodes) = &self.nodes else {
            return Err(Failure::new(Errno::Einval, NO_INDEX));
        };
        let found = self.search(nodes, Operation::WithoutAllocatingFuture, request, now, self.node_policy());
        let start = found.map(|(planned, _)| planned.start).filter(|start| (0..LIFETIME).contains(start));
        Ok((why_not(&nodes.inventory, request, now), start))
    }

    /// In which order nodes are taken.
    fn node_policy(&self) -> NodePolicy {
        match self.policy.scoring {
            Scoring::Id(Order::Descending) if !self.policy.stop_on_first => NodePolicy::High,
            _ => NodePolicy::Low,
        }
    }

    /// Brings the index of nodes up to date.
    pub(super) fn read_nodes(&mut self) {
        let changes = self.books.changes();
        match (&mut self.nodes, changes) {
            (Some(nodes), Some(changes)) => nodes.follow(changes, &self.books, &self.beside),
            (nodes, _) => {
                *nodes = Nodes::new(&self.graph, &self.books, &self.beside, self.dominant, self.node_type);
            }
        }
    }

    /// Refuses what can't be told or booked.
    fn can_be_asked(&self, request: &Request) -> Result<(), Failure> {
        let refuse = |message: String| Err(Failure::new(Errno::Einval, message));
        if request.slots() == 0 {
            return refuse("the request asks for nothing".to_owned());
        }
        if request.duration.is_some_and(|seconds| seconds > LIFETIME) {
            return refuse(format!(
                "the duration must be between 0 and the lifetime of the graph, {LIFETIME} s"
            ));
        }
        for shape in request.shapes.iter().filter(|shape| shape.count > 0) {
            if shape.needs.iter().all(|(_, quantity)| quantity == 0) {
                return refuse("a slot within a node must take something of a pool".to_owned());
            }
            for (name, _) in shape.needs.iter().filter(|(_, quantity)| *quantity > 0) {
                let vertices = self.graph.find_type(name).map_or(&[][..], |of| self.graph.of_type(of));
                let inner = |id: &VertexId| self.graph.children(*id, self.dominant).next().is_some();
                if vertices.iter().any(inner) {
                    return refuse(format!(
                        "a slot within a node takes quantities of pools, and {name} has other vertices below it: ask for those"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Where and when, and what is taken of each pool.
    fn search(
        &self,
        nodes: &Nodes,
        operation: Operation,
        request: &Request,
        now: i64,
        policy: NodePolicy,
    ) -> Option<(Planned, Pieces)> {
        let inventory = &nodes.inventory;
        let mut searches = 0;
        let mut planned = if operation.looks_ahead() {
            gang::earliest(inventory, request, now, policy).ok()?
        } else {
            let placement = gang::place_now(inventory, request, now, policy).ok()?;
            Planned { start: now, end: request.end(now), placement, assumed: false }
        };
        loop {
            if let Some(found) = self.cut_at(nodes, request, planned.clone(), now, policy, &mut searches) {
                return Some(found);
            }
            if !operation.looks_ahead() || searches >= SEARCHES {
                return None;
            }
            // What fits at no start up to this one fits at the earliest when something more was released.
            let mut work = Work::default();
            planned =
                gang::first_start(inventory, request, (planned.start, planned.start), policy, &mut work)
                    .ok()?;
        }
    }

    /// What is taken of each pool at a start: where the pieces of a node are short of what their sum promises, it is
    /// searched again without that.
    fn cut_at(
        &self,
        nodes: &Nodes,
        request: &Request,
        mut planned: Planned,
        now: i64,
        policy: NodePolicy,
        searches: &mut u32,
    ) -> Option<(Planned, Pieces)> {
        let mut inventory = nodes.inventory.clone();
        while *searches < SEARCHES {
            *searches += 1;
            match self.cut(nodes, request, &planned, policy) {
                Ok(pieces) => return Some((planned, pieces)),
                Err((node, missing)) => block(&mut inventory, *searches, &node, missing, &planned),
            }
            let plan = Plan::new(&inventory, request, policy);
            let end = planned.end.unwrap_or(i64::MAX);
            let lens = Lens::window(&inventory, now, planned.start, end);
            planned.placement = gang::place(&plan, &lens, &mut Work::default())?;
        }
        None
    }

    /// Cuts what the slots need out of the pools of their nodes. A pool of several pieces may be short of what the
    /// sum over them promises, when no piece is free for the whole time: the error says on which node, and by how
    /// much.
    fn cut(
        &self,
        nodes: &Nodes,
        request: &Request,
        planned: &Planned,
        policy: NodePolicy,
    ) -> Result<Pieces, (Arc<str>, ResourceList)> {
        let duration = duration_from(request, planned.start);
        let free = |id| self.books.min_free(&self.graph, id, planned.start, duration).unwrap_or(0);
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
                return Err((key, self.overstated(nodes, node, &needs, planned, duration)));
            }
        }
        Ok(pieces)
    }

    /// How much more of the missing types the index promises than the pieces have.
    fn overstated(
        &self,
        nodes: &Nodes,
        node: &Node,
        missing: &ResourceList,
        planned: &Planned,
        duration: i64,
    ) -> ResourceList {
        let mut over = ResourceList::new();
        for (name, _) in missing.iter().filter(|(_, quantity)| *quantity > 0) {
            let pieces = node.pools.iter().filter(|pool| pool.up && pool.type_name == *name);
            let real = pieces.fold(0_u64, |sum, pool| {
                let free = self.books.min_free(&self.graph, pool.vertex, planned.start, duration);
                sum.saturating_add(free.unwrap_or(0))
            });
            let promised = nodes.inventory.available(&node.key, name, planned.start, planned.end);
            over.set(name.clone(), promised.saturating_sub(real).max(1));
        }
        over
    }

    /// Marks the pieces, and a way to each from the root.
    pub(super) fn mark_pieces(&mut self, pieces: &Pieces) {
        self.scratch.start(&self.graph);
        let mut reached: BTreeSet<VertexId> = BTreeSet::new();
        for (&pool, &needs) in pieces {
            let mut at = pool;
            let mut mark = (needs, true);
            while let Some(edge) = self.nodes.as_ref().and_then(|nodes| nodes.way_to(at)) {
                let parent = self.graph.edge(edge).source;
                self.scratch.mark(&self.graph, edge, mark.0, mark.1);
                if !reached.insert(parent) {
                    break;
                }
                at = parent;
                mark = (self.graph.vertex(at).size, false);
            }
        }
        if let Some(root) = self.root() {
            let needs = self.graph.vertex(root).size;
            self.scratch.root_mark = Mark { round: self.scratch.round, exclusive: false, needs };
        }
    }
}

/// Seconds from a start on; without a limit as long as the graph lives.
fn duration_from(request: &Request, at: i64) -> i64 {
    let left = LIFETIME.saturating_sub(at);
    request.duration.map_or(left, |seconds| seconds.clamp(1, left.max(1)))
}

/// What all slots on a node need together.
fn needs_by_node(request: &Request, placement: &Placement) -> BTreeMap<Arc<str>, ResourceList> {
    let mut all: BTreeMap<Arc<str>, ResourceList> = BTreeMap::new();
    for slot in &placement.slots {
        let Some(shape) = request.shapes.get(slot.shape as usize) else { continue };
        let needs = all.entry(slot.node.clone()).or_default();
        for (name, quantity) in shape.needs.iter() {
            // What was placed on a node fits there.
            let more = quantity.saturating_mul(u64::from(slot.count));
            needs.set(name.clone(), needs.get(name).saturating_add(more));
        }
    }
    all
}

/// Host ports of a placement, by node.
fn ports_of(
    nodes: &Nodes,
    request: &Request,
    placement: &Placement,
) -> BTreeMap<VertexId, Vec<crate::constraint::HostPort>> {
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

/// Takes what a node does not really have out of the search, for this time.
fn block(inventory: &mut Inventory, attempt: u32, node: &Arc<str>, needs: ResourceList, planned: &Planned) {
    let shape = Shape {
        count: 1,
        needs: Arc::new(needs),
        constraint: Arc::new(NodeConstraint::default()),
        ports: Arc::new([]),
    };
    let request = Request { shapes: vec![shape], ..Request::default() };
    let slots = vec![Slot { shape: 0, node: node.clone(), count: 1 }];
    let placement = Placement { slots, domain: None };
    inventory.reserve(u32::MAX - attempt, &request, placement, planned.start, planned.end);
}
