//! Versions of all objects: used to answer lists and watches, and for resource versions.
//!
//! It is updated by requests, never by the engine: nothing is computed without clients, and slow clients block nobody.
//! Each visible change of an object has its own version, so an interrupted watch resumes exactly where it stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use tokio::sync::Mutex;

use super::refusal::Refusal;
use super::rendered::Room;
use super::resource::Resource;
use super::resource::jobs::Jobs;
use super::resource::nodes::Nodes;
use super::resource::queues::Queues;
use super::table::Table;
use crate::engine::Published;
use crate::view::{Places, Viewer, Visible};

/// A snapshot with the versions of its objects.
#[derive(Debug)]
pub(super) struct Served {
    /// `resourceVersion` of a list taken now.
    pub version: u64,
    pub published: Arc<Published>,
    /// Where the jobs stand in their queues.
    places: Arc<Places>,
    /// How much of its objects may be kept as bytes.
    pub room: Arc<Room>,
    pub jobs: Table<Jobs>,
    pub nodes: Table<Nodes>,
    pub queues: Table<Queues>,
}

impl Served {
    /// Versions begin behind `after`, and where the snapshots' sequence does.
    pub(super) fn first(published: Arc<Published>, after: u64, room: Arc<Room>) -> Self {
        let viewer = Viewer::everything();
        let places = Arc::new(Places::of(&published.state));
        let visible = Visible::with_places(&published, &viewer, &places);
        let version = published.sequence.max(after + 1);
        let (jobs, nodes, queues) = (
            Table::first(&visible, version),
            Table::first(&visible, version),
            Table::first(&visible, version),
        );
        Self { version, published, places, room, jobs, nodes, queues }
    }

    /// The same for a later snapshot.
    pub(super) fn next(&self, published: Arc<Published>) -> Self {
        let viewer = Viewer::everything();
        let places = Arc::new(Places::of(&published.state));
        let (before, after) = (self.seen_by(&viewer), Visible::with_places(&published, &viewer, &places));
        let mut version = self.version;
        let jobs = self.jobs.next(&before, &after, &mut version);
        let nodes = self.nodes.next(&before, &after, &mut version);
        let queues = self.queues.next(&before, &after, &mut version);
        // Versions start where the snapshots' sequence does, so they never go back over a restart.
        let version = version.max(published.sequence);
        Self { version, published, places, room: Arc::clone(&self.room), jobs, nodes, queues }
    }

    /// The snapshot as this viewer sees it.
    pub(super) fn seen_by<'a>(&'a self, viewer: &'a Viewer) -> Visible<'a> {
        Visible::with_places(&self.published, viewer, &self.places)
    }
}

/// A resource with a table in each snapshot.
pub(super) trait Indexed: Resource {
    fn table(served: &Served) -> &Table<Self>;
}

impl Indexed for Jobs {
    fn table(served: &Served) -> &Table<Self> {
        &served.jobs
    }
}

impl Indexed for Nodes {
    fn table(served: &Served) -> &Table<Self> {
        &served.nodes
    }
}

impl Indexed for Queues {
    fn table(served: &Served) -> &Table<Self> {
        &served.queues
    }
}

/// The latest [`Served`].
#[derive(Debug, Default)]
pub(super) struct Index {
    current: ArcSwapOption<Served>,
    room: Arc<Room>,
    building: Mutex<()>,
    /// Whether there was a request since the last [`Index::forget_unused`].
    used: AtomicBool,
    /// Version of the last one that was dropped.
    forgotten: AtomicU64,
}

impl Index {
    /// Drops the latest one if there was no request since the last call: it would keep all state as of the last
    /// request in memory. A watch that resumes from an earlier version has to list again.
    pub(super) async fn forget_unused(&self) {
        let _building = self.building.lock().await;
        if !self.used.swap(false, Ordering::Relaxed)
            && let Some(served) = self.current.swap(None)
        {
            self.forgotten.store(served.version, Ordering::Relaxed);
        }
    }

    /// The index of this snapshot or a later one.
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
        let (last, forgotten) = match last {
            // Since then, another leader has given out versions, of changes that this index does not know by them.
            Some(earlier) if earlier.published.since != published.since => {
                (None, forgotten.max(earlier.version))
            }
            last => (last, forgotten),
        };
        let room = Arc::clone(&self.room);
        let served = tokio::task::spawn_blocking(move || match last {
            Some(last) => last.next(published),
            None => Served::first(published, forgotten, room),
        })
        .await
        .map_err(|error| {
            tracing::error!(%error, "failed to update the index of served objects");
            Refusal::Internal
        })?;
        let served = Arc::new(served);
        self.current.store(Some(Arc::clone(&served)));
        Ok(served)
    }
}
