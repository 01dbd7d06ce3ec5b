//! What lists, watches and single objects have in common: one trait, implemented by each resource's
//! controller.

pub(super) mod jobs;
pub(super) mod nodes;
pub(super) mod queues;

use std::fmt::Debug;

use fluxion_api::ObjectMeta;
use fluxion_scheduler::model::SharedStr;
use serde::Serialize;

use crate::view::Visible;

/// Names an object within its resource; lists are in this order. The namespace of cluster-scoped ones is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub namespace: SharedStr,
    pub name: SharedStr,
}

/// Revisions that tell two versions of an object apart: two states of one engine give it the same only if it is the same
/// in both. Without any it is rendered and compared.
pub(super) type Stamp = Option<Vec<u64>>;

/// Key, uid, id and stamp of an object.
pub(super) type Listed<Id> = (Key, SharedStr, Id, Stamp);

/// A resource with objects that can be listed and watched.
pub(super) trait Resource: Sized + Send + Sync + 'static + Debug {
    type Object: Serialize + PartialEq + Clone + Debug + Send + Sync;
    /// Finds an object in the state.
    type Id: Clone + Debug + Send + Sync;

    const KIND: &'static str;
    /// As it stands in the path.
    const PLURAL: &'static str;
    /// The fields that can be selected by.
    const FIELDS: &'static [&'static str];

    /// Every object.
    fn rows(visible: &Visible<'_>) -> Vec<Listed<Self::Id>>;

    /// One object as the viewer may see it, without a resource version.
    fn render(visible: &Visible<'_>, id: &Self::Id) -> Option<Self::Object>;

    /// The values of one of [`Self::FIELDS`].
    fn field<'a>(object: &'a Self::Object, field: &str) -> Vec<&'a str>;

    fn meta(object: &Self::Object) -> &ObjectMeta;

    fn meta_mut(object: &mut Self::Object) -> &mut ObjectMeta;

    /// Leaves of an object that was rendered for the administrator what everyone may know who may know that
    /// it was there.
    fn redact(object: &mut Self::Object);
}
