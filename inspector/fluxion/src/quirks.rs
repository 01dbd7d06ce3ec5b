//! Accidents of flux-sched that recorded answers depend on, in one place.
//!
//! All are off by default: the engine that schedules gives the sane answer. A drop-in for
//! `resource-query` switches them all on.

/// Which accidents to repeat. Each field says what happens when it is on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Quirks {
    /// Formats: what can't be written (an R without cores, a graph of one vertex, a vertex without rank)
    /// is kept and leads the next answer, or makes that fail too. Off: it is written where the
    /// format has a form for it, and an answer that fails is forgotten.
    pub writer_keeps_leftovers: bool,
    /// Format rlite: an answer without any resource is an error, not an empty text. A failed match then
    /// looks like a failed writer, and its job number is used again.
    pub rlite_refuses_nothing: bool,
    /// Shorthand formats: once one answer was shortened, all later ones carry the `writer` member.
    pub sticky_shorthand_mark: bool,
    /// Format rv1: the queue of an earlier answer is repeated in later ones that name none.
    pub sticky_queue: bool,
    /// Lists of more than 16 candidates leave equals in the order that GNU's introsort gives them.
    /// Off: equals stay in order of discovery.
    pub introsort_ties: bool,
    /// A slot found through a level nobody asked for is not reachable for booking, and the match
    /// fails after it succeeded. Off: the levels in between are marked as shared.
    pub unreachable_slots: bool,
    /// A request that reserves nothing for itself fails with whatever error number an earlier step of
    /// the match left behind. Off: it is refused as invalid.
    pub stale_errno: bool,
    /// A vertex that is down when loaded counts as minus one usable node, a status set on a subtree
    /// counts all nodes below it whatever their own state, and attached or removed nodes are not
    /// counted. Off: usable nodes are those that are up.
    pub drifting_node_count: bool,
    /// After the total of a planner changed, its time index keeps the old remainder until it is
    /// touched, and what is free stops at zero; a vertex that has lost all that was below it keeps its sums.
    /// Off: all follow at once.
    pub lagging_time_index: bool,
    /// A type that is found to need summing up only halfway through the graph is counted from there
    /// on, and what jobs hold of it already is not. Off: the sums are made again.
    pub halfway_tracking: bool,
    /// Removing ranks credits every job found there with the sums of all jobs, and only allocations
    /// count; ranks that come before one that is not there are forgotten. Off: each job gives back what it
    /// held, and nothing happens for a rank that is not there.
    pub pooled_rank_removal: bool,
    /// Partial cancel lets go of the exclusivity mark of every ancestor, although part of the job is
    /// still below it. Off: the mark stays as long as the job holds something there.
    pub early_unmark: bool,
    /// A label that an earlier or failed match left on a vertex shows up in later answers. Off: only
    /// labels of the same match are shown.
    pub stale_labels: bool,
    /// When the text of an answer can't be written, the booking stays although the match is reported
    /// as failed, and the job number is used again: what an earlier job of this number had there stays in
    /// the way. Off: the booking is undone.
    pub leaked_bookings: bool,
    /// An auxiliary subsystem next to the dominant one makes every match fail. Off: it is ignored.
    pub auxiliary_refuses: bool,
    /// A job that is not known at the root of the dominant subsystem is let go of vertex by vertex,
    /// and reported as an error. Off: it is cancelled like any other.
    pub rootless_cancel_fails: bool,
    /// An edge error in an update leaves the vertices of the document booked, and a vertex at which a partial
    /// cancel fails is left with the job's holding alone. Off: an update that fails leaves nothing, and such a
    /// vertex is as it was.
    pub half_updates: bool,
    /// Where the policy takes nodes whole, an update writes down and sums up all of a node of which the
    /// document lists a part, though nothing but that part is booked. Off: the document is all.
    pub unbooked_wholes: bool,
}

impl Quirks {
    /// All on, as flux-sched has them.
    pub fn flux_sched() -> Self {
        Self {
            writer_keeps_leftovers: true,
            rlite_refuses_nothing: true,
            sticky_shorthand_mark: true,
            sticky_queue: true,
            introsort_ties: true,
            unreachable_slots: true,
            stale_errno: true,
            drifting_node_count: true,
            lagging_time_index: true,
            halfway_tracking: true,
            pooled_rank_removal: true,
            early_unmark: true,
            stale_labels: true,
            leaked_bookings: true,
            auxiliary_refuses: true,
            rootless_cancel_fails: true,
            half_updates: true,
            unbooked_wholes: true,
        }
    }
}
