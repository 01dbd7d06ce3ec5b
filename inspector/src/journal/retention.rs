//! How long finished jobs are kept in the journal of a cluster.

/// Limits of the finished jobs that are kept; the oldest ones are deleted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Maximum age, in seconds since the job ended.
    pub max_age: i64,
    /// Maximum total size of the finished jobs, in bytes.
    pub max_size: u64,
}

impl Default for Retention {
    /// A week, and 256 MiB: of a job that ran on a few nodes, about 1 KiB is kept.
    fn default() -> Self {
        Self { max_age: 7 * 24 * 3600, max_size: 256 << 20 }
    }
}

impl Retention {
    /// What ended by this time (epoch seconds) is too old.
    pub(super) fn since(self, now: i64) -> i64 {
        now.saturating_sub(self.max_age)
    }

    /// The maximum size for a database, whose numbers have a sign.
    pub(super) fn max_bytes(self) -> i64 {
        i64::try_from(self.max_size).unwrap_or(i64::MAX)
    }
}
