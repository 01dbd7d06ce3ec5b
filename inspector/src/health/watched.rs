//! The watch of one kind: when it last received anything, and what is wrong with it.
//!
//! Idle and broken watches are distinguished by bookmarks, which an API server sends at least before it ends a watch,
//! and by that end, which is requested after [`WATCH_SECONDS`]. So a working watch receives something in that time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// A problem of one watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchProblem {
    /// Plural name of the resource, as in RBAC rules.
    pub resource: &'static str,
    pub text: String,
}

/// Duration of a watch: after it, the API server ends it and it is restarted.
pub(crate) const WATCH_SECONDS: u32 = 30;
/// A watch that has received nothing for longer is not merely idle (this allows for a delayed end).
pub(crate) const IDLE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 10);
/// Nothing is scheduled based on data that may be older than this: two watch durations, which allows for one lost
/// connection and a retry with its backoff.
pub const STALE_AFTER: Duration = Duration::from_secs(2 * WATCH_SECONDS as u64);

/// The request sent to the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    List,
    Watch,
}

impl Verb {
    /// As in RBAC rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Watch => "watch",
        }
    }
}

#[derive(Debug)]
struct Failure {
    verb: Verb,
    /// The API server denied access, and will continue to do so.
    refused: bool,
    why: String,
}

#[derive(Debug)]
struct Content {
    /// The kind is not installed.
    absent: bool,
    /// The complete list has been sent to the engine.
    listed: bool,
    /// A watch was established after that.
    stood: bool,
    /// When the data was last known to be current; before that, when it was first requested.
    confirmed: Instant,
    failure: Option<Failure>,
}

/// See the module documentation.
#[derive(Debug)]
pub struct Watched {
    kind: &'static str,
    resource: &'static str,
    needed: bool,
    content: Mutex<Content>,
    changed: Arc<Notify>,
}

impl Watched {
    /// `needed`: nothing is bound while it is broken.
    pub(super) fn new(
        kind: &'static str,
        resource: &'static str,
        needed: bool,
        changed: Arc<Notify>,
    ) -> Self {
        let content =
            Content { absent: false, listed: false, stood: false, confirmed: Instant::now(), failure: None };
        Self { kind, resource, needed, content: Mutex::new(content), changed }
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its name in metrics.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Its name in RBAC rules.
    pub fn resource(&self) -> &'static str {
        self.resource
    }

    /// Whether nothing is bound while it is broken.
    pub fn needed(&self) -> bool {
        self.needed
    }

    /// Records a page of a list, an event, a bookmark, or the regular end of a watch.
    pub fn heard(&self) {
        let mut content = self.lock();
        content.absent = false;
        content.confirmed = Instant::now();
    }

    /// Records that the last object of a list was sent to the engine.
    pub fn listed(&self) {
        self.lock().listed = true;
        self.changed.notify_one();
    }

    /// Records that the API server accepted a watch. That alone does not confirm the data: it may fail immediately.
    pub fn stands(&self) {
        let mut content = self.lock();
        content.stood |= content.listed;
        content.failure = None;
        drop(content);
        self.changed.notify_one();
    }

    /// Records a failed request.
    pub fn failed(&self, verb: Verb, refused: bool, why: String) {
        let mut content = self.lock();
        content.absent = false;
        content.failure = Some(Failure { verb, refused, why });
        drop(content);
        self.changed.notify_one();
    }

    /// Records that the kind is not installed.
    pub fn absent(&self) {
        let mut content = self.lock();
        let now = Instant::now();
        *content = Content { absent: true, listed: false, stood: false, confirmed: now, failure: None };
        drop(content);
        self.changed.notify_one();
    }

    /// Whether the initial list is complete and a watch is established.
    pub(super) fn delivered(&self) -> bool {
        let content = self.lock();
        content.absent || (content.listed && content.stood)
    }

    /// How long ago the data was last known to be current; none for a kind that is not installed.
    pub fn age(&self, now: Instant) -> Option<Duration> {
        let content = self.lock();
        (!content.absent).then(|| now.saturating_duration_since(content.confirmed))
    }

    /// How old the data may be; none if the watch is established and merely idle.
    pub(super) fn lag(&self, now: Instant) -> Option<Duration> {
        let age = self.age(now)?;
        (self.lock().failure.is_some() || age > IDLE).then_some(age)
    }

    /// Why this data must not be used for scheduling.
    pub(super) fn problem(&self, now: Instant) -> Option<WatchProblem> {
        let age = self.age(now)?;
        let content = self.lock();
        let text = match &content.failure {
            Some(Failure { verb, refused: true, why }) => {
                format!("not allowed to {} {}: {why}", verb.as_str(), self.resource)
            }
            _ if age <= STALE_AFTER => return None,
            Some(Failure { verb, why, .. }) => {
                let (verb, resource) = (verb.as_str(), self.resource);
                format!("the watch of {resource} has been stale for {} s: {verb} fails: {why}", age.as_secs())
            }
            None => format!("the watch of {} has received nothing for {} s", self.resource, age.as_secs()),
        };
        Some(WatchProblem { resource: self.resource, text })
    }
}
