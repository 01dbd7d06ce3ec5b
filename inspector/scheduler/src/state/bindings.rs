//! Pods being bound or released. Pods are identified by UID.

use imbl::{OrdMap, OrdSet};

use crate::model::SharedStr;
use crate::state::assumed::{Assumed, PendingClaim};
use crate::state::let_go::LetGo;
use crate::state::refused::Refusals;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings {
    assumed: OrdMap<SharedStr, Assumed>,
    unbindable: OrdSet<SharedStr>,
    let_go: OrdMap<SharedStr, LetGo>,
    /// Nodes for which bindings were rejected.
    pub refusals: Refusals,
}

impl Bindings {
    /// The state of a Pod being bound.
    pub(super) fn assumed(&self, pod: &SharedStr) -> Option<&Assumed> {
        self.assumed.get(pod)
    }

    pub(super) fn is_assumed(&self, pod: &SharedStr) -> bool {
        self.assumed.contains_key(pod)
    }

    /// All Pods being bound.
    pub(super) fn all_assumed(&self) -> impl Iterator<Item = &Assumed> {
        self.assumed.values()
    }

    pub(super) fn assume(&mut self, pod: SharedStr, assumed: Assumed) {
        self.assumed.insert(pod, assumed);
    }

    pub(super) fn assumed_mut(&mut self, pod: &SharedStr) -> Option<&mut Assumed> {
        self.assumed.get_mut(pod)
    }

    /// The Pods, not sent yet, with a claim to which this applies.
    pub(super) fn unsent<'a>(
        &'a self,
        applies: impl Fn(&PendingClaim) -> bool + 'a,
    ) -> impl Iterator<Item = SharedStr> + 'a {
        let unsent = self.assumed.iter().filter(|(_, assumed)| !assumed.sent);
        unsent.filter(move |(_, assumed)| assumed.claims.iter().any(&applies)).map(|(uid, _)| uid.clone())
    }

    /// The Pods that wait for this claim, by UID.
    pub(super) fn waiting_for(&self, claim: &SharedStr) -> Vec<SharedStr> {
        self.unsent(|one| one.uid == *claim).collect()
    }

    /// The Pod is no longer being bound; returns its last state.
    pub(super) fn take_assumed(&mut self, pod: &SharedStr) -> Option<Assumed> {
        self.assumed.remove(pod)
    }

    /// Whether the API server reported that the Pod can't be bound any more, before the watch did.
    pub(super) fn is_unbindable(&self, pod: &SharedStr) -> bool {
        self.unbindable.contains(pod)
    }

    /// Records that the Pod can't be bound any more, according to the API server.
    pub(super) fn give_up(&mut self, pod: &SharedStr) {
        self.assumed.remove(pod);
        self.unbindable.insert(pod.clone());
    }

    /// The watch has reported the Pod's current state.
    pub(super) fn seen(&mut self, pod: &SharedStr) {
        self.unbindable.remove(pod);
    }

    /// The release of a bound Pod, if it is being released.
    pub(super) fn let_go(&self, pod: &SharedStr) -> Option<&LetGo> {
        self.let_go.get(pod)
    }

    pub(super) fn set_let_go(&mut self, pod: SharedStr, let_go: LetGo) {
        self.let_go.insert(pod, let_go);
    }

    /// The Pod was deleted.
    pub(super) fn forget(&mut self, pod: &SharedStr) {
        self.assumed.remove(pod);
        self.unbindable.remove(pod);
        self.let_go.remove(pod);
    }
}
