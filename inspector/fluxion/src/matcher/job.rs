//! Job ids and allocation kinds.

/// Id of a job.
pub type JobId = u64;

/// Whether a job is allocated or reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationKind {
    /// Allocated now.
    Allocation,
    /// Reserved for later.
    Reservation,
}
