//! The objects of one resource, and when each was last changed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

use fluxion_scheduler::model::SharedStr;

use super::rendered::{Rendered, Room};
use super::resource::{Key, Listed, Resource, Source, Stamp};
use super::template::Hole;
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

    /// The same without its changes: earlier versions are then too old for a watch to go on from.
    pub(super) fn at_rest(self) -> Self {
        let floor = self.log.back().map_or(self.floor, |last| last.version);
        Self { log: VecDeque::new(), floor, ..self }
    }

    /// The same for a later snapshot. Without the one `before`, what may have changed counts as changed, and watches
    /// can't go on from versions before that.
    pub(super) fn next(&self, before: Option<&Visible<'_>>, after: &Visible<'_>, version: &mut u64) -> Self {
        let mut changes = Changes { floor: self.floor, latest: VecDeque::new(), version };
        let mut row = |(key, uid, id, stamp): Listed<R::Id>| {
            let there = self.rows.get(&key);
            let old = there.filter(|old| old.uid == uid);
            let same = old.is_some_and(|old| stamp.is_some() && old.stamp == stamp);
            if let (true, Some(old)) = (same, old) {
                return (key, Arc::clone(old));
            }
            let was = there.map_or(Was::Nothing, |old| Was::Unrendered(old.id.clone()));
            let (version, kept) = match (old, before) {
                (Some(old), _)
                    if own(old.stamp.as_ref()).is_some_and(|was| own(stamp.as_ref()) == Some(was)) =>
                {
                    let equal =
                        before.is_some_and(|before| filled_alike::<R>((before, &old.id), (after, &id)));
                    let version = if equal { old.version } else { changes.add(&key, before, was) };
                    (version, Arc::clone(&old.kept))
                }
                (Some(old), Some(before)) => match R::render(before, &old.id) {
                    was if was == R::render(after, &id) => (old.version, Arc::clone(&old.kept)),
                    was => {
                        let was = was.map_or(Was::Nothing, |object| Was::Rendered(Box::new(object)));
                        (changes.add(&key, Some(before), was), Arc::default())
                    }
                },
                _ => (changes.add(&key, before, was), Arc::default()),
            };
            (key, Arc::new(Row { uid, id, stamp, version, kept }))
        };
        let rows: BTreeMap<_, _> = R::rows(after).into_iter().map(&mut row).collect();
        for (key, old) in &self.rows {
            if !rows.contains_key(key) {
                changes.add(key, before, Was::Unrendered(old.id.clone()));
            }
        }
        let (log, floor) = changes.log(&self.log, before);
        Self { rows, log, floor }
    }
}

/// What a changed object was before.
enum Was<R: Resource> {
    Nothing,
    Unrendered(R::Id),
    Rendered(Box<R::Object>),
}

/// The latest changes between two snapshots: there may be far more than are remembered.
struct Changes<'a, R: Resource> {
    /// Changes up to this version are not among the latest.
    floor: u64,
    latest: VecDeque<(u64, Key, Was<R>)>,
    version: &'a mut u64,
}

impl<R: Resource> Changes<'_, R> {
    /// Adds a change; its version.
    fn add(&mut self, key: &Key, before: Option<&Visible<'_>>, was: Was<R>) -> u64 {
        *self.version += 1;
        if before.is_none() {
            self.floor = *self.version;
            return *self.version;
        }
        self.latest.push_back((*self.version, key.clone(), was));
        if self.latest.len() > REMEMBERED {
            self.floor = self.latest.pop_front().map_or(self.floor, |(version, ..)| version);
        }
        *self.version
    }

    /// These changes behind the older ones, and up to which version they may be missing.
    fn log(
        self,
        older: &VecDeque<Arc<RowChange<R>>>,
        before: Option<&Visible<'_>>,
    ) -> (VecDeque<Arc<RowChange<R>>>, u64) {
        let excess = (older.len() + self.latest.len()).saturating_sub(REMEMBERED).min(older.len());
        let dropped =
            excess.checked_sub(1).and_then(|last| older.get(last)).map_or(0, |change| change.version);
        let change = |(version, key, was)| {
            let before = match was {
                Was::Nothing => None,
                Was::Rendered(object) => Some(*object),
                Was::Unrendered(id) => before.and_then(|before| R::render(before, &id)),
            };
            Arc::new(RowChange { version, key, before })
        };
        let log = older.range(excess..).cloned().chain(self.latest.into_iter().map(change)).collect();
        (log, self.floor.max(dropped))
    }
}

/// Whether what is filled in is the same for the administrator, who sees all of it.
fn filled_alike<R: Resource>(before: (&Visible<'_>, &R::Id), after: (&Visible<'_>, &R::Id)) -> bool {
    let filled = |(visible, id)| {
        let mut out = Vec::new();
        R::fill(Source::Now(visible, id), Hole::Seen, &mut out);
        out
    };
    filled(before) == filled(after)
}

fn own(stamp: Option<&Stamp>) -> Option<u64> {
    stamp.map(|stamp| stamp.own)
}
