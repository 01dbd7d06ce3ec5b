//! The allocations: which nodes exist, their resources, their holders and until when, and reservations.
//!
//! Cloning only costs a few reference counts: all data is in shared chunks that are copied when they change. *Held
//! now* and *planned to be released* are separate: a holder past its planned end still holds its resources, and is
//! planned to end one second from now. A node with less than its holders have has a deficit, which is not an error.
//! Nothing in here places gangs, or knows about Pods beyond the key of a holder.

mod book;
mod columns;
mod cow;
mod domain;
mod domains;
mod eligibility;
mod freed;
pub(crate) mod graph;
mod hold;
mod holding;
mod id;
mod in_total;
mod node;
mod peers;
mod reservation;
mod reserved;
mod reserving;
mod sets;
pub(crate) mod share;
mod spec;
mod storage;
mod timeline;
mod topologies;
mod topology;
mod totals;
mod tracking;
mod view;
mod window;

use std::sync::{Arc, OnceLock};

use crate::constraint::volumes::Storage;

pub use hold::{Allocation, AllocationKind, Release, assumed_end, planned_or_assumed};

pub use reservation::Promise;
pub use spec::NodeSpec;
pub use view::NodeView;

pub(crate) use book::NodeAllocations;
pub(crate) use domain::Domains;
pub(crate) use eligibility::Eligibility;
pub(crate) use hold::planned_end;
pub(crate) use id::{KindId, NodeId};
pub(crate) use peers::{Found, Selection};
pub(crate) use timeline::Timeline;
pub(crate) use topology::Topology;
pub(crate) use totals::Wants;

use columns::Columns;
use cow::CowVec;
use reserved::Reserved;

/// Nodes, holders and reservations. See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// IDs by node name, for existing nodes and for names that have holders.
    ids: imbl::OrdMap<Arc<str>, NodeId>,
    /// Existing nodes in natural order of their names.
    order: Arc<Vec<NodeId>>,
    /// Places in that order by id, made when somebody asks.
    ranks: OnceLock<Arc<Vec<usize>>>,
    allocations: CowVec<Option<Arc<NodeAllocations>>>,
    unused: Arc<Vec<NodeId>>,
    columns: Columns,
    totals: totals::Totals,
    /// Node of each holder.
    holders: imbl::OrdMap<Arc<str>, NodeId>,
    /// Assumed ends, with their holders.
    assumed: imbl::OrdSet<(i64, NodeId, Arc<str>)>,
    reservations: imbl::OrdMap<u32, Arc<Promise>>,
    reserved: CowVec<Option<Arc<Reserved>>>,
    /// When the first promise of each promised node begins.
    promised: imbl::OrdSet<(i64, NodeId)>,
    eligibility: sets::Sets,
    domains: domain::Cache,
    memberships: domain::Memberships,
    topologies: topology::TopologyCache,
    peers: peers::Peers,
    /// Number of nodes with a taint `PreferNoSchedule`.
    discouraging: usize,
    storage: Storage,
    levels: Arc<Vec<Arc<str>>>,
    startup_taints: Arc<[Arc<str>]>,
    freed: u64,
    freed_on: freed::Freed,
    /// The last planned end of anything that was freed, lost or taken in spite of reservations.
    disturbed: i64,
    graph: u64,
    /// Revision of the last visible change of each node, and of all nodes, counted by `revision`.
    revisions: CowVec<u64>,
    all_changed: u64,
    revision: u64,
}

impl Inventory {
    /// No nodes, no holders.
    pub fn new() -> Self {
        Self::default()
    }

    /// Key prefixes of further temporary taints, in addition to the known ones; for nodes set from now on.
    pub fn set_startup_taints(&mut self, keys: impl IntoIterator<Item = Arc<str>>) {
        self.startup_taints = keys.into_iter().collect();
    }

    /// Whether any node has a taint `PreferNoSchedule`.
    pub(crate) fn has_discouraging_taints(&self) -> bool {
        self.discouraging > 0
    }

    /// Incremented whenever something was freed or rescheduled, or a node changed: what did not fit may fit now.
    /// Allocating does not change it, nor does extending an assumed end.
    pub fn freed_generation(&self) -> u64 {
        self.freed
    }

    /// Whether something happened that was not planned for `now` or earlier, since [`Self::settle`]: reservations may be
    /// moved to an earlier start, or can't be kept.
    pub(crate) fn disturbed(&self, now: i64) -> bool {
        self.disturbed > now
    }

    /// Incremented with every change of a node, its holders or its reservations.
    pub(crate) fn changes(&self) -> u64 {
        self.revision
    }

