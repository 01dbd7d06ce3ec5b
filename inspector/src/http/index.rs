//! Versions of all objects: used to answer lists and watches, and for resource versions.
//!
//! It is updated by requests, never by the engine: nothing is computed without clients, and slow clients block nobody.
//! Each visible change of an object has its own version, so an interrupted watch resumes exactly where it stopped.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// The versions of all objects.
#[derive(Debug)]
pub(super) struct Versions {
    /// `resourceVersion` of a list taken now.
    pub version: u64,
    /// [`Published::since`] of their snapshots.
    since: u64,
    /// How much of the objects may be kept as bytes.
    pub room: Arc<Room>,
    pub jobs: Table<Jobs>,
    pub nodes: Table<Nodes>,
    pub queues: Table<Queues>,
}

impl Versions {
    /// The versions for a later snapshot, which starts no earlier than its sequence, so they never go back over a restart.
    /// Without the one `before`, watches can't go on from earlier versions.
    fn next(&self, before: Option<&Visible<'_>>, published: Arc<Published>) -> Served {
        let viewer = Viewer::everything();
        let places = Arc::new(Places::of(&published.state));
        let after = Visible::with_places(&published, &viewer, &places);
        let mut version = self.version;
        let jobs = self.jobs.next(before, &after, &mut version);
        let nodes = self.nodes.next(before, &after, &mut version);
        let queues = self.queues.next(before, &after, &mut version);
        let version = version.max(published.sequence);
        let (since, room) = (published.since, Arc::clone(&self.room));
        let versions = Self { version, since, room, jobs, nodes, queues };
        Served { versions, published, places }
    }

    /// The same without the changes, which are only for watches.
    fn at_rest(self) -> Self {
        Self { jobs: self.jobs.at_rest(), nodes: self.nodes.at_rest(), queues: self.queues.at_rest(), ..self }
    }
}

/// A snapshot with the versions of its objects.
#[derive(Debug)]
pub(super) struct Served {
    versions: Versions,
    pub published: Arc<Published>,
    /// Where the jobs stand in their queues.
    places: Arc<Places>,
}

impl Deref for Served {
    type Target = Versions;

    fn deref(&self) -> &Versions {
        &self.versions
    }
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
        let versions = Versions { version, since: published.since, room, jobs, nodes, queues };
        Self { versions, published, places }
    }

    /// The same for a later snapshot.
    pub(super) fn next(&self, published: Arc<Published>) -> Self {
        let viewer = Viewer::everything();
        self.versions.next(Some(&self.seen_by(&viewer)), published)
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

/// Calls of [`Index::tidy`] in a row without a request in between, after which the versions are dropped too.
const FORGOTTEN_AFTER: u32 = 60;

/// The latest [`Served`].
#[derive(Debug, Default)]
pub(super) struct Index {
    current: ArcSwapOption<Served>,
    room: Arc<Room>,
    building: Mutex<Unused>,
    /// Whether there was a request since the last [`Index::tidy`].
    used: AtomicBool,
}

/// What is left of the latest one while nobody asks.
#[derive(Debug, Default)]
struct Unused {
    versions: Option<Versions>,
    /// Calls of [`Index::tidy`] in a row without a request in between.
    calls: u32,
    /// The last version that was forgotten.
    forgotten: u64,
}

impl Index {
    /// Drops the latest snapshot if there was no request since the last call, and no answer is being written from it: it
    /// would keep all state as of that request in memory. The versions stay for longer, so that unchanged objects keep
    /// theirs; a watch from before the next change has to list again.
    pub(super) async fn tidy(&self) {
        let mut unused = self.building.lock().await;
        let mut in_use = self.used.swap(false, Ordering::Relaxed);
        if !in_use && let Some(served) = self.current.swap(None) {
            match Arc::try_unwrap(served) {
                Ok(served) => unused.versions = Some(served.versions.at_rest()),
                Err(served) => {
                    self.current.store(Some(served));
                    in_use = true;
                }
            }
        }
        unused.calls = if in_use { 0 } else { unused.calls.saturating_add(1) };
        if unused.calls >= FORGOTTEN_AFTER
            && let Some(versions) = unused.versions.take()
        {
            unused.forgotten = versions.version;
        }
    }

    /// Keeps the latest one for a client that reads the pages of an earlier one: it may watch from there.
    pub(super) fn touch(&self) {
        self.used.store(true, Ordering::Relaxed);
    }

    /// The index of this snapshot or a later one.
    pub(super) async fn at(&self, published: Arc<Published>) -> Result<Arc<Served>, Refusal> {
        self.touch();
        let known =
            || self.current.load_full().filter(|served| served.published.sequence >= published.sequence);
        if let Some(served) = known() {
            return Ok(served);
        }
        let mut unused = self.building.lock().await;
        if let Some(served) = known() {
            return Ok(served);
        }
        let mut last = self.current.load_full();
        let mut versions = unused.versions.take();
        let given_out = |versions: &Versions| (versions.since != published.since).then_some(versions.version);
        let known = [last.as_deref().map(|served| &served.versions), versions.as_ref()];
        let foreign = known.into_iter().flatten().find_map(given_out);
        if let Some(earlier) = foreign {
            // Since then, another leader has given out versions, of changes that this index does not know by them.
            (last, versions) = (None, None);
            unused.forgotten = unused.forgotten.max(earlier);
        }
        // Should this fail, the versions still never go back.
        unused.forgotten = versions.as_ref().map_or(unused.forgotten, |versions| versions.version);
        let forgotten = unused.forgotten;
        let room = Arc::clone(&self.room);
        let served = tokio::task::spawn_blocking(move || match (last, versions) {
            (Some(last), _) => last.next(published),
            (None, Some(versions)) => versions.next(None, published),
            (None, None) => Served::first(published, forgotten, room),
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
