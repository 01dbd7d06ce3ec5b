//! What lists, watches and single objects have in common: a trait implemented by the controller of each resource.

pub(super) mod jobs;
pub(super) mod nodes;
pub(super) mod queues;

use std::fmt::Debug;

use fluxion_api::ObjectMeta;
use fluxion_scheduler::model::SharedStr;
use serde::Serialize;

use super::columns::{Cell, Column};
use super::selector::Selector;
use super::template::{Hole, Template};
use crate::view::Visible;

/// Identifies an object within its resource, and its position in lists. Cluster-scoped objects have no namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub namespace: SharedStr,
    pub name: SharedStr,
}

/// Revisions that tell two versions of an object apart: two states of one engine give it the same only if it is the same
/// in both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Of all but what is filled in.
    pub own: u64,
    /// Of what is filled in.
    pub seen: Vec<u64>,
}

/// Key, uid, id and stamp of an object. Without a stamp it is rendered and compared.
pub(super) type Listed<Id> = (Key, SharedStr, Id, Option<Stamp>);

/// Where what is filled in is taken from.
pub(super) enum Source<'a, R: Resource> {
    /// An object as this viewer may see it now.
    Now(&'a Visible<'a>, &'a R::Id),
    /// One as it was.
    Was(&'a R::Object),
}

impl<R: Resource> Clone for Source<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Resource> Copy for Source<'_, R> {}

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

    /// The columns of its table.
    const COLUMNS: &'static [Column];
    /// Whether all viewers who may see an object see the same, apart from labels of nodes and what [`Self::fill`] writes.
    const ALIKE: bool;

    /// Every object.
    fn rows(visible: &Visible<'_>) -> Vec<Listed<Self::Id>>;

    /// One object as visible to the viewer, without a resource version.
    fn render(visible: &Visible<'_>, id: &Self::Id) -> Option<Self::Object>;

    /// Whether selectors take an object that the viewer may see, by what [`Self::render`] would show.
    fn selected(visible: &Visible<'_>, id: &Self::Id, labels: &Selector, fields: &Selector) -> bool {
        Self::render(visible, id).is_some_and(|object| {
            labels.accepts_labels(&Self::meta(&object).labels)
                && fields.accepts(|field| Self::field(&object, field))
        })
    }

    /// The values of one of [`Self::FIELDS`].
    fn field<'a>(object: &'a Self::Object, field: &str) -> Vec<&'a str>;

    fn meta(object: &Self::Object) -> &ObjectMeta;

    fn meta_mut(object: &mut Self::Object) -> &mut ObjectMeta;

    /// Reduces an object rendered for the administrator to the data that everyone who knows of its existence may see.
    fn redact(object: &mut Self::Object);

    /// What stands in its row of the table, a cell for each column.
    fn cells(object: &Self::Object) -> Vec<Cell>;

    /// Writes the members that come behind the metadata: `"status":{…}`. The object stays as it is.
    fn rest(object: &mut Self::Object, out: &mut Template) -> Result<(), serde_json::Error>;

    /// Writes what depends on who asks.
    fn fill(source: Source<'_, Self>, hole: Hole, out: &mut Vec<u8>) {
        let _ = source;
        if hole == Hole::Position {
            out.extend_from_slice(b"\"-\"");
        }
    }
}
