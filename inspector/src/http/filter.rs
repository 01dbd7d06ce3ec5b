//! Selection of objects of a resource.

use std::marker::PhantomData;

use fluxion_scheduler::model::SharedStr;

use super::query::ListQuery;
use super::refusal::Refusal;
use super::resource::{Key, Resource};
use super::selector::Selector;
use crate::view::{Viewer, Visible};

/// The selected objects of a resource.
#[derive(Clone, Debug)]
pub(super) struct Filter<R: Resource> {
    namespace: Option<SharedStr>,
    /// What the key tells.
    keys: Selector,
    labels: Selector,
    fields: Selector,
    resource: PhantomData<fn() -> R>,
}

impl<R: Resource> Filter<R> {
    pub(super) fn new(namespace: Option<SharedStr>, query: &ListQuery) -> Result<Self, Refusal> {
        let fields = Selector::fields(&query.field_selector, R::FIELDS)?;
        let (keys, fields) = fields.split(&["metadata.name", "metadata.namespace"]);
        Ok(Self {
            namespace,
            keys,
            labels: Selector::labels(&query.label_selector)?,
            fields,
            resource: PhantomData,
        })
    }

    /// Checks that don't need the object: its namespace, and whether the viewer may see it.
    pub(super) fn takes_key(&self, key: &Key, viewer: &Viewer) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
            && (key.namespace.is_empty() || viewer.sees(&key.namespace))
            && self.keys.accepts(|field| match field {
                "metadata.name" => vec![&*key.name],
                _ => vec![&*key.namespace],
            })
    }

    /// The only namespace that is meant, where there is one.
    pub(super) fn namespace(&self) -> Option<&SharedStr> {
        self.namespace.as_ref()
    }

    /// Whether the other selectors take an object as it is now.
    pub(super) fn selects(&self, visible: &Visible<'_>, id: &R::Id) -> bool {
        self.needs_key_only() || R::selected(visible, id, &self.labels, &self.fields)
    }

    /// Whether they take an object as it was.
    pub(super) fn takes(&self, object: &R::Object) -> bool {
        self.labels.accepts_labels(&R::meta(object).labels)
            && self.fields.accepts(|field| R::field(object, field))
    }

    /// Whether the key tells everything.
    pub(super) fn needs_key_only(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(super) fn is_everything(&self) -> bool {
        self.needs_key_only() && self.keys.is_empty()
    }
}
