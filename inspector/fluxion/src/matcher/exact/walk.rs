//! One walk: what it is asked for, and what it carries along.

use super::known::Shortcut;
use crate::graph::{Graph, Subsystem, TypeId};
use crate::matcher::allocations::Allocations;
use crate::matcher::memo::Memo;
use crate::matcher::policy::Policy;
use crate::matcher::request::{EntryId, Request};
use crate::matcher::scratch::Scratch;
use crate::quirks::Quirks;

/// What a selection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::matcher) enum Purpose {
    /// To be used now.
    Allocate,
    /// To be used later.
    Reserve,
    /// To be shown only.
    Without,
    /// To learn whether it could ever work.
    Satisfiability,
}

/// What a selection is asked for.
#[derive(Clone, Copy)]
pub(in crate::matcher) struct Selection<'a> {
    pub graph: &'a Graph,
    pub allocations: &'a Allocations,
    pub request: &'a Request,
    pub policy: Policy,
    pub quirks: Quirks,
    pub flexible: bool,
    pub dominant: Subsystem,
    /// Whether subsystems besides the dominant one are in use.
    pub auxiliary: bool,
    pub node_type: TypeId,
    pub storage_node_type: TypeId,
    pub now: i64,
    pub at: i64,
    pub duration: i64,
    pub purpose: Purpose,
}

/// One walk.
pub(in crate::matcher) struct Walk<'a, 's, 'm> {
    pub(super) ask: Selection<'a>,
    pub(super) scratch: &'s mut Scratch,
    /// What need not be visited again; none for a walk that is exact in every step.
    pub(super) shortcut: Option<Shortcut<'m>>,
    /// Whether to turn back where there is known to be too little.
    pub(super) by_shorts: bool,
    /// Sum of the factors of the nodes that enclose the current vertex.
    pub(super) boost: i64,
    pub(super) last_factor: i64,
    /// How often something was chosen among what is below a vertex.
    pub(super) choices: u64,
    /// Stands in for the factor of every node.
    pub(super) factor: Option<i64>,
}

/// How a vertex relates to what is asked for.
pub(super) enum VisitKind<'r> {
    /// Nobody asked for it, and its parent was asked for.
    None,
    /// Nobody asked for it, nor for anything above.
    Pass,
    /// It is asked for, with these below.
    Resource(&'r [EntryId]),
    /// A slot can be made of what is below it.
    Slot(EntryId),
    /// One of several slots can be made of what is below it.
    Slots(&'r [EntryId]),
}

impl<'a, 's, 'm> Walk<'a, 's, 'm> {
    /// Prepares a walk. With a memo it skips what is known already, where that changes nothing.
    pub(crate) fn new(ask: Selection<'a>, scratch: &'s mut Scratch, memo: Option<&'m mut Memo>) -> Self {
        // With alternatives the last slot decides for all; notes need every reason.
        let by_shorts = memo.is_some() && !ask.flexible && scratch.notes.is_none();
        let plain = !ask.policy.stop_on_first && !ask.flexible && !ask.request.has_labels();
        let memo = memo.filter(|memo| plain && memo.is_enabled());
        Self {
            ask,
            scratch,
            shortcut: memo.map(Shortcut::new),
            by_shorts,
            boost: 0,
            last_factor: 0,
            choices: 0,
            factor: None,
        }
    }
}
