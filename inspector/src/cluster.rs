//! `fluxion-inspector cluster`: starts all components, and shuts them down in order.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use fluxion_api::server_file::DEFAULT_LISTEN;
use fluxion_scheduler::event::Event;
use fluxion_scheduler::state::{Settings, State};
use tokio::sync::watch as signal;
use tokio_util::sync::CancellationToken;

use crate::cli::ClusterOptions;
use crate::config::Config;
use crate::engine::{Engine, EngineHandle, Role, system_clock};
use crate::health::{Health, Term};
use crate::history::{self, ClusterUid, JournalPlace, Location, Recording};
use crate::http::{self, Cancels, HttpSettings};
use crate::kube::connect::connect;
use crate::kube::lease::{self, Lease};
use crate::kube::watch;
use crate::kube::writer::{Deleter, Right, Writer};
use crate::metrics::Metrics;
use crate::signals::asked_to_end;
use crate::state_dir::StateDir;
use crate::supervise::{Failure, Liveness, Tasks, Watchdog};
use crate::telemetry;

mod secure;
mod shutdown;

use secure::SecurePort;
use shutdown::Components;

/// Runs until it receives SIGTERM or Ctrl-C, or until a component fails.
pub async fn run(options: ClusterOptions) -> anyhow::Result<()> {
    let common = &options.common;
    let config = common.configuration()?;
    let location = location(&options, &config)?;
    let state_dir = StateDir::claim(common.state_dir.as_deref())?;
    let listener = http::listen(common.listen.unwrap_or(DEFAULT_LISTEN)).await.context("--listen")?;
    let connection = connect(options.kubeconfig.clone(), options.context.clone()).await?;
    let (client, metrics) = (connection.client, Arc::new(Metrics::new()));
    let namespace = options.namespace.as_deref().unwrap_or(&connection.namespace);
    let secure = SecurePort::open(&options.secure, &client, namespace).await?;

    let (exporter, tracer) = telemetry::start(common.otlp_endpoint.as_deref(), &metrics)?;
    let (engine, effects) = engine(config.settings.clone(), &metrics).start_traced(tracer)?;
    let health = Arc::new(Health::default());
    let recording = Recording {
        place: place(location, &state_dir, &connection.url, &client),
        retention: config.journal.retention,
        engine: engine.clone(),
        leadership: health.follow_leadership(),
        metrics: Arc::clone(&metrics),
    };
    let (recorder, effects) = history::start(recording, &config.settings, effects).await;
    let identity = lease::identity();
    let lease = Lease::new(client.clone(), namespace, &options.lease, &identity, options.lease_seconds)
        .with_address(secure.as_ref().and_then(SecurePort::advertised));
    let mut watches = watch::start(&client, &engine, &metrics, &health);
    let (grant, granted) = signal::channel(None);
    let cancels = if options.allow_cancel {
        Cancels::Server(Arc::new(Deleter::new(client.clone())))
    } else {
        Cancels::User
    };
    let mut writer =
        Writer::start(client, engine.clone(), Arc::clone(&metrics), effects, Right::new(granted), identity);
    let mut election = Tasks::default();
    election.spawn("the Lease", lease.clone().run(Arc::clone(&health)));
    let mut decisions = Tasks::default();
    let deciding =
        decide_while_right(grant.clone(), engine.clone(), Arc::clone(&health), Arc::clone(&metrics));
    decisions.spawn("the leadership", deciding);

    let said = state_dir.announce(listener.local_addr()?, &connection.url)?;
    tracing::info!(url = said.url, state_dir = %state_dir.path().display(), "listening");
    let pulses = [engine.pulse().clone()].into_iter().chain(watches.pulses());
    let pulses = pulses.chain(writer.pulses()).chain(election.pulses()).chain(decisions.pulses()).collect();
    let liveness = Liveness::new(pulses, Duration::from_secs(common.step_limit.into()));
    let mut watchdog = Watchdog::start(liveness.clone().times(2))?;
    let stopping = CancellationToken::new();
    let settings = HttpSettings { token: said.token, cancels, liveness };
    let api = http::App::new(engine.clone(), settings, Arc::clone(&metrics), stopping.clone());
    let api = api.with_admission(options.secure.admission_webhook);
    let api = api.with_health(Arc::clone(&health)).with_history(recorder.health.clone());
    let mut upkeep = Tasks::default();
    let securely = match secure.map(|port| port.serve(api.clone())).transpose()? {
        Some((serving, tasks)) => {
            upkeep = tasks;
            Some(tokio::spawn(serving))
        }
        None => None,
    };
    let mut serving = tokio::spawn(http::serve(listener, api));

    let failure = tokio::select! {
        // The engine first: other components end because of it.
        biased;
        failure = engine.failed() => Some(failure),
        failure = watches.failed() => Some(failure),
        failure = writer.failed() => Some(failure),
        failure = election.failed() => Some(failure),
        failure = decisions.failed() => Some(failure),
        failure = watchdog.stuck() => Some(failure),
        failure = upkeep.failed() => Some(failure),
        _ = &mut serving => Some(Failure::Ended("the HTTP API".to_owned())),
        asked = asked_to_end() => {
            tracing::info!(signal = asked?, "shutting down");
            None
        }
    };
    let failure = match failure {
        Some(failure) => Some(engine.cause_of(failure).await),
        None => None,
    };
    if let Some(failure) = &failure {
        tracing::error!(%failure, "shutting down so that another inspector can take over");
    }
    let running = Components {
        engine,
        health,
        lease,
        election,
        decisions,
        grant,
        writer,
        upkeep,
        stopping,
        securely,
        serving,
        recorder,
    };
    running.shut_down().await;
    telemetry::finish(exporter).await;
    failure.map_or(Ok(()), |failure| Err(failure.into()))
}

