//! What is remembered of jobs, from this engine or the one before.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::job::{GroupKey, JobId};
use crate::model::SharedStr;
use crate::record::LiveJob;

/// What was remembered and has not found its job yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// By `NAMESPACE/KIND.NAME` and uid.
    pub(super) live: OrdMap<(String, SharedStr), Arc<LiveJob>>,
    /// Jobs that have ended, by what made their Pods one job and when they did.
    pub(super) ended: OrdMap<GroupKey, OrdSet<(i64, JobId)>>,
    /// When it is given up.
    pub(super) until: Option<i64>,
}
