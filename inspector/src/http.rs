//! The HTTP API: what is asked at which path, and the layers that every request goes through.
//!
//! Nothing in here decides anything: controllers read published snapshots through [`crate::view`] and hand
//! wishes to the engine as events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tower_http::compression::CompressionLayer;

use crate::engine::{EngineHandle, Published};
use crate::health::Health;
use crate::history::HistoryHealth;
use crate::metrics::Metrics;
use crate::standalone::server::SubmitHandle;
use crate::supervise::Liveness;

mod answer;
mod auth;
mod cancel;
mod collection;
mod create;
mod discovery;
mod documents;
mod explain;
mod guard;
mod health;
mod index;
mod jobs;
mod listen;
mod nodes;
mod page;
mod path;
mod query;
mod queues;
mod refusal;
mod resource;
mod scrape;
mod selector;
mod watch;

pub use listen::{ListenError, listen, serve};
pub use refusal::Refusal;

use answer::Moment;
use index::Index;
use page::Pages;

/// So many watches may be open at once.
const WATCHES: usize = 512;
/// What nobody asks for in this time, or twice as long, is not kept for the next one.
const UNUSED: Duration = Duration::from_mins(1);
/// Larger bodies are refused.
const BODY_BYTES: usize = 64 * 1024;

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
    engine: EngineHandle,
    settings: Arc<HttpSettings>,
    /// Takes manifests in; only standalone mode does.
    submit: Option<SubmitHandle>,
    health: Arc<Health>,
    history: HistoryHealth,
    metrics: Arc<Metrics>,
    requests: Arc<scrape::Requests>,
    index: Arc<Index>,
    pages: Arc<Pages>,
    watches: Arc<Semaphore>,
    /// Two cancels of one job come one after the other, so that the second sees what the first did.
    cancelling: Arc<Mutex<()>>,
    /// Ends watches when the server goes down.
    stopping: CancellationToken,
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
            requests: Arc::new(scrape::Requests::register(&metrics, engine.clone())),
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
    pub fn with_submit(mut self, submit: SubmitHandle) -> Self {
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
    fn ready(&self) -> Result<Arc<Published>, Refusal> {
        let published = self.engine.snapshot();
        if published.state.whole() {
            Ok(published)
        } else {
            Err(Refusal::Unavailable("the whole cluster has not been seen yet"))
        }
    }

    /// What an answer taken from this snapshot says of it.
    fn moment(&self, published: &Published) -> Moment {
        let mut moment = Moment::of(published);
        let now = jiff::Timestamp::now().as_second();
        let last = self.health.last_current(now).unwrap_or(moment.observed_at);
        moment.observed_at = moment.observed_at.min(last);
        moment.warning = self.health.warning().map(Arc::from);
        moment
    }

    /// Lets go, now and then, of what is kept for those who ask while nobody does.
    async fn tidy(&self) -> Infallible {
        loop {
            tokio::time::sleep(UNUSED).await;
            // An idle watch asks for nothing, and goes on from where it is.
            if self.watches.available_permits() == WATCHES {
                self.index.forget_unused().await;
            }
        }
    }

    fn watch_permit(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.watches).try_acquire_owned().map_err(|_| Refusal::TooMany(WATCHES))
    }
}

/// Everything that can be asked.
pub fn router(app: App) -> Router {
    let api = Router::new()
        .route("/fluxionjobs", get(jobs::list_all))
        .route("/namespaces/{namespace}/fluxionjobs", get(jobs::list).post(create::post))
        .route("/namespaces/{namespace}/fluxionjobs/{name}", get(jobs::get))
        .route("/namespaces/{namespace}/fluxionjobs/{name}/explain", get(explain::get))
        .route("/namespaces/{namespace}/fluxionjobs/{name}/cancel", post(cancel::post))
        .route("/fluxionnodes", get(nodes::list))
        .route("/fluxionnodes/{name}", get(nodes::get))
        .route("/fluxionqueues", get(queues::list))
        .route("/fluxionqueues/{name}", get(queues::get))
        .route("/fluxiongraphs", get(documents::graphs))
        .route("/fluxiongraphs/{name}", get(documents::graph))
        .route("/fluxiontimelines", get(documents::timelines))
        .route("/fluxiontimelines/{name}", get(documents::timeline))
        .route("/fluxionaudits", get(documents::audits))
        .route("/fluxionaudits/{name}", get(documents::audit))
        .route("/", get(discovery::resources));
    let authenticated = Router::new()
        .nest("/apis/fluxion.flux-framework.org/v1alpha1", api)
        .route("/apis/fluxion.flux-framework.org", get(discovery::group))
        .route("/apis", get(discovery::groups))
        .route("/version", get(discovery::version))
        .route("/metrics", get(scrape::metrics))
        .fallback(guard::no_such_path)
        .method_not_allowed_fallback(guard::method_not_allowed)
        .layer(from_fn_with_state(app.clone(), auth::bearer));
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/livez", get(health::alive))
        .route("/readyz", get(health::ready))
        .method_not_allowed_fallback(guard::method_not_allowed)
        .merge(authenticated)
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(CompressionLayer::new().gzip(true).compress_when(guard::Compressible))
        .layer(from_fn(guard::bounded))
        .layer(from_fn(auth::own_host))
        .layer(from_fn_with_state(app.clone(), scrape::count))
        .with_state(app)
}

#[cfg(test)]
mod tests;
