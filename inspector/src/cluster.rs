//! `fluxion-inspector cluster`: puts the parts together, and takes them down in order.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use fluxion_core::event::Event;
use fluxion_core::state::State;
use tokio::sync::watch as signal;
use tokio_util::sync::CancellationToken;

use crate::cli::ClusterOptions;
use crate::config;
use crate::engine::{Engine, EngineHandle, Role, system_clock};
use crate::history;
use crate::http::{self, HttpSettings};
use crate::kube::connect::connect;
use crate::kube::lease::Lease;
use crate::kube::watch::Watches;
use crate::kube::writer::Writer;
use crate::metrics::Metrics;
use crate::signals::asked_to_end;
use crate::state_dir::StateDir;

/// Where the API listens unless told otherwise.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8181);
/// How long giving the Lease back may take at the end.
const LAST_WORD: Duration = Duration::from_secs(3);

/// Runs until it is told to end (SIGTERM, Ctrl-C).
pub async fn run(options: ClusterOptions) -> anyhow::Result<()> {
    let common = &options.common;
    let settings = config::load(common.config.as_deref(), &common.scheduler_names)?;
    let state_dir = StateDir::claim(common.state_dir.as_deref())?;
    let listener = http::listen(common.listen.unwrap_or(LISTEN)).await.context("--listen")?;
    let connection = connect(options.kubeconfig.clone(), options.context.clone()).await?;
    let (client, metrics) = (connection.client, Arc::new(Metrics::new()));

    let engine = Engine {
        state: State::new(settings),
        role: Role::Follower,
        clock: system_clock(),
        metrics: Arc::clone(&metrics),
    };
    let (engine, effects) = engine.start()?;
    let (past, remembered) = history::open(state_dir.folder(Some("cluster")), &connection.url).await;
    for past in remembered {
        engine.send(Event::Remembered(Box::new(past)));
    }
    let (recorder, effects) = history::record(past, effects);
    let (lead, leading) = signal::channel(false);
    let identity = identity(state_dir.path());
    let namespace = options.namespace.as_deref().unwrap_or(&connection.namespace);
    let mut lease =
        Lease::new(client.clone(), namespace, &options.lease, identity.clone(), options.lease_seconds);
    let watches = Watches::start(&client, &engine, &metrics);
    let writer =
        Writer::start(client, engine.clone(), Arc::clone(&metrics), effects, leading.clone(), identity);
    let said = state_dir.announce(listener.local_addr()?, &connection.url)?;
    tracing::info!(url = said.url, state_dir = %state_dir.path().display(), "listening");
    let stopping = CancellationToken::new();
    // Objects are deleted by those who cancel, with their own credentials.
    let settings = HttpSettings { token: said.token, cancels: false };
    let api = http::App::new(engine.clone(), settings, Arc::clone(&metrics), stopping.clone());
    let serving = tokio::spawn(http::serve(listener, api));

    tokio::select! {
        () = lease.run(&lead) => {}
        () = lead_when_synced(watches, leading, &engine, &metrics) => {}
        asked = asked_to_end() => tracing::info!(signal = asked?, "ending"),
    }
    // From here on nothing new is begun; what is under way comes to its end before another one may lead.
    lead.send_replace(false);
    engine.send(Event::Paused);
    writer.stop().await;
    match tokio::time::timeout(LAST_WORD, lease.release()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(%error, "the Lease was not given back: another inspector has to wait for it");
        }
        Err(_) => tracing::warn!("the Lease was not given back: the API server does not answer"),
    }
    stopping.cancel();
    match tokio::time::timeout(LAST_WORD, serving).await {
        Ok(Ok(Ok(()))) | Err(_) => {}
        Ok(Ok(Err(error))) => tracing::warn!(%error, "the HTTP API ended with an error"),
        Ok(Err(error)) => tracing::warn!(%error, "the HTTP API ended with an error"),
    }
    engine.stop();
    // The engine's end closes the channel; a disk that hangs is not waited for.
    let _ = tokio::time::timeout(LAST_WORD, recorder.finish()).await;
    Ok(())
}

/// The engine may decide when every watch has delivered and we hold the Lease, and no longer.
async fn lead_when_synced(
    mut watches: Watches,
    mut leading: signal::Receiver<bool>,
    engine: &EngineHandle,
    metrics: &Metrics,
) {
    watches.synced().await;
    tracing::info!("every watch has delivered what there is");
    loop {
        let leads = *leading.borrow_and_update();
        engine.set_role(if leads { Role::Leader } else { Role::Follower });
        engine.send(if leads { Event::Synced } else { Event::Paused });
        metrics.leader.set(i64::from(leads));
        if leading.changed().await.is_err() {
            return;
        }
    }
}

/// Who we are among the inspectors of a cluster: machine (or Pod) and state folder, which one process claims. So an
/// inspector that was killed is the same one when it comes back.
fn identity(state_dir: &Path) -> String {
    let host = std::env::var("HOSTNAME").or_else(|_| std::fs::read_to_string("/etc/hostname"));
    let host = host.unwrap_or_default();
    let mut hash = DefaultHasher::new();
    state_dir.hash(&mut hash);
    let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("localhost");
    format!("{host}_{:08x}", hash.finish() & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inspector_keeps_its_name_over_restarts_and_shares_it_with_no_other_folder() {
        assert_eq!(identity(Path::new("/a")), identity(Path::new("/a")));
        assert_ne!(identity(Path::new("/a")), identity(Path::new("/b")));
    }
}