    /// Whether the planned end of a holder or the start of a reservation has passed.
    pub(crate) fn overdue(&self, now: i64) -> bool {
        let first = [self.totals.first_end(), self.promised.get_min().map(|(start, _)| *start)];
        first.into_iter().flatten().any(|time| time <= now)
    }

    /// Whether all that happened since [`Self::settle`] is that something ended before its planned end.
    pub(crate) fn only_freed(&self) -> bool {
        self.disturbed < i64::MAX
    }

    /// All reservations were considered.
    pub(crate) fn settle(&mut self) {
        self.disturbed = i64::MIN;
    }

    /// All reservations were considered, and are for what is free then, unless something happened in the meantime.
    pub(crate) fn all_kept(&mut self, now: i64) {
        if !self.disturbed(now) {
            self.totals.overlaid = false;
        }
    }

    /// Records that something planned to last until then was freed or lost.
    fn disturb(&mut self, until: Option<i64>) {
        self.disturbed = self.disturbed.max(until.unwrap_or(i64::MAX));
    }

    /// Incremented whenever a node is added, changed or removed: unsatisfiable requests may be satisfiable now.
    pub fn graph_generation(&self) -> u64 {
        self.graph
    }

    /// Number of existing nodes.
    pub fn node_count(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn order(&self) -> &[NodeId] {
        &self.order
    }

    /// The node's place in the natural order of names; `usize::MAX` for one that does not exist.
    pub(crate) fn rank(&self, id: NodeId) -> usize {
        let ranks = self.ranks.get_or_init(|| {
            let mut ranks = Vec::new();
            for (rank, id) in self.order.iter().enumerate() {
                let id = *id as usize;
                if ranks.len() <= id {
                    ranks.resize(id + 1, usize::MAX);
                }
                ranks[id] = rank;
            }
            Arc::new(ranks)
        });
        ranks.get(id as usize).copied().unwrap_or(usize::MAX)
    }

    pub(crate) fn book(&self, id: NodeId) -> Option<&Arc<NodeAllocations>> {
        self.allocations.get(id)?.as_ref()
    }

    pub(crate) fn id(&self, name: &str) -> Option<NodeId> {
        self.ids.get(name).copied()
    }

    pub(crate) fn name(&self, id: NodeId) -> Arc<str> {
        self.book(id).map_or_else(|| Arc::from(""), |book| book.name.clone())
    }

    pub(crate) fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The entry of a node name, created if missing.
    fn open(&mut self, name: &Arc<str>) -> NodeId {
        if let Some(id) = self.id(name) {
            return id;
        }
        let id = if self.unused.is_empty() {
            NodeId::try_from(self.ids.len()).expect("fewer than 2^32 nodes fit into memory")
        } else {
            Arc::make_mut(&mut self.unused).pop().expect("the list was just seen not to be empty")
        };
        self.ids.insert(name.clone(), id);
        *self.allocations.slot(id) = Some(Arc::new(NodeAllocations::new(name.clone())));
        self.touch(id);
        id
    }

    /// Records a visible change of the node.
    fn touch(&mut self, id: NodeId) {
        self.revision += 1;
        *self.revisions.slot(id) = self.revision;
    }

    /// Records that the name of this holder has changed.
    pub(crate) fn touch_node_of(&mut self, holder: &Arc<str>) {
        if let Some(id) = self.holders.get(holder).copied() {
            self.touch(id);
        }
    }

    /// The entry, mutable, to change a holder that the timelines then follow.
    fn book_kept(&mut self, id: NodeId) -> Option<&mut NodeAllocations> {
        self.touch(id);
        self.allocations.slot(id).as_mut().map(Arc::make_mut)
    }

    /// The entry, mutable.
    fn book_mut(&mut self, id: NodeId) -> Option<&mut NodeAllocations> {
        if self.reserved.get(id).is_some_and(Option::is_some)
            && let Some(reserved) = self.reserved.slot(id)
        {
            Arc::make_mut(reserved).timeline.take();
        }
        self.book_kept(id)
    }

    /// Removes a name that is neither a node nor has holders.
    fn close_unless_used(&mut self, id: NodeId) {
        let Some(book) = self.book(id) else { return };
        if book.spec.is_some() || !book.holds.is_empty() {
            return;
        }
        let name = book.name.clone();
        self.ids.remove(&name);
        *self.allocations.slot(id) = None;
        Arc::make_mut(&mut self.unused).push(id);
    }

    /// Updates the numbers of one node and resource from its entry.
    fn refresh(&mut self, id: NodeId, kind: KindId) {
        if let Some(book) = self.book(id) {
            let numbers = book.numbers(kind);
            self.columns.set(id, kind, numbers);
        }
    }
}

#[cfg(test)]
mod tests;
