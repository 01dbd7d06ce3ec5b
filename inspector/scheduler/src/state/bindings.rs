//! What is on its way to a node, or on its way back.

use imbl::{OrdMap, OrdSet};

use crate::model::SharedStr;
use crate::state::assumed::Assumed;
use crate::state::let_go::LetGo;
use crate::state::refused::Refusals;

/// See the module. Pods are known by their uids.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings {
    /// Pods that were sent to a node and were not seen there yet.
    pub assumed: OrdMap<SharedStr, Assumed>,
    /// Pods that the API server says can't be bound any more; until the watch says the same.
    pub unbindable: OrdSet<SharedStr>,
    /// Nodes to which bindings were refused.
    pub refusals: Refusals,
    /// Bound Pods that were let go.
    pub let_go: OrdMap<SharedStr, LetGo>,
}
