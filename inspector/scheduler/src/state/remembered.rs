//! History of jobs, from this engine or an earlier one.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::job::{GroupKey, JobId};
use crate::model::SharedStr;
use crate::record::LiveJob;

/// Remembered jobs that have not been found yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// By `NAMESPACE/KIND.NAME` and UID.
    pub(super) live: OrdMap<(String, SharedStr), Arc<LiveJob>>,
    /// Finished jobs, by group and end time.
    pub(super) ended: OrdMap<GroupKey, OrdSet<(i64, JobId)>>,
    /// When it is dropped.
    pub(super) until: Option<i64>,
}
