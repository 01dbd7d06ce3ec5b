//! The work of one step; empty between steps.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::Effect;
use crate::job::JobId;
use crate::model::SharedStr;
use crate::state::selectors::ChangedSelectors;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct StepWork {
    /// Pods whose labels, annotations, group or owner changed.
    pub regroup: BTreeSet<SharedStr>,
    /// Owners that may be queued without Pods.
    pub queued: BTreeSet<SharedStr>,
    /// Owners whose Pods may not come to be.
    pub uncreated: BTreeSet<SharedStr>,
    /// Jobs to be evaluated again.
    pub dirty: BTreeSet<JobId>,
    /// Jobs evaluated for the first time, and whether history is known for them.
    pub new_jobs: BTreeMap<JobId, bool>,
    /// Jobs whose changes may have to be reported.
    pub changed: BTreeSet<JobId>,
    /// Constraints between Pods that are new or no longer used.
    pub selectors: ChangedSelectors,
    pub effects: Vec<Effect>,
}
