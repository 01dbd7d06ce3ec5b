//! One kind of object that is watched: when it was last heard of, and what is wrong.
//!
//! An idle watch is told from a broken one by bookmarks, which an API server sends at least before it ends a watch, and
//! by that end: it is asked for after [`WATCH_SECONDS`]. So whatever stands says something in that time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// What is wrong with one watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchProblem {
    /// Plural name of what is watched, as roles name it.
    pub resource: &'static str,
    pub text: String,
}

/// Length of a watch: the API server ends it then, and it is begun anew.
pub(crate) const WATCH_SECONDS: u32 = 30;
/// A watch that has been silent for longer is not merely idle: its end, some seconds late, would have come.
pub(crate) const IDLE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 10);
/// Nothing is decided on data that may be older than this: two lengths of a watch, so that one lost connection and the
/// next try, with its pause, fit in.
pub const STALE_AFTER: Duration = Duration::from_secs(2 * WATCH_SECONDS as u64);

/// What was asked of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    List,
    Watch,
}

impl Verb {
    /// As roles write it.
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
    /// The API server answered, and will go on to refuse.
    refused: bool,
    why: String,
}

#[derive(Debug)]
struct Content {
    /// The kind is not installed.
    absent: bool,
    /// Everything there was has gone to the engine.
    listed: bool,
    /// A watch was granted after that.
    stood: bool,
    /// When the data was last known to be current; before that, when it was first asked for.
    confirmed: Instant,
    failure: Option<Failure>,
}

/// See the module.
#[derive(Debug)]
pub struct Watched {
    kind: &'static str,
    resource: &'static str,
    content: Mutex<Content>,
    changed: Arc<Notify>,
}

impl Watched {
    pub(super) fn new(kind: &'static str, resource: &'static str, changed: Arc<Notify>) -> Self {
        let content =
            Content { absent: false, listed: false, stood: false, confirmed: Instant::now(), failure: None };
        Self { kind, resource, content: Mutex::new(content), changed }
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it is called in metrics.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// What roles call it.
    pub fn resource(&self) -> &'static str {
        self.resource
    }

    /// A page of a list came, an event, a bookmark, or the end of a watch at its time.
    pub fn heard(&self) {
        let mut content = self.lock();
        content.absent = false;
        content.confirmed = Instant::now();
    }

    /// The last object of a list has gone to the engine.
    pub fn listed(&self) {
        self.lock().listed = true;
        self.changed.notify_one();
    }

    /// The API server granted a watch. That alone says nothing about the data: it may break off at once.
    pub fn stands(&self) {
        let mut content = self.lock();
        content.stood |= content.listed;
        content.failure = None;
        drop(content);
        self.changed.notify_one();
    }

    /// A request was not answered as it should be.
    pub fn failed(&self, verb: Verb, refused: bool, why: String) {
        let mut content = self.lock();
        content.absent = false;
        content.failure = Some(Failure { verb, refused, why });
        drop(content);
        self.changed.notify_one();
    }

    /// The kind is not installed.
    pub fn absent(&self) {
        let mut content = self.lock();
        let now = Instant::now();
        *content = Content { absent: true, listed: false, stood: false, confirmed: now, failure: None };
        drop(content);
        self.changed.notify_one();
    }

    /// Everything there was has been delivered, and is being watched.
    pub(super) fn delivered(&self) -> bool {
        let content = self.lock();
        content.absent || (content.listed && content.stood)
    }

    /// How long ago the data was last known to be current; nothing for a kind that is not installed.
    pub fn age(&self, now: Instant) -> Option<Duration> {
        let content = self.lock();
        (!content.absent).then(|| now.saturating_duration_since(content.confirmed))
    }

    /// By how much the data may be behind: an idle watch that stands is not.
    pub(super) fn lag(&self, now: Instant) -> Option<Duration> {
        let age = self.age(now)?;
        (self.lock().failure.is_some() || age > IDLE).then_some(age)
    }

    /// Why nothing may be decided on this data.
    pub(super) fn problem(&self, now: Instant) -> Option<WatchProblem> {
        let age = self.age(now)?;
        let content = self.lock();
        let text = match &content.failure {
            Some(Failure { verb, refused: true, why }) => {
                format!("forbidden to {} {}: {why}", verb.as_str(), self.resource)
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
