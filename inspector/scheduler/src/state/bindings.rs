//! What is on its way to a node, or on its way back. Pods are known by their uids.

use imbl::{OrdMap, OrdSet};

use crate::model::SharedStr;
use crate::state::assumed::Assumed;
use crate::state::let_go::LetGo;
use crate::state::refused::Refusals;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings {
    assumed: OrdMap<SharedStr, Assumed>,
    unbindable: OrdSet<SharedStr>,
    let_go: OrdMap<SharedStr, LetGo>,
    /// Nodes to which bindings were refused.
    pub refusals: Refusals,
}

impl Bindings {
    /// How it stands with a Pod that was sent to a node and was not seen there yet.
    pub(super) fn assumed(&self, pod: &SharedStr) -> Option<&Assumed> {
        self.assumed.get(pod)
    }

    pub(super) fn is_assumed(&self, pod: &SharedStr) -> bool {
        self.assumed.contains_key(pod)
    }

    /// All that are on their way.
    pub(super) fn all_assumed(&self) -> impl Iterator<Item = &Assumed> {
        self.assumed.values()
    }

    pub(super) fn assume(&mut self, pod: SharedStr, assumed: Assumed) {
        self.assumed.insert(pod, assumed);
    }

    pub(super) fn assumed_mut(&mut self, pod: &SharedStr) -> Option<&mut Assumed> {
        self.assumed.get_mut(pod)
    }

    /// The Pod is not on its way any more; how it stood.
    pub(super) fn take_assumed(&mut self, pod: &SharedStr) -> Option<Assumed> {
        self.assumed.remove(pod)
    }

    /// Whether the API server says that the Pod can't be bound any more, which the watch has not said yet.
    pub(super) fn is_unbindable(&self, pod: &SharedStr) -> bool {
        self.unbindable.contains(pod)
    }

    /// The API server says that the Pod can't be bound any more.
    pub(super) fn give_up(&mut self, pod: &SharedStr) {
        self.assumed.remove(pod);
        self.unbindable.insert(pod.clone());
    }

    /// The watch says what the Pod is now.
    pub(super) fn seen(&mut self, pod: &SharedStr) {
        self.unbindable.remove(pod);
    }

    /// Since when a bound Pod is let go, if it is.
    pub(super) fn let_go(&self, pod: &SharedStr) -> Option<&LetGo> {
        self.let_go.get(pod)
    }

    pub(super) fn set_let_go(&mut self, pod: SharedStr, let_go: LetGo) {
        self.let_go.insert(pod, let_go);
    }

    /// The Pod is gone.
    pub(super) fn forget(&mut self, pod: &SharedStr) {
        self.assumed.remove(pod);
        self.unbindable.remove(pod);
        self.let_go.remove(pod);
    }
}
