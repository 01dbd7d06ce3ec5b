//! What visits to nodes came to, kept from match to match.
//!
//! What is found below a node for one list of entries depends on the graph below it, on what is booked
//! there during the time looked at, and on nothing else. So it is found once for a node of which nothing
//! is booked then, whenever that is, and once per state of a node that is partly booked. Only a summary
//! is kept; the few nodes that are chosen in the end are visited again.

use super::books::Books;
use super::request::{EntryId, Request};
use crate::errno::Errno;
use crate::flux_constraint::Constraint;
use crate::graph::{Graph, Subsystem, TypeId, VertexId};

/// How many kinds of visits are remembered at the same time.
const MAX_CONTEXTS: usize = 8;

/// Not the number of a home.
const NONE: u32 = u32::MAX;

/// What a visit came to.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Available amount, score and exclusiveness; none when the vertex can't be used.
    pub usable: Option<(u64, i64, bool)>,
    /// The last error number met on the way.
    pub errno: Option<Errno>,
    /// How many vertices were entered and left.
    pub preorder: u32,
    pub postorder: u32,
    /// Candidates handed to the parent: score and count.
    pub offered: Box<[Offered]>,
}

/// Candidates of one type.
#[derive(Clone, Debug)]
pub(super) struct Offered {
    pub type_id: TypeId,
    pub groups: Box<[(i64, u64)]>,
}

/// A visit at a certain time to a node in a certain state.
#[derive(Clone, Debug)]
struct Timed {
    stamp: u32,
    at: i64,
    duration: i64,
    outcome: Outcome,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    idle: Option<Box<Outcome>>,
    timed: Option<Box<Timed>>,
}

/// What a visit depends on besides the node and its books.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    shape: Vec<u32>,
    constraint: Option<Constraint>,
}

#[derive(Clone, Debug)]
struct Context {
    key: Key,
    used: u64,
    slots: Vec<Slot>,
}

/// All that is remembered.
#[derive(Clone, Debug, Default)]
pub(super) struct Memo {
    /// Whether anything may be remembered: the dominant subsystem is a tree.
    enabled: bool,
    /// Per vertex: the number of the node it is or belongs to.
    homes: Vec<u32>,
    nodes: Vec<VertexId>,
    /// First of the vertices that belong to each node, and all of them, node by node.
    starts: Vec<u32>,
    members: Vec<VertexId>,
    /// Per node: state, first and last second for which anything is booked there.
    spans: Vec<(u32, i64, i64)>,
    contexts: Vec<Context>,
    clock: u64,
}

impl Memo {
    /// Forgets everything, and looks at the graph anew.
    pub(super) fn reset(&mut self, graph: &Graph, books: &mut Books, dominant: Subsystem, node_type: TypeId) {
        *self = Self { homes: vec![NONE; graph.vertex_count()], ..Self::default() };
        let Some(root) = graph.root(dominant) else { return };
        let mut open = vec![(root, NONE)];
        let mut seen = vec![false; graph.vertex_count()];
        while let Some((id, above)) = open.pop() {
            if seen[id.index()] {
                // Two ways lead here: what a visit finds depends on which was taken first.
                *self = Self::default();
                books.set_homes(Vec::new(), 0);
                return;
            }
            seen[id.index()] = true;
            let mut home = above;
            if above == NONE && graph.vertex(id).type_id == node_type && id != root {
                home = u32::try_from(self.nodes.len()).unwrap_or(NONE);
                self.nodes.push(id);
                self.starts.push(u32::try_from(self.members.len()).unwrap_or(NONE));
            }
            if home != NONE {
                self.members.push(id);
            }
            self.homes[id.index()] = home;
            open.extend(graph.children(id, dominant).map(|(_, child)| (child, home)));
        }
        self.starts.push(u32::try_from(self.members.len()).unwrap_or(NONE));
        self.spans = vec![(NONE, 0, 0); self.nodes.len()];
        books.set_homes(self.homes.clone(), self.nodes.len());
        self.enabled = true;
    }

