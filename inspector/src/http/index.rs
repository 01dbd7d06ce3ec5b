//! Which object was last changed when: what lists, watches and resource versions are answered from.
//!
//! It is brought up to date by whoever asks, never by the engine: nothing is computed while nobody looks, and
//! a slow reader holds up nobody. Each change of an object that a client could see has a version of its own,
//! so a watch that was broken off anywhere goes on exactly there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use fluxion_core::model::Text;
use tokio::sync::Mutex;

use super::refusal::Refusal;
use super::resource::{Resource, Stamp};
use super::{jobs::Jobs, nodes::Nodes, queues::Queues};
use crate::engine::Published;
use crate::view::{Lens, Viewer};

/// So many changes of each resource are remembered for watches; who asks for older ones has to list again.
const REMEMBERED: usize = 4096;

/// Names an object within its resource; lists are in this order. The namespace of cluster-scoped ones is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub namespace: Text,
    pub name: Text,
}

/// An object as the index knows it.
#[derive(Debug)]
pub(super) struct Row<R: Resource> {
    pub uid: Text,
    /// Where to find it in the state.
    pub id: R::Id,
    /// Equal stamps in successive states mean that nothing about the object can have changed.
    pub stamp: Stamp,
    /// When it was last changed.
    pub version: u64,
}

/// One change of one object.
#[derive(Debug)]
pub(super) struct Change<R: Resource> {
    pub version: u64,
    pub key: Key,
    /// What the administrator saw before; `None` when it was not there.
    pub before: Option<R::Object>,
}

/// One resource.
#[derive(Debug)]
pub(super) struct Table<R: Resource> {
    pub rows: BTreeMap<Key, Row<R>>,
    /// Oldest first.
    pub log: VecDeque<Arc<Change<R>>>,
    /// Changes up to this version may be missing in the log.
    pub floor: u64,
}

/// A snapshot with the versions of its objects.
#[derive(Debug)]
pub(super) struct Served {
    /// `resourceVersion` of a list taken now.
    pub version: u64,
    pub published: Arc<Published>,
    pub jobs: Table<Jobs>,
    pub nodes: Table<Nodes>,
    pub queues: Table<Queues>,
}

impl Served {
    /// Versions begin behind `after`, and where the snapshots' sequence does.
    pub(super) fn first(published: Arc<Published>, after: u64) -> Self {
        let viewer = Viewer::everything();
        let lens = Lens::of(&published, &viewer);
        let version = published.sequence.max(after + 1);
        let (jobs, nodes, queues) =
            (Table::first(&lens, version), Table::first(&lens, version), Table::first(&lens, version));
        Self { version, published, jobs, nodes, queues }
    }

    /// The same for a later snapshot.
    pub(super) fn next(&self, published: Arc<Published>) -> Self {
        let viewer = Viewer::everything();
        let (before, after) = (Lens::of(&self.published, &viewer), Lens::of(&published, &viewer));
        let mut version = self.version;
        let jobs = self.jobs.next(&before, &after, &mut version);
        let nodes = self.nodes.next(&before, &after, &mut version);
        let queues = self.queues.next(&before, &after, &mut version);
        // Versions start where the snapshots' sequence does, so they never go back over a restart.
        Self { version: version.max(published.sequence), published, jobs, nodes, queues }
    }
}

impl<R: Resource> Table<R> {
    fn first(lens: &Lens<'_>, version: u64) -> Self {
        let rows = R::rows(lens)
            .into_iter()
            .map(|(key, uid, id, stamp)| (key, Row { uid, id, stamp, version }))
            .collect();
        Self { rows, log: VecDeque::new(), floor: version }
    }

    fn next(&self, before: &Lens<'_>, after: &Lens<'_>, version: &mut u64) -> Self {
        let (mut log, mut floor) = (self.log.clone(), self.floor);
        let mut changed = |key: &Key, before: Option<R::Object>| {
            *version += 1;
            log.push_back(Arc::new(Change { version: *version, key: key.clone(), before }));
            // At once: all that changes between two looks can be many times as much as is remembered.
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

/// The latest [`Served`].
#[derive(Debug, Default)]
pub(super) struct Index {
    current: ArcSwapOption<Served>,
    building: Mutex<()>,
    /// Somebody asked since [`Index::forget_unused`] last looked.
    used: AtomicBool,
    /// Version of the last one that was forgotten.
    forgotten: AtomicU64,
}

impl Index {
    /// Forgets the latest one if nobody asked since the last call: all that was there when somebody last asked would
    /// stay in memory beside all that there is now. A watch that goes on from an earlier version has to list again.
    pub(super) async fn forget_unused(&self) {
        let _building = self.building.lock().await;
        if !self.used.swap(false, Ordering::Relaxed)
            && let Some(served) = self.current.swap(None)
        {
            self.forgotten.store(served.version, Ordering::Relaxed);
        }
    }

    /// What is served of this snapshot or a later one.
    pub(super) async fn at(&self, published: Arc<Published>) -> Result<Arc<Served>, Refusal> {
        self.used.store(true, Ordering::Relaxed);
        let known =
            || self.current.load_full().filter(|served| served.published.sequence >= published.sequence);
        if let Some(served) = known() {
            return Ok(served);
        }
        let _building = self.building.lock().await;
        if let Some(served) = known() {
            return Ok(served);
        }
        let last = self.current.load_full();
        let forgotten = self.forgotten.load(Ordering::Relaxed);
        let served = tokio::task::spawn_blocking(move || match last {
            Some(last) => last.next(published),
            None => Served::first(published, forgotten),
        })
        .await
        .map_err(|error| {
            tracing::error!(%error, "the index of the served objects could not be brought up to date");
            Refusal::Internal
        })?;
        let served = Arc::new(served);
        self.current.store(Some(Arc::clone(&served)));
        Ok(served)
    }
}
