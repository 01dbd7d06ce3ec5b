//! A map by selector that quickly finds the selectors that select a Pod.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::pod_terms::{Namespaces, PodSelector, PodTerm};
use super::preference::PreferredPods;
use super::terms::Labels;
use super::{Expression, Operator};

/// A key with selectors, all of which have to select a Pod.
pub(crate) trait Selects: Ord {
    /// Its selectors.
    fn selectors(&self) -> &[PodSelector];
}

impl Selects for PodSelector {
    fn selectors(&self) -> &[PodSelector] {
        std::slice::from_ref(self)
    }
}

impl Selects for PodTerm {
    fn selectors(&self) -> &[PodSelector] {
        std::slice::from_ref(&self.selector)
    }
}

impl Selects for PreferredPods {
    fn selectors(&self) -> &[PodSelector] {
        std::slice::from_ref(&self.term.selector)
    }
}

impl Selects for Vec<PodSelector> {
    fn selectors(&self) -> &[PodSelector] {
        self
    }
}

/// A label with its value.
type Pair = (Arc<str>, Arc<str>);

/// See the module documentation. Cloning is cheap.
#[derive(Clone, Debug)]
pub(crate) struct SelectorMap<K: Ord, V> {
    entries: OrdMap<Arc<K>, V>,
    /// Those that require one of these labels.
    by_label: OrdMap<Pair, OrdSet<Arc<K>>>,
    /// All others.
    others: OrdSet<Arc<K>>,
}

impl<K: Ord, V> Default for SelectorMap<K, V> {
    fn default() -> Self {
        Self { entries: OrdMap::new(), by_label: OrdMap::new(), others: OrdSet::new() }
    }
}

/// Labels of which every selected Pod has one.
fn required<K: Selects>(key: &K) -> Option<&Expression> {
    let expressions = key.selectors().iter().filter_map(|selector| selector.labels.as_ref()).flatten();
    expressions.filter(|one| one.operator == Operator::In).min_by_key(|one| one.values.len())
}

fn pairs(expression: &Expression) -> impl Iterator<Item = Pair> {
    expression.values.iter().map(|value| (expression.key.clone(), value.clone()))
}

impl<K: Selects, V: Clone> SelectorMap<K, V> {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<K>, &V)> {
        self.entries.iter()
    }

    pub(crate) fn insert(&mut self, key: Arc<K>, value: V) {
        match required(&*key) {
            Some(expression) => {
                for pair in pairs(expression) {
                    self.by_label.entry(pair).or_default().insert(key.clone());
                }
            }
            None => drop(self.others.insert(key.clone())),
        }
        self.entries.insert(key, value);
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let value = self.entries.remove(key)?;
        match required(key) {
            Some(expression) => {
                for pair in pairs(expression) {
                    if let Some(keys) = self.by_label.get_mut(&pair) {
                        keys.remove(key);
                        if keys.is_empty() {
                            self.by_label.remove(&pair);
                        }
                    }
                }
            }
            None => drop(self.others.remove(key)),
        }
        Some(value)
    }

    /// The keys that select a Pod with these labels in this namespace, each once.
    pub(crate) fn selecting<'a>(
        &'a self,
        namespace: &'a str,
        labels: &'a Labels,
        namespaces: &'a Namespaces,
    ) -> impl Iterator<Item = &'a Arc<K>> {
        // Without any entries, nothing is looked up for the labels.
        let labels_of_any = (!self.by_label.is_empty()).then_some(labels).into_iter().flatten();
        let by_label = labels_of_any
            .filter_map(|(key, value)| self.by_label.get(&(key.clone(), value.clone())))
            .flatten();
        by_label.chain(&self.others).filter(move |key| {
            let selectors = key.selectors();
            !selectors.is_empty() && selectors.iter().all(|one| one.selects(namespace, labels, namespaces))
        })
    }
}
