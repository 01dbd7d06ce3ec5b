//! Standalone mode: the scheduler without a cluster.
//!
//! A small substitute for the API server, in this process, feeds the same engine with the same objects as a cluster,
//! and carries out its effects; virtual Pods run for a given time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use fluxion_api::server_file::{DEFAULT_LISTEN, ServerFile};
use fluxion_scheduler::event::Event;
use fluxion_scheduler::state::State;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::cli::StandaloneOptions;
use crate::engine::{Clock, Engine, EngineHandle, Role, system_clock};
use crate::http::{self, App, Cancels, HttpSettings};
use crate::journal::{Journal, JournalError};
use crate::metrics::Metrics;
use crate::state_dir::StateDir;
use crate::submit::Taken;
use crate::supervise::{Liveness, Watchdog};
use crate::telemetry::{self, Exporter};

pub mod admission;
pub mod cluster;
pub mod controllers;
pub mod examples;
pub mod feed;
pub mod kubelet;
pub mod manifest;
pub mod metadata;
pub mod names;
pub mod object;
pub mod packed;
pub mod server;
pub mod store;
mod submit;
mod unknown_fields;

use cluster::Cluster;
use manifest::{Document, Manifests};
use object::Object;
use server::Server;

/// Default address of the API: a free port, which is written to `server.json`.
const LISTEN: SocketAddr = SocketAddr::new(DEFAULT_LISTEN.ip(), 0);
/// Maximum time for shutting down after the engine has failed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs in the foreground until stopped.
pub async fn run(options: StandaloneOptions) -> anyhow::Result<()> {
    let running = start(&options, None).await?;
    let asked = crate::signals::asked_to_end();
    running.until(asked).await.map(drop)
}

/// A server running in this process.
pub struct Running {
    /// How to connect to it.
    pub reached: ServerFile,
    /// Its engine, to wait for its decisions.
    pub engine: EngineHandle,
    state_dir: StateDir,
    stopping: CancellationToken,
    loops: JoinHandle<anyhow::Result<()>>,
    exporter: Option<Exporter>,
}

impl Running {
    /// Waits for `asked`, or for the server to fail, and shuts it down in order.
    pub async fn until(
        mut self,
        asked: impl Future<Output = std::io::Result<&'static str>>,
    ) -> anyhow::Result<StateDir> {
        tokio::select! {
            signal = asked => tracing::info!(signal = signal?, "shutting down"),
            failed = &mut self.loops => {
                failed??;
                return Ok(self.state_dir);
            }
        }
        self.stop().await
    }

    /// Shuts it down: no more requests are accepted, and all state is on disk. The state directory remains locked.
    pub async fn stop(self) -> anyhow::Result<StateDir> {
        self.engine.stop();
        self.stopping.cancel();
        self.loops.await??;
        telemetry::finish(self.exporter).await;
        Ok(self.state_dir)
    }
}

/// Starts everything; when this returns, `server.json` has been written and the engine has received all objects. State
/// is stored in the state directory, or in a subdirectory of it.
pub async fn start(options: &StandaloneOptions, inside: Option<&str>) -> anyhow::Result<Running> {
    let common = &options.common;
    let settings = common.configuration()?.settings;
    let manifests = read(options)?;
    let state_dir = StateDir::claim(common.state_dir.as_deref())?;
    let kept_in = state_dir.folder(inside)?;
    let (journal, kept) = Journal::open(&kept_in, &new_cluster_id()).await?;
    let cluster_id = kept.cluster_id.clone();
    let remembered = kept.remembered.clone();
    let cluster = Cluster::new(settings.scheduler_names.clone(), settings.keep_ended);
    let clock = clock(options.speed, kept.latest);
    let mut server = Server::new(cluster, journal, kept, Arc::clone(&clock))?;
    let new = server.is_new();
    load(&mut server, manifests, new).await?;
    server.settle(drop).await?;

    let listener = http::listen(common.listen.unwrap_or(LISTEN)).await?;
    let metrics = Arc::new(Metrics::new());
    let engine =
        Engine { state: State::new(settings), role: Role::Standalone, clock, metrics: Arc::clone(&metrics) };
    let (exporter, tracer) = telemetry::start(common.otlp_endpoint.as_deref(), &metrics)?;
    let (engine, effects) = engine.start_traced(tracer)?;
    for past in remembered {
        engine.send(Event::Remembered(Box::new(past)));
    }
    server.everything().for_each(|event| engine.send(event));
    engine.send(Event::Synced);

    let reached = state_dir.announce(listener.local_addr()?, &cluster_id)?;
    let stopping = CancellationToken::new();
    let limit = Duration::from_secs(common.step_limit.into());
    let liveness = Liveness::new(vec![engine.pulse().clone()], limit);
    let settings =
        HttpSettings { token: reached.token.clone(), cancels: Cancels::Engine, liveness: liveness.clone() };
    let (submit, requests) = server::requests();
    let app = App::new(engine.clone(), settings, metrics, stopping.clone()).with_submit(Arc::new(submit));
    let serving = tokio::spawn(http::serve(listener, app));
    let keeping = tokio::spawn(server.run(engine.clone(), effects, requests, stopping.clone()));
    let watchdog = Watchdog::start(liveness.times(2))?;
    let loops = tokio::spawn(supervise(engine.clone(), watchdog, keeping, serving, stopping.clone()));
    tracing::info!(url = reached.url, state_dir = %state_dir.path().display(), new, "listening");
    Ok(Running { reached, engine, state_dir, stopping, loops, exporter })
}

