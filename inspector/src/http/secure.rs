//! The secure port: TLS, open to other machines, for kube-apiserver and for users with a token.
//!
//! Whoever connects costs little until known, and no sender can take up all there is: what kube-apiserver forwards has
//! connections of its own, and so has what other inspectors forward.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::forward::{FORWARDED, Forwarding};
use super::listen::{ListenError, PatientStream};
use super::tickets::{Ticket, Tickets};
use super::{App, secure_router};
use crate::access::Access;
use crate::access::peer::Peer;
use crate::metrics::Metrics;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long the headers of a request may take, the pause before them included.
const HEADERS: Duration = Duration::from_secs(40);
/// Users may be in many groups, each of which has a header.
const HEADERS_MOST: usize = 1024;

/// Binds an address of the secure port; port 0 takes a free one.
pub async fn listen_secure(address: SocketAddr) -> Result<TcpListener, ListenError> {
    TcpListener::bind(address).await.map_err(|source| ListenError::Secure { address, source })
}

/// Who may connect: at once in all, and of one sender.
struct Limits {
    handshakes: Arc<Tickets>,
    forwarded: Arc<Tickets>,
    replicas: Arc<Tickets>,
    direct: Arc<Tickets>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshakes: Tickets::new(1024, 64),
            forwarded: Tickets::new(2048, 2048),
            // Idle ones are kept for a while.
            replicas: Tickets::new(4 * FORWARDED, 2 * FORWARDED),
            direct: Tickets::new(512, 128),
        }
    }
}

/// What every connection needs.
#[derive(Clone)]
struct Serving {
    acceptor: TlsAcceptor,
    router: Router,
    access: Arc<Access>,
    limits: Arc<Limits>,
    metrics: Arc<Metrics>,
    stopping: CancellationToken,
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
    let serving = Serving {
        acceptor: TlsAcceptor::from(Arc::new(tls)),
        stopping: app.stopping.clone(),
        metrics: Arc::clone(&app.metrics),
        router: secure_router(app, Arc::clone(&access), forwarding),
        access,
        limits: Arc::default(),
    };
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = serving.stopping.cancelled() => break,
        };
        match accepted {
            Ok((stream, address)) => {
                // Who has too many under way already is not answered at all.
                if let Some(ticket) = serving.limits.handshakes.take(address.ip()) {
                    connections.spawn(serving.clone().connection(stream, address, ticket));
                } else {
                    serving.metrics.connection_dropped("limit");
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
    async fn connection(self, stream: TcpStream, address: SocketAddr, handshake: Ticket) {
        let _ = stream.set_nodelay(true);
        let accepted = self.acceptor.accept(PatientStream::new(stream, None, Arc::clone(&self.metrics)));
        let stream = match tokio::time::timeout(HANDSHAKE, accepted).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                self.metrics.connection_dropped("handshake");
                return tracing::debug!(%error, %address, "a TLS handshake failed");
            }
            Err(_) => {
                self.metrics.connection_dropped("handshake");
                return tracing::debug!(%address, "a TLS handshake took too long");
            }
        };
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let certificates = certificates.iter().map(|one| one.clone().into_owned()).collect();
        let peer = Peer::new(address, certificates);
        let tickets = if self.access.front_proxy().is(&peer) {
            &self.limits.forwarded
        } else if self.access.replicas().is(&peer) {
            &self.limits.replicas
        } else {
            &self.limits.direct
        };
        let Some(_ticket) = tickets.take(address.ip()) else {
            self.metrics.connection_dropped("limit");
            return tracing::info!(%address, "closed a connection: its sender has too many");
        };
        drop(handshake);
        let router = self.router;
        let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(peer.clone());
            router.clone().oneshot(request.map(Body::new))
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS)
            .max_headers(HEADERS_MOST)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.stopping.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, %address, "a connection ended with an error");
        }
    }
}
