//! The objects of one resource, and when each was last changed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

use fluxion_scheduler::model::SharedStr;

use super::rendered::{Rendered, Room};
use super::resource::{Key, Listed, Resource, Stamp};
use crate::view::Visible;

/// Number of changes of each resource kept for watches; a watch from before these has to list again.
const REMEMBERED: usize = 4096;

/// An object as the index knows it.
#[derive(Debug)]
pub(super) struct Row<R: Resource> {
    pub uid: SharedStr,
    /// Its ID in the state.
    pub id: R::Id,
    /// Equal stamps in successive states mean that nothing about the object can have changed.
    pub stamp: Option<Stamp>,
    /// When it was last changed.
    pub version: u64,
    /// Shared with later versions as long as nothing but the inserted fields has changed.
    kept: Arc<Kept>,
}

/// The serialized object for viewers who may see the labels of nodes, and for those who may not.
#[derive(Debug, Default)]
struct Kept {
    whole: OnceLock<Arc<Rendered>>,
    redacted: OnceLock<Arc<Rendered>>,
}

impl<R: Resource> Row<R> {
    /// The object as this viewer may see it, written once for all who see the same. None when it is not in the state,
    /// or can't be written.
    pub(super) fn rendered(&self, visible: &Visible<'_>, room: &Arc<Room>) -> Option<Arc<Rendered>> {
        let render = || Rendered::of::<R>(R::render(visible, &self.id)?);
        if !R::ALIKE && !visible.viewer.sees_everything() {
            return render().map(Arc::new);
        }
        let kept = if visible.viewer.sees_nodes() { &self.kept.whole } else { &self.kept.redacted };
        if let Some(kept) = kept.get() {
            return Some(Arc::clone(kept));
        }
        match render()?.kept(room) {
            Ok(rendered) => Some(Arc::clone(kept.get_or_init(|| rendered))),
            Err(rendered) => Some(rendered),
        }
    }

    /// Whether it is kept for the next one who asks.
    pub(super) fn is_kept(&self) -> bool {
        self.kept.whole.get().is_some() || self.kept.redacted.get().is_some()
    }
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
    pub rows: BTreeMap<Key, Arc<Row<R>>>,
    /// Oldest first.
    pub log: VecDeque<Arc<RowChange<R>>>,
    /// Changes up to this version may be missing from the log.
    pub floor: u64,
}

impl<R: Resource> Table<R> {
    pub(super) fn first(visible: &Visible<'_>, version: u64) -> Self {
        let row =
            |(key, uid, id, stamp)| (key, Arc::new(Row { uid, id, stamp, version, kept: Arc::default() }));
        let rows = R::rows(visible).into_iter().map(row).collect();
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
        let mut row = |(key, uid, id, stamp): Listed<R::Id>| {
            let old = self.rows.get(&key).filter(|old| old.uid == uid);
            let same = old.is_some_and(|old| stamp.is_some() && old.stamp == stamp);
            if let (true, Some(old)) = (same, old) {
                return (key, Arc::clone(old));
            }
            let was = self.rows.get(&key).and_then(|old| R::render(before, &old.id));
            let equal = old.is_some() && was == R::render(after, &id);
            let (version, kept) = match old {
                Some(old) if equal => (old.version, Arc::clone(&old.kept)),
                Some(old) if own(old.stamp.as_ref()).is_some_and(|was| own(stamp.as_ref()) == Some(was)) => {
                    (changed(&key, was), Arc::clone(&old.kept))
                }
                _ => (changed(&key, was), Arc::default()),
            };
            (key, Arc::new(Row { uid, id, stamp, version, kept }))
        };
        let rows: BTreeMap<_, _> = R::rows(after).into_iter().map(&mut row).collect();
        for (key, old) in &self.rows {
            if !rows.contains_key(key) {
                changed(key, R::render(before, &old.id));
            }
        }
        Self { rows, log, floor }
    }
}

fn own(stamp: Option<&Stamp>) -> Option<u64> {
    stamp.map(|stamp| stamp.own)
}
