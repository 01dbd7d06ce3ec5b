//! Jobs as the books know them.

/// The number of a job.
pub type JobId = u64;

/// What kind of hold a job has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationKind {
    /// It runs now.
    Allocation,
    /// It is planned for later.
    Reservation,
}