/// Waits until one of the loops ends, and shuts down the others; an unexpected end is an error.
async fn supervise(
    engine: EngineHandle,
    mut watchdog: Watchdog,
    mut keeping: JoinHandle<Result<(), JournalError>>,
    serving: JoinHandle<std::io::Result<()>>,
    stopping: CancellationToken,
) -> anyhow::Result<()> {
    let mut kept = None;
    let mut failure = tokio::select! {
        ended = &mut keeping => {
            kept = Some(ended);
            None
        }
        failure = engine.failed() => Some(failure),
        failure = watchdog.stuck() => Some(failure),
    };
    if matches!(kept, Some(Ok(Ok(())))) && !stopping.is_cancelled() {
        // It only ends by itself if the engine has ended.
        engine.ended().await;
        failure = engine.failure();
    }
    // Without the loop, all data is outdated: watches are ended by closing their connections.
    stopping.cancel();
    if let Some(failure) = failure {
        // State is written to disk, but a hanging task is not waited for.
        let rest = async { (keeping_end(kept, keeping).await, serving.await) };
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, rest).await;
        return Err(failure.into());
    }
    serving.await?.context("the HTTP API")?;
    engine.stop();
    // It uses the runtime, which may end next.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, engine.ended()).await;
    keeping_end(kept, keeping).await?.context("shutting down: the state can't be saved")
}

/// How the loop ended, which may be known already.
async fn keeping_end<T>(known: Option<Result<T, JoinError>>, keeping: JoinHandle<T>) -> Result<T, JoinError> {
    match known {
        Some(known) => known,
        None => keeping.await,
    }
}

/// The objects from the files on the command line.
struct Named {
    cluster: Option<Manifests>,
    jobs: Option<Manifests>,
}

fn read(options: &StandaloneOptions) -> anyhow::Result<Named> {
    let mut named = Named { cluster: None, jobs: None };
    if let Some(path) = &options.cluster {
        let mut manifests = Manifests::default();
        manifests.read(path)?;
        let nodes = manifests.documents.iter().any(Document::is_node);
        anyhow::ensure!(
            nodes,
            "{} contains no Nodes: create such a file with `kubectl get nodes -o yaml`",
            path.display()
        );
        named.cluster = Some(manifests);
    }
    for path in &options.jobs {
        named.jobs.get_or_insert_default().read(path)?;
    }
    Ok(named)
}

/// Submits manifests. Those submitted before a restart are skipped; an empty state without a cluster file gets the
/// examples.
async fn load(server: &mut Server, named: Named, new: bool) -> anyhow::Result<()> {
    let (cluster, jobs) = match (named.cluster, named.jobs) {
        (None, jobs) if new => (Some(examples::cluster()?), Some(jobs.map_or_else(examples::jobs, Ok)?)),
        others => others,
    };
    let mut documents = Vec::new();
    if let Some(manifests) = cluster {
        warn(&manifests);
        let file =
            manifests.documents.first().map(|document| document.place.file.clone()).unwrap_or_default();
        let (nodes, others): (Vec<_>, Vec<_>) = manifests.documents.into_iter().partition(Document::is_node);
        let kept = server
            .set_nodes(nodes.iter().map(|document| document.object.open().into_owned()).collect())
            .map_err(|error| anyhow::anyhow!("{file}: {error}"))?;
        for name in kept {
            tracing::warn!(
                node = name,
                "the node is not in the cluster file but is kept because Pods run on it"
            );
        }
        documents.extend(others);
    }
    if let Some(manifests) = jobs {
        warn(&manifests);
        documents.extend(manifests.documents);
    }
    // Referenced objects come first: a PriorityClass before its Pods, a PodGroup before its members.
    documents.sort_by_key(|document| match document.object.whole() {
        Some(Object::PriorityClass(_)) => 0,
        Some(Object::Node(_)) => 1,
        Some(Object::PodGroup(_)) => 2,
        _ => 3,
    });
    for document in documents {
        let place = document.place;
        let mut object = document.object.open().into_owned();
        fix_name(&place.to_string(), &mut object);
        match server.submit(object, true) {
            Ok(Taken::Known { called }) => {
                tracing::debug!(object = called, "already submitted earlier, not resubmitted");
            }
            Ok(taken) => tracing::debug!(?taken),
            Err(error) => anyhow::bail!("{place}: {error}"),
        }
        server.settle_much(drop).await?;
    }
    Ok(())
}

fn warn(manifests: &Manifests) {
    for warning in &manifests.warnings {
        tracing::warn!("{warning}");
    }
}

/// Completes a generated name: with the same result on every start, so that the object is recognized.
fn fix_name(place: &str, object: &mut Object) {
    if object.name().is_empty() {
        let start = object.meta().generate_name.clone().unwrap_or_default();
        object.meta_mut().name = Some(format!("{start}{}", names::random_looking(&[place], 0)));
    }
}

/// The system clock, or one that runs `speed` times as fast from now on. If the state is ahead of the system clock
/// (because it ran faster before), it continues from `latest`.
fn clock(speed: f64, latest: Option<i64>) -> Clock {
    let real = system_clock();
    let began = real();
    let from = latest.map_or(began, |latest| latest.saturating_mul(1000).max(began));
    // Real time is the usual case, and must not depend on arithmetic.
    if from == began && (speed - 1.0).abs() < f64::EPSILON {
        return real;
    }
    Arc::new(move || {
        let passed = (real() - began) as f64 * speed;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "milliseconds of a server's life; a cast saturates"
        )]
        from.saturating_add(passed as i64)
    })
}

/// A permanent, unique ID for a state directory.
fn new_cluster_id() -> String {
    let now = jiff::Timestamp::now().as_nanosecond().to_string();
    names::uid(&["cluster", &now], u64::from(std::process::id()))
}
