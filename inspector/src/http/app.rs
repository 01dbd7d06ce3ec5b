//! What all controllers share.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::answer::Moment;
use super::index::Index;
use super::page::Pages;
use super::refusal::Refusal;
use super::requests::Requests;
use crate::engine::{EngineHandle, Published};
use crate::health::Health;
use crate::history::HistoryHealth;
use crate::metrics::Metrics;
use crate::submit::Submit;
use crate::supervise::Liveness;

/// So many watches may be open at once.
pub(super) const WATCHES: usize = 512;

/// What nobody asks for in this time, or twice as long, is not kept for the next one.
const UNUSED: Duration = Duration::from_mins(1);

/// How the API behaves.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// The bearer token that makes its holder administrator.
    pub token: String,
    /// Whether a cancel is carried out here (standalone mode) or by the one who asks, with own credentials.
    pub cancels: bool,
    /// What `/livez` looks at.
    pub liveness: Liveness,
}

/// What all controllers share.
#[derive(Clone)]
pub struct App {
    pub(super) engine: EngineHandle,
    pub(super) settings: Arc<HttpSettings>,
    /// Takes manifests in; only standalone mode does.
    pub(super) submit: Option<Arc<dyn Submit>>,
    pub(super) health: Arc<Health>,
    pub(super) history: HistoryHealth,
    pub(super) metrics: Arc<Metrics>,
    pub(super) requests: Arc<Requests>,
    pub(super) index: Arc<Index>,
    pub(super) pages: Arc<Pages>,
    pub(super) watches: Arc<Semaphore>,
    /// Two cancels of one job come one after the other, so that the second sees what the first did.
    pub(super) cancelling: Arc<Mutex<()>>,
    /// Ends watches when the server goes down.
    pub(super) stopping: CancellationToken,
}

impl App {
    /// An API over this engine; `stopping` ends its watches.
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
            health: Arc::default(),
            history: HistoryHealth::default(),
            metrics,
            index: Arc::default(),
            pages: Arc::default(),
            watches: Arc::new(Semaphore::new(WATCHES)),
            cancelling: Arc::default(),
            stopping,
        }
    }

    /// Lets manifests be handed in.
    #[must_use]
    pub fn with_submit(mut self, submit: Arc<dyn Submit>) -> Self {
        self.submit = Some(submit);
        self
    }

    /// Shows how far the data can be relied on.
    #[must_use]
    pub fn with_health(mut self, health: Arc<Health>) -> Self {
        self.requests.show(&self.metrics, &health);
        self.health = health;
        self
    }

    /// Shows whether histories are kept.
    #[must_use]
    pub fn with_history(mut self, history: HistoryHealth) -> Self {
        self.history = history;
        self
    }

    /// The latest snapshot, once the whole cluster was seen; whoever leads, and however old it is.
    pub(super) fn ready(&self) -> Result<Arc<Published>, Refusal> {
        let published = self.engine.snapshot();
        if published.state.whole() {
            Ok(published)
        } else {
            Err(Refusal::Unavailable("the cluster has not been fully read yet"))
        }
    }

    /// What an answer taken from this snapshot says of it.
    pub(super) fn moment(&self, published: &Published) -> Moment {
        let mut moment = Moment::of(published);
        let now = jiff::Timestamp::now().as_second();
        let last = self.health.last_current(now).unwrap_or(moment.observed_at);
        moment.observed_at = moment.observed_at.min(last);
        moment.warning = self.health.warning().map(Arc::from);
        moment
    }

    /// Lets go, now and then, of what is kept for those who ask while nobody does.
    pub(super) async fn tidy(&self) -> Infallible {
        loop {
            tokio::time::sleep(UNUSED).await;
            // An idle watch asks for nothing, and goes on from where it is.
            if self.watches.available_permits() == WATCHES {
                self.index.forget_unused().await;
            }
        }
    }

    pub(super) fn watch_permit(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.watches).try_acquire_owned().map_err(|_| Refusal::TooMany(WATCHES))
    }
}
