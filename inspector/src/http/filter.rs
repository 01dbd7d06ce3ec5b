//! Selection of objects of a resource.

use std::marker::PhantomData;

use fluxion_scheduler::model::SharedStr;

use super::query::ListQuery;
use super::refusal::Refusal;
use super::resource::{Key, Resource};
use super::selector::Selector;
use crate::view::Viewer;

/// The selected objects of a resource.
#[derive(Clone, Debug)]
pub(super) struct Filter<R: Resource> {
    namespace: Option<SharedStr>,
    labels: Selector,
    fields: Selector,
    resource: PhantomData<fn() -> R>,
}

impl<R: Resource> Filter<R> {
    pub(super) fn new(namespace: Option<SharedStr>, query: &ListQuery) -> Result<Self, Refusal> {
        Ok(Self {
            namespace,
            labels: Selector::labels(&query.label_selector)?,
            fields: Selector::fields(&query.field_selector, R::FIELDS)?,
            resource: PhantomData,
        })
    }

    /// Checks that don't need the object: its namespace, and whether the viewer may see it.
    pub(super) fn takes_key(&self, key: &Key, viewer: &Viewer) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
            && (key.namespace.is_empty() || viewer.sees(&key.namespace))
    }

    /// Whether the selectors match the object.
    pub(super) fn takes(&self, object: &R::Object) -> bool {
        self.labels.accepts_labels(&R::meta(object).labels)
            && self.fields.accepts(|field| R::field(object, field))
    }

    pub(super) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}
