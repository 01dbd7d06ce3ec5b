//! The work of one step; empty between steps.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::Effect;
use crate::job::JobId;
use crate::model::SharedStr;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct StepWork {
    /// Pods whose marks, group or owner changed.
    pub regroup: BTreeSet<SharedStr>,
    /// Jobs to be looked at again.
    pub dirty: BTreeSet<JobId>,
    /// Jobs that are looked at for the first time, and whether something is remembered of them.
    pub new_jobs: BTreeMap<JobId, bool>,
    /// Jobs of which others may have to be told.
    pub changed: BTreeSet<JobId>,
    pub effects: Vec<Effect>,
}
