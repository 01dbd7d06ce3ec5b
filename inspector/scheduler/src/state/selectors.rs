//! The selectors of Pods in use, and the label keys on which they depend.

use std::collections::BTreeSet;
use std::sync::Arc;

use imbl::OrdMap;

use crate::constraint::{PodSelector, SelectorMap};
use crate::model::SharedStr;

/// The selectors in the constraints of all Pods that have not finished.
#[derive(Clone, Debug, Default)]
pub(super) struct Peering {
    /// With the number of their uses.
    pub(super) selectors: SelectorMap<PodSelector, u32>,
    /// Label keys of these selectors, with the number of selectors.
    pub(super) keys: OrdMap<SharedStr, u32>,
}

/// Selectors and label keys that are new or no longer used.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangedSelectors {
    pub(super) selectors: SelectorMap<PodSelector, ()>,
    pub(super) keys: BTreeSet<SharedStr>,
}

impl Peering {
    pub(super) fn add(&mut self, selector: &PodSelector, changed: &mut ChangedSelectors) {
        if let Some(uses) = self.selectors.get_mut(selector) {
            *uses = uses.saturating_add(1);
            return;
        }
        let selector = Arc::new(selector.clone());
        for key in selector.keys() {
            let uses = self.keys.entry(key.clone()).or_default();
            *uses = uses.saturating_add(1);
            if *uses == 1 {
                changed.keys.insert(key.clone());
            }
        }
        self.selectors.insert(selector.clone(), 1);
        changed.selectors.insert(selector, ());
    }

    pub(super) fn remove(&mut self, selector: &PodSelector, changed: &mut ChangedSelectors) {
        let Some(uses) = self.selectors.get_mut(selector) else { return };
        *uses -= 1;
        if *uses > 0 {
            return;
        }
        self.selectors.remove(selector);
        for key in selector.keys() {
            if let Some(uses) = self.keys.get_mut(key) {
                *uses -= 1;
                if *uses == 0 {
                    self.keys.remove(key);
                    changed.keys.insert(key.clone());
                }
            }
        }
        changed.selectors.insert(Arc::new(selector.clone()), ());
    }
}
