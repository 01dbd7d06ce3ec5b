//! State shared by all controllers.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fluxion_scheduler::model::SharedStr;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::answer::Moment;
use super::index::Index;
use super::page::Pages;
use super::refusal::Refusal;
use super::requests::Requests;
use super::tickets::{Ticket, Tickets};
use crate::access::Expiring;
use crate::deletion::Deletion;
use crate::engine::{EngineHandle, Published};
use crate::health::Health;
use crate::history::HistoryHealth;
use crate::metrics::Metrics;
use crate::submit::Submit;
use crate::supervise::Liveness;

/// Maximum number of concurrent watches.
pub(super) const WATCHES: usize = 2048;
/// Maximum number of concurrent watches of one user.
pub(super) const WATCHES_OF_ONE: usize = 1024;

/// How long the deletion of a job's objects may take to become visible; after that, the job can be cancelled again.
const DELETED: Duration = Duration::from_mins(1);
/// Number of such jobs that are remembered.
const DELETED_MAX: NonZeroUsize = NonZeroUsize::new(10_000).expect("not zero");

/// Snapshots that no request has needed for one to two times this long are dropped.
const UNUSED: Duration = Duration::from_secs(2);

/// A watch that counts.
pub(super) type WatchTicket = Ticket<Arc<str>>;

/// Who deletes the objects of cancelled jobs.
#[derive(Clone, Debug)]
pub enum Cancels {
    /// The engine, by an effect: standalone mode.
    Engine,
    /// The user, with the user's own credentials; this server only names the objects.
    User,
    /// This server, for users whom the API server allows to delete each of the objects.
    Server(Arc<dyn Deletion>),
}

/// Settings of the HTTP API.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// The bearer token, which grants administrator access.
    pub token: String,
    /// Who deletes the objects of cancelled jobs.
    pub cancels: Cancels,
    /// State reported by `/livez`.
    pub liveness: Liveness,
}

/// State shared by all controllers.
#[derive(Clone)]
pub struct App {
    pub(super) engine: EngineHandle,
    pub(super) settings: Arc<HttpSettings>,
    /// Accepts manifests; only in standalone mode.
    pub(super) submit: Option<Arc<dyn Submit>>,
    /// Serves the admission webhooks on the secure port.
    pub(super) admission: bool,
    pub(super) health: Arc<Health>,
    pub(super) history: HistoryHealth,
    pub(super) metrics: Arc<Metrics>,
    pub(super) requests: Arc<Requests>,
    pub(super) index: Arc<Index>,
    pub(super) pages: Arc<Pages>,
    /// By user.
    pub(super) watches: Arc<Tickets<Arc<str>>>,
    /// Serializes cancel requests, so that a second one for the same job sees the effects of the first.
    pub(super) cancelling: Arc<Mutex<()>>,
    /// Jobs (by UID) whose objects were deleted for users a short time ago.
    pub(super) deleted: Arc<Expiring<SharedStr, ()>>,
    /// Ends watches when the server shuts down.
    pub(super) stopping: CancellationToken,
}

impl App {
    /// An API for this engine; `stopping` ends its watches.
    pub fn new(
        engine: EngineHandle,
        settings: HttpSettings,
        metrics: Arc<Metrics>,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            requests: Arc::new(Requests::register(&metrics, engine.clone())),
            engine,
            settings: Arc::new(settings),
            submit: None,
            admission: false,
            health: Arc::default(),
            history: HistoryHealth::default(),
            metrics,
            index: Arc::default(),
            pages: Arc::default(),
            watches: Tickets::new(WATCHES, WATCHES_OF_ONE),
            cancelling: Arc::default(),
            deleted: Arc::new(Expiring::new(DELETED_MAX, DELETED)),
            stopping,
        }
    }

    /// Enables submitting manifests.
    #[must_use]
    pub fn with_submit(mut self, submit: Arc<dyn Submit>) -> Self {
        self.submit = Some(submit);
        self
    }

    /// Serves the admission webhooks on the secure port.
    #[must_use]
    pub fn with_admission(mut self, admission: bool) -> Self {
        self.admission = admission;
        self
    }

    /// Includes the health of the data in responses.
    #[must_use]
    pub fn with_health(mut self, health: Arc<Health>) -> Self {
        self.requests.show(&self.metrics, &health);
        self.health = health;
        self
    }

    /// Reports whether history is recorded.
    #[must_use]
    pub fn with_history(mut self, history: HistoryHealth) -> Self {
        self.history = history;
        self
    }

    /// The latest snapshot, once all watches have synced; regardless of the leader and its age.
    pub(super) fn ready(&self) -> Result<Arc<Published>, Refusal> {
        let published = self.engine.snapshot();
        if published.state.whole() {
            Ok(published)
        } else {
            Err(Refusal::Unavailable("the initial lists are not complete yet"))
        }
    }

    /// A snapshot that includes everything sent to the engine before.
    pub(super) async fn fresh(&self) -> Result<Arc<Published>, Refusal> {
        self.engine.fresh().await.map_err(|_| Refusal::Unavailable("the inspector is shutting down"))
    }

    /// Metadata of a response taken from this snapshot.
    pub(super) fn moment(&self, published: &Published) -> Moment {
        let mut moment = Moment::of(published);
        let now = jiff::Timestamp::now().as_second();
        let last = self.health.last_current(now).unwrap_or(moment.observed_at);
        moment.observed_at = moment.observed_at.min(last);
        moment.warning = self.health.warning().map(Arc::from);
        moment
    }

    /// Periodically drops caches that are not in use.
    pub(super) async fn tidy(&self) -> Infallible {
        loop {
            tokio::time::sleep(UNUSED).await;
            self.pages.tidy(Instant::now());
            // An idle watch makes no requests, and continues from its position.
            if self.watches.is_idle() {
                self.index.tidy().await;
            }
        }
    }

    /// Counts a watch of this user.
    pub(super) fn watch_ticket(&self, user: &Arc<str>) -> Result<WatchTicket, Refusal> {
        let ticket = self.watches.take(Arc::clone(user)).inspect(Ticket::prove);
        ticket.ok_or_else(|| {
            let refusal = Refusal::TooMany(WATCHES_OF_ONE, WATCHES);
            self.metrics.watch_dropped(refusal.code().1);
            refusal
        })
    }
}
