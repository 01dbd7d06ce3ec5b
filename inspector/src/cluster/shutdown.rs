//! The end of an inspector in a cluster: what has been begun is finished, in order.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use fluxion_scheduler::event::Event;
use tokio::sync::watch as signal;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::engine::EngineHandle;
use crate::health::{Health, Leadership, Term};
use crate::history::Recorder;
use crate::kube::lease::Lease;
use crate::kube::writer::Writer;
use crate::logs::kube_error;
use crate::supervise::Tasks;

/// Maximum time for releasing the Lease on shutdown, and for ending the engine and the history.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time for requests to finish on shutdown. With the writes (8 s, [`Writer::stop`]) and up to 2 s for each group
/// of tasks, a shutdown takes less than 25 s.
const REQUESTS_TIMEOUT: Duration = Duration::from_secs(5);

/// Everything that runs.
pub(super) struct Components {
    pub engine: EngineHandle,
    pub health: Arc<Health>,
    pub lease: Lease,
    /// Acquires and renews the Lease.
    pub election: Tasks,
    /// Decides whether we may schedule, and grants the right to write.
    pub decisions: Tasks,
    pub grant: signal::Sender<Option<Term>>,
    pub writer: Writer,
    /// What keeps certificates and trust current.
    pub upkeep: Tasks,
    /// Ends the HTTP APIs.
    pub stopping: CancellationToken,
    pub securely: Option<JoinHandle<()>>,
    pub serving: JoinHandle<io::Result<()>>,
    pub recorder: Recorder,
}

impl Components {
    /// Ends all of it.
    pub(super) async fn shut_down(mut self) {
        // From here on, nothing new is started; current work is completed, while the Lease is still renewed, before another
        // inspector may lead.
        self.decisions.shutdown().await;
        self.engine.send(Event::Paused);
        tokio::select! {
            () = self.writer.stop() => {}
            () = prolong(&self.grant, &self.health) => {}
        }
        self.election.shutdown().await;
        self.health.set_leadership(Leadership::default());
        give_back(&self.lease).await;
        self.stopping.cancel();
        self.upkeep.shutdown().await;
        let securely = async {
            if let Some(securely) = self.securely {
                let _ = securely.await;
            }
        };
        let serving = async {
            if self.serving.is_finished() {
                return;
            }
            match self.serving.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the HTTP API stopped with an error"),
                Err(error) => tracing::warn!(%error, "the HTTP API stopped with an error"),
            }
        };
        if tokio::time::timeout(REQUESTS_TIMEOUT, futures::future::join(securely, serving)).await.is_err() {
            tracing::warn!("shutting down before all requests were answered");
        }
        self.engine.stop();
        // It uses the runtime, which ends next; if it hangs, it is not waited for.
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.engine.ended()).await;
        // The end of the engine closes the channel; a slow disk is not waited for.
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.recorder.finish()).await;
    }
}

async fn give_back(lease: &Lease) {
    match tokio::time::timeout(SHUTDOWN_TIMEOUT, lease.release()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            let error = kube_error(&error);
            tracing::warn!(
                error,
                "failed to release the Lease: another inspector has to wait until it expires"
            );
        }
        Err(_) => tracing::warn!("failed to release the Lease: the API server does not respond"),
    }
}

/// Prolongs the right to write with each renewal of the Lease, and never grants it anew.
pub(super) async fn prolong(grant: &signal::Sender<Option<Term>>, health: &Health) {
    let mut leadership = health.follow_leadership();
    loop {
        let term = health.leadership().and_then(|leadership| leadership.term());
        grant.send_if_modified(|granted| {
            let renewed = granted.and_then(|granted| term.filter(|term| term.number == granted.number));
            std::mem::replace(granted, renewed) != renewed
        });
        if leadership.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}
