//! What lists, watches and single objects have in common: a trait implemented by the controller of each resource.

pub(super) mod jobs;
pub(super) mod nodes;
pub(super) mod queues;

use std::fmt::Debug;

use fluxion_api::ObjectMeta;
use fluxion_scheduler::model::SharedStr;
use serde::Serialize;

use crate::view::Visible;

/// Identifies an object within its resource, and its position in lists. Cluster-scoped objects have no namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub namespace: SharedStr,
    pub name: SharedStr,
}

/// Revisions that identify a version of an object: equal stamps in two states of an engine mean that the object is
/// equal. Without a stamp, it is rendered and compared.
pub(super) type Stamp = Option<Vec<u64>>;

/// Key, uid, id and stamp of an object.
pub(super) type Listed<Id> = (Key, SharedStr, Id, Stamp);

/// A resource with objects that can be listed and watched.
pub(super) trait Resource: Sized + Send + Sync + 'static + Debug {
    type Object: Serialize + PartialEq + Clone + Debug + Send + Sync;
    /// Finds an object in the state.
    type Id: Clone + Debug + Send + Sync;

    const KIND: &'static str;
    /// Plural name, as in paths.
    const PLURAL: &'static str;
    /// The fields supported by field selectors.
    const FIELDS: &'static [&'static str];

    /// Every object.
    fn rows(visible: &Visible<'_>) -> Vec<Listed<Self::Id>>;

    /// One object as visible to the viewer, without a resource version.
    fn render(visible: &Visible<'_>, id: &Self::Id) -> Option<Self::Object>;

    /// The values of one of [`Self::FIELDS`].
    fn field<'a>(object: &'a Self::Object, field: &str) -> Vec<&'a str>;

    fn meta(object: &Self::Object) -> &ObjectMeta;

    fn meta_mut(object: &mut Self::Object) -> &mut ObjectMeta;

    /// Reduces an object rendered for the administrator to the data that everyone who knows of its existence may see.
    fn redact(object: &mut Self::Object);
}