    /// Forgets what visits came to: states or properties of vertices have changed.
    pub(super) fn forget(&mut self) {
        self.contexts.clear();
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// The number of a node, if it is one of which visits are remembered.
    pub(super) fn node(&self, id: VertexId) -> Option<u32> {
        let home = *self.homes.get(id.index())?;
        (home != NONE && self.nodes[home as usize] == id).then_some(home)
    }

    /// The number for visits that depend on the same things.
    pub(super) fn context(&mut self, request: &Request, list: &[EntryId], flags: [bool; 4]) -> u32 {
        let mut shape: Vec<u32> = flags.iter().map(|&flag| u32::from(flag)).collect();
        for &entry in list {
            describe(request, entry, &mut shape);
        }
        let key = Key { shape, constraint: request.constraint.clone() };
        self.clock += 1;
        let known = self.contexts.iter().position(|context| context.key == key);
        let at = known.unwrap_or_else(|| {
            let context = Context { key, used: 0, slots: vec![Slot::default(); self.nodes.len()] };
            if self.contexts.len() < MAX_CONTEXTS {
                self.contexts.push(context);
                return self.contexts.len() - 1;
            }
            let oldest = self.contexts.iter().enumerate().min_by_key(|(_, context)| context.used);
            let oldest = oldest.map_or(0, |(at, _)| at);
            self.contexts[oldest] = context;
            oldest
        });
        self.contexts[at].used = self.clock;
        u32::try_from(at).unwrap_or(0)
    }

    /// What a visit in this context at this time came to, if that is known.
    #[inline]
    pub(super) fn recall(
        &mut self,
        books: &Books,
        context: u32,
        node: u32,
        at: i64,
        duration: i64,
    ) -> Option<&Outcome> {
        let idle = self.is_idle(books, node, at, duration);
        let slot = &self.contexts[context as usize].slots[node as usize];
        if idle {
            return slot.idle.as_deref();
        }
        let timed = slot.timed.as_deref()?;
        let same = timed.stamp == books.stamp(node) && timed.at == at && timed.duration == duration;
        same.then_some(&timed.outcome)
    }

    /// Remembers what a visit came to.
    pub(super) fn note(
        &mut self,
        books: &Books,
        context: u32,
        node: u32,
        window: (i64, i64),
        outcome: Outcome,
    ) {
        let (at, duration) = window;
        let idle = self.is_idle(books, node, at, duration);
        let slot = &mut self.contexts[context as usize].slots[node as usize];
        if idle {
            slot.idle = Some(Box::new(outcome));
        } else {
            let timed = Timed { stamp: books.stamp(node), at, duration, outcome };
            slot.timed = Some(Box::new(timed));
        }
    }

    /// Whether nothing is booked in a node during a stretch of time.
    #[inline]
    fn is_idle(&mut self, books: &Books, node: u32, at: i64, duration: i64) -> bool {
        let stamp = books.stamp(node);
        let span = &mut self.spans[node as usize];
        if span.0 != stamp {
            let from = self.starts[node as usize] as usize;
            let to = self.starts[node as usize + 1] as usize;
            let mut hull = (i64::MAX, i64::MIN);
            for &id in &self.members[from..to] {
                let Some(account) = books.get(id) else { continue };
                if let Some((first, last)) = account.hull() {
                    hull = (hull.0.min(first), hull.1.max(last));
                }
            }
            *span = (stamp, hull.0, hull.1);
        }
        let (_, first, last) = *span;
        at >= last || at.saturating_add(duration) <= first
    }
}

/// What matters of an entry for what is found below one vertex: everything but how many there must be.
fn describe(request: &Request, id: EntryId, out: &mut Vec<u32>) {
    let entry = request.entry(id);
    let exclusive = match entry.exclusive {
        None => 0,
        Some(false) => 1,
        Some(true) => 2,
    };
    out.extend([
        entry.type_id.0,
        exclusive,
        u32::from(entry.is_slot),
        u32::try_from(entry.with.len()).unwrap_or(u32::MAX),
    ]);
    for &child in &entry.with {
        let count = request.entry(child).count;
        out.extend([count.min, count.max, count.operator as u32, count.operand]);
        describe(request, child, out);
    }
}
