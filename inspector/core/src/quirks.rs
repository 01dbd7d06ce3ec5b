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
}

impl Quirks {
    /// All on, as flux-sched has them.
    pub fn flux_sched() -> Self {
        Self {
            writer_keeps_leftovers: true,
            rlite_refuses_nothing: true,
            sticky_shorthand_mark: true,
            sticky_queue: true,
        }
    }
}
