//! The books: which nodes there are, what they offer, who holds what on them and until when, what is reserved.
//!
//! Cloning costs a few reference counts: everything lies in shared chunks that are copied when they change. What is
//! *held now* and when it is *planned to be released* are two things: a holder past its planned end still holds, and
//! is planned to end a second from now. A node that offers less than is held on it has a deficit; that is shown,
//! never an error. Nothing in here decides where a gang goes, or knows what a Pod is beyond its holder's key.

mod book;
mod columns;
mod cow;
mod domain;
mod domains;
mod eligibility;
pub(crate) mod graph;
mod hold;
mod holding;
mod id;
mod node;
mod reservation;
mod reserved;
mod reserving;
mod sets;
pub(crate) mod share;
mod spec;
mod timeline;
mod view;
mod window;

use std::sync::{Arc, OnceLock};

pub use hold::{Allocation, AllocationKind, Release, assumed_end, planned_or_assumed};

pub use reservation::Promise;
pub use spec::NodeSpec;
pub use view::NodeView;

pub(crate) use book::NodeAllocations;
pub(crate) use domain::Domains;
pub(crate) use eligibility::Eligibility;
pub(crate) use hold::planned_end;
pub(crate) use id::{KindId, NodeId};
pub(crate) use timeline::Timeline;

use columns::Columns;
use cow::CowVec;
use reserved::Reserved;

/// Nodes, holders and reservations. See the module for what it keeps apart.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// Ids by node name, for nodes that exist and for names that somebody holds on.
    ids: imbl::OrdMap<Arc<str>, NodeId>,
    /// Existing nodes in natural order of their names.
    order: Arc<Vec<NodeId>>,
    /// Places in that order by id, made when somebody asks.
    ranks: OnceLock<Arc<Vec<usize>>>,
    books: CowVec<Option<Arc<NodeAllocations>>>,
    unused: Arc<Vec<NodeId>>,
    columns: Columns,
    /// Node of each holder.
    holders: imbl::OrdMap<Arc<str>, NodeId>,
    /// Assumed ends, with whose they are.
    assumed: imbl::OrdSet<(i64, NodeId, Arc<str>)>,
    reservations: imbl::OrdMap<u32, Arc<Promise>>,
    reserved: CowVec<Option<Arc<Reserved>>>,
    /// When the first promise of each promised node begins.
    promised: imbl::OrdSet<(i64, NodeId)>,
    eligibility: sets::Sets,
    domains: domain::Cache,
    memberships: domain::Memberships,
    levels: Arc<Vec<Arc<str>>>,
    startup_taints: Arc<[Arc<str>]>,
    freed: u64,
    graph: u64,
    /// When what there is to see of a node last changed, and of all of them, counted by `revision`.
    revisions: CowVec<u64>,
    all_changed: u64,
    revision: u64,
}

impl Inventory {
    /// No nodes, no holders.
    pub fn new() -> Self {
        Self::default()
    }

    /// Beginnings of keys of taints that pass by themselves, besides those that are known to; for nodes that are set
    /// from now on.
    pub fn set_startup_taints(&mut self, keys: impl IntoIterator<Item = Arc<str>>) {
        self.startup_taints = keys.into_iter().collect();
    }

    /// Grows whenever something was freed or planned otherwise, or a node changed: what did not fit may fit now.
    /// Taking does not change it, nor does it when an end is assumed later than before.
    pub fn freed_generation(&self) -> u64 {
        self.freed
    }

    /// Grows whenever a node appears, changes or goes: what could never run may be possible now.
    pub fn graph_generation(&self) -> u64 {
        self.graph
    }

    /// How many nodes exist.
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
        self.books.get(id)?.as_ref()
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

    /// The book of a node name, which is started where there is none.
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
        *self.books.slot(id) = Some(Arc::new(NodeAllocations::new(name.clone())));
        self.touch(id);
        id
    }

    /// Something about the node changed that can be seen.
    fn touch(&mut self, id: NodeId) {
        self.revision += 1;
        *self.revisions.slot(id) = self.revision;
    }

    /// Whoever holds this is called otherwise than before.
    pub(crate) fn touch_node_of(&mut self, holder: &Arc<str>) {
        if let Some(id) = self.holders.get(holder).copied() {
            self.touch(id);
        }
    }

    /// The book for change.
    fn book_mut(&mut self, id: NodeId) -> Option<&mut NodeAllocations> {
        self.touch(id);
        if self.reserved.get(id).is_some_and(Option::is_some)
            && let Some(reserved) = self.reserved.slot(id)
        {
            Arc::make_mut(reserved).timeline.take();
        }
        self.books.slot(id).as_mut().map(Arc::make_mut)
    }

    /// Forgets a name that neither is a node nor has holders.
    fn close_unless_used(&mut self, id: NodeId) {
        let Some(book) = self.book(id) else { return };
        if book.spec.is_some() || !book.holds.is_empty() {
            return;
        }
        let name = book.name.clone();
        self.ids.remove(&name);
        *self.books.slot(id) = None;
        Arc::make_mut(&mut self.unused).push(id);
    }

    /// Writes the numbers of one node and resource anew from its book.
    fn refresh(&mut self, id: NodeId, kind: KindId) {
        if let Some(book) = self.book(id) {
            let numbers = book.numbers(kind);
            self.columns.set(id, kind, numbers);
        }
    }
}

#[cfg(test)]
mod tests;
