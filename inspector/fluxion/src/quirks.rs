//! Quirks of flux-sched that recorded results depend on.
//!
//! All are off by default, so that the scheduler produces correct results. The drop-in replacement for
//! `resource-query` enables all of them.

/// Quirks to reproduce. Each field describes the behavior when it is on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Quirks {
    /// Formats: a result that can't be written (R without cores, a graph with one vertex, a vertex without rank)
    /// is kept and prepended to the next result, or makes that fail too. Off: it is written if the format
    /// supports it, and a failed result is discarded.
    pub writer_keeps_leftovers: bool,
    /// Format rlite: a result without resources is an error instead of empty output. A failed match then
    /// looks like a failed writer, and its job id is reused.
    pub rlite_refuses_nothing: bool,
    /// Shorthand formats: once a result was shortened, all later ones include the `writer` member.
    pub sticky_shorthand_mark: bool,
    /// Format rv1: the queue of an earlier result is repeated in later ones without a queue.
    pub sticky_queue: bool,
    /// In lists of more than 16 candidates, ties are in the order produced by GNU's introsort.
    /// Off: ties stay in order of discovery.
    pub introsort_ties: bool,
    /// A slot found below a level that was not requested can't be reached for allocation, and the match
    /// fails after it succeeded. Off: the levels in between are marked as shared.
    pub unreachable_slots: bool,
    /// A request without exclusive resources fails with the error number left behind by an earlier step of
    /// the match. Off: it is rejected as invalid.
    pub stale_errno: bool,
    /// A vertex that is down when loaded counts as minus one usable node, a status set on a subtree
    /// counts all nodes below it whatever their own state, and attached or removed nodes are not
    /// counted. Off: usable nodes are those that are up.
    pub drifting_node_count: bool,
    /// After the total of a planner changed, its time index keeps the old remainder until it is
    /// touched, and what is free stops at zero; a vertex that has lost all that was below it keeps its sums.
    /// Off: all follow at once.
    pub lagging_time_index: bool,
    /// A type that is found to need aggregates only halfway through the graph is counted from there on,
    /// without amounts already allocated to jobs. Off: the aggregates are recalculated.
    pub halfway_tracking: bool,
    /// Removing ranks credits every job found there with the sums of all jobs, and only allocations
    /// count; ranks that come before one that is not there are forgotten. Off: each job gives back what it
    /// held, and nothing happens for a rank that is not there.
    pub pooled_rank_removal: bool,
    /// Partial cancel removes the exclusivity mark of every ancestor, although part of the job is
    /// still below it. Off: the mark is kept as long as the job has resources there.
    pub early_unmark: bool,
    /// A label that an earlier or failed match left on a vertex appears in later results. Off: only
    /// labels of the same match are shown.
    pub stale_labels: bool,
    /// If a result can't be written, the allocation is kept although the match is reported as failed, and
    /// the job id is reused: resources allocated to an earlier job with this id stay allocated.
    /// Off: the allocation is undone.
    pub leaked_bookings: bool,
    /// An auxiliary subsystem in addition to the dominant one makes every match fail. Off: it is ignored.
    pub auxiliary_refuses: bool,
    /// A job without an entry at the root of the dominant subsystem is released vertex by vertex and
    /// reported as an error. Off: it is cancelled like any other job.
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
    /// All on, as in flux-sched.
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
