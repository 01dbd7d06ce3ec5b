//! The secure port: TLS, open to other machines, for kube-apiserver and for users with a token.
//!
//! Whoever connects costs little until known, and no sender can take up all there is: what kube-apiserver forwards has
//! connections of its own, and so has what other inspectors forward. Where there are too many, who has not proved a right to
//! anything makes way for the next.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

use super::connection::{Answering, ConnectionTicket};
use super::forward::{FORWARDED, Forwarding};
use super::listen::ListenError;
use super::tickets::Tickets;
use super::timeout_stream::TimeoutStream;
use super::{App, secure_router};
use crate::access::Access;
use crate::access::peer::{Peer, sender};
use crate::open_files;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Binds an address of the secure port; port 0 takes a free one.
pub async fn listen_secure(address: SocketAddr) -> Result<TcpListener, ListenError> {
    TcpListener::bind(address).await.map_err(|source| ListenError::Secure { address, source })
}

/// Who may connect: at once in all, and of one sender.
struct Limits {
    handshakes: Arc<Tickets<IpAddr>>,
    forwarded: Arc<Tickets<IpAddr>>,
    replicas: Arc<Tickets<IpAddr>>,
    direct: Arc<Tickets<IpAddr>>,
}

impl Default for Limits {
    fn default() -> Self {
        let tickets = |most, of_one| Tickets::new(open_files::share(most), open_files::share(of_one));
        Self {
            handshakes: tickets(1024, 64),
            forwarded: tickets(4096, 4096),
            // Idle ones are kept for a while.
            replicas: tickets(4 * FORWARDED, 2 * FORWARDED),
            direct: tickets(512, 128),
        }
    }
}

/// What every connection needs.
#[derive(Clone)]
struct Serving {
    acceptor: TlsAcceptor,
    answering: Answering,
    access: Arc<Access>,
    limits: Arc<Limits>,
}

/// Serves until the app is told to stop, then lets running requests finish. With `forwarding`, the leader answers requests
/// for data.
pub async fn serve_secure(
    listener: TcpListener,
    tls: ServerConfig,
    app: App,
    access: Arc<Access>,
    forwarding: Option<Arc<Forwarding>>,
) {
    let (stopping, metrics) = (app.stopping.clone(), Arc::clone(&app.metrics));
    let router = secure_router(app, Arc::clone(&access), forwarding);
    let serving = Serving {
        acceptor: TlsAcceptor::from(Arc::new(tls)),
        answering: Answering { router, metrics, stopping },
        access,
        limits: Arc::default(),
    };
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = serving.answering.stopping.cancelled() => break,
        };
        match accepted {
            Ok((stream, address)) => {
                // Of one sender, who has waited longest makes way; there is no one who has proved anything.
                if let Some(ticket) = serving.limits.handshakes.take(sender(address.ip())) {
                    connections.spawn(serving.clone().connection(stream, address, ticket));
                } else {
                    serving.answering.metrics.connection_dropped("limit");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
}

impl Serving {
    async fn connection(self, stream: TcpStream, address: SocketAddr, handshake: ConnectionTicket) {
        let metrics = &self.answering.metrics;
        let _ = stream.set_nodelay(true);
        let accepted = self.acceptor.accept(TimeoutStream::new(stream, Arc::clone(metrics)));
        let accepted = tokio::select! {
            accepted = tokio::time::timeout(HANDSHAKE, accepted) => accepted,
            () = handshake.ended() => return metrics.connection_dropped("limit"),
        };
        let stream = match accepted {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                metrics.connection_dropped("handshake");
                return tracing::debug!(%error, %address, "a TLS handshake failed");
            }
            Err(_) => {
                metrics.connection_dropped("handshake");
                return tracing::debug!(%address, "a TLS handshake took too long");
            }
        };
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let certificates = certificates.iter().map(|one| one.clone().into_owned()).collect();
        let peer = Peer::new(address, certificates);
        let (tickets, known) = if self.access.front_proxy().is(&peer) {
            (&self.limits.forwarded, true)
        } else if self.access.replicas().is(&peer) {
            (&self.limits.replicas, true)
        } else {
            (&self.limits.direct, false)
        };
        let Some(ticket) = tickets.take(sender(address.ip())) else {
            metrics.connection_dropped("limit");
            return tracing::info!(%address, "closed a connection: too many connections from this address");
        };
        if known {
            ticket.prove();
        }
        drop(handshake);
        self.answering
            .serve(stream, ticket, move |extensions| {
                extensions.insert(peer.clone());
            })
            .await;
    }
}