/// An engine that makes no decisions yet.
fn engine(settings: Settings, metrics: &Arc<Metrics>) -> Engine {
    Engine {
        state: State::new(settings),
        role: Role::Follower,
        clock: system_clock(),
        metrics: Arc::clone(metrics),
    }
}

/// Where the history is stored; the flag takes precedence.
fn location(options: &ClusterOptions, config: &Config) -> anyhow::Result<Location> {
    match &options.journal {
        Some(url) => Location::parse(url).context("--journal (FLUXION_JOURNAL)"),
        None => Ok(config.journal.location.clone()),
    }
}

/// The journal of the cluster at this URL.
fn place(location: Location, state_dir: &StateDir, url: &str, client: &kube::Client) -> JournalPlace {
    tracing::info!(journal = %location, "recording history");
    match location {
        Location::StateDir => match state_dir.folder(Some("cluster")) {
            Ok(folder) => JournalPlace::File {
                path: folder.join("state.db"),
                cluster: url.to_owned(),
                own: true,
                checked: false,
            },
            Err(error) => JournalPlace::None(error.to_string()),
        },
        Location::File(path) => {
            JournalPlace::File { path, cluster: url.to_owned(), own: false, checked: false }
        }
        Location::Server(options) => {
            JournalPlace::Server { options, cluster: ClusterUid::Ask(client.clone()) }
        }
    }
}

/// Allows the engine to schedule and the writer to write while we hold the Lease and every watch has synced and is not
/// stale.
async fn decide_while_right(
    grant: signal::Sender<Option<Term>>,
    engine: EngineHandle,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
) {
    let mut before = None;
    let mut complained = false;
    loop {
        let term = health.leadership().and_then(|leadership| leadership.term());
        let problems = health.problems();
        match term {
            Some(Term { number, .. }) => engine.lead(number),
            None => engine.set_role(Role::Follower),
        }
        metrics.leader.set(i64::from(term.is_some()));
        if health.synced() {
            if before.is_none() {
                tracing::info!("all watches have synced");
            }
            let may = term.filter(|_| problems.is_empty());
            grant.send_if_modified(|granted| std::mem::replace(granted, may) != may);
            // What was requested in another term is not sent.
            let right = may.map(|term| term.number);
            if before != Some(right) {
                before = Some(right);
                engine.send(if right.is_some() { Event::Synced } else { Event::Paused });
            }
        }
        match (complained, problems.is_empty()) {
            (false, false) => {
                let watches: Vec<&str> = problems.iter().map(|problem| problem.resource).collect();
                let watches = watches.join(", ");
                tracing::warn!(watches, "binding is paused: watches are stale or not allowed");
                complained = true;
            }
            (true, true) => {
                tracing::info!("all watches are up to date again");
                complained = false;
            }
            _ => {}
        }
        health.changed().await;
    }
}

#[cfg(test)]
mod tests;
