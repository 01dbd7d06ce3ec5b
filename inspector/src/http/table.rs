//! The objects of one resource, and when each was last changed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fluxion_scheduler::model::SharedStr;

use super::resource::{Key, Resource, Stamp};
use crate::view::Visible;

/// Number of changes of each resource kept for watches; a watch from before these has to list again.
const REMEMBERED: usize = 4096;

/// An object as the index knows it.
#[derive(Debug)]
pub(super) struct Row<R: Resource> {
    pub uid: SharedStr,
    /// Its ID in the state.
    pub id: R::Id,
    /// Equal stamps in successive states mean that the object has not changed.
    pub stamp: Stamp,
    /// The version of its last change.
    pub version: u64,
}

/// One change of one object.
#[derive(Debug)]
pub(super) struct RowChange<R: Resource> {
    pub version: u64,
    pub key: Key,
    /// What the administrator saw before; `None` if it did not exist.
    pub before: Option<R::Object>,
}

/// One resource.
#[derive(Debug)]
pub(super) struct Table<R: Resource> {
    pub rows: BTreeMap<Key, Row<R>>,
    /// Oldest first.
    pub log: VecDeque<Arc<RowChange<R>>>,
    /// Changes up to this version may be missing from the log.
    pub floor: u64,
}

impl<R: Resource> Table<R> {
    pub(super) fn first(visible: &Visible<'_>, version: u64) -> Self {
        let rows = R::rows(visible)
            .into_iter()
            .map(|(key, uid, id, stamp)| (key, Row { uid, id, stamp, version }))
            .collect();
        Self { rows, log: VecDeque::new(), floor: version }
    }

    pub(super) fn next(&self, before: &Visible<'_>, after: &Visible<'_>, version: &mut u64) -> Self {
        let (mut log, mut floor) = (self.log.clone(), self.floor);
        let mut changed = |key: &Key, before: Option<R::Object>| {
            *version += 1;
            log.push_back(Arc::new(RowChange { version: *version, key: key.clone(), before }));
            // Immediately: the changes between two requests may far exceed the limit.
            if log.len() > REMEMBERED {
                floor = log.pop_front().map_or(floor, |change| change.version);
            }
            *version
        };
        let mut rows = BTreeMap::new();
        for (key, uid, id, stamp) in R::rows(after) {
            let version = match self.rows.get(&key) {
                Some(old) if old.uid == uid && stamp.is_some() && old.stamp == stamp => old.version,
                Some(old) => {
                    let was = R::render(before, &old.id);
                    if old.uid == uid && was == R::render(after, &id) {
                        old.version
                    } else {
                        changed(&key, was)
                    }
                }
                None => changed(&key, None),
            };
            rows.insert(key, Row { uid, id, stamp, version });
        }
        for (key, old) in &self.rows {
            if !rows.contains_key(key) {
                changed(key, R::render(before, &old.id));
            }
        }
        Self { rows, log, floor }
    }
}
