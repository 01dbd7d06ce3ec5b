//! Connections to the leader.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{Request, Response, Uri, Version};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service;

use crate::tls::replica::{REPLICA, ReplicaTls};

/// Maximum time to connect.
const CONNECT: Duration = Duration::from_secs(3);
/// Idle connections are closed after this time; the leader closes them after 40 s.
const IDLE: Duration = Duration::from_secs(20);
/// Maximum number of idle connections.
const IDLE_MOST: usize = 32;
/// Connections being opened at once: the leader does not accept many from one sender.
const OPENING: usize = 32;

type LeaderClient = Client<Connector, Body>;

/// Connections to the current leader; those to an earlier one are closed when they are idle.
pub(super) struct Pool {
    tls: Arc<ReplicaTls>,
    current: Mutex<Option<(SocketAddr, u64, LeaderClient)>>,
}

impl Pool {
    pub(super) fn new(tls: Arc<ReplicaTls>) -> Self {
        Self { tls, current: Mutex::default() }
    }

    fn client(&self, leader: SocketAddr) -> Option<LeaderClient> {
        let (number, config) = self.tls.client()?;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((address, known, client)) = &*current
            && (*address, *known) == (leader, number)
        {
            return Some(client.clone());
        }
        let client = connecting(&config)?;
        *current = Some((leader, number, client.clone()));
        Some(client)
    }

    /// The leader's answer, or why there is none.
    pub(super) async fn send(
        &self,
        leader: SocketAddr,
        mut parts: Parts,
        body: Bytes,
    ) -> Result<Response<Incoming>, &'static str> {
        let client =
            self.client(leader).ok_or("the certificate for other inspectors has not been issued yet")?;
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let uri = Uri::builder().scheme("https").authority(leader.to_string()).path_and_query(path).build();
        parts.uri = uri.map_err(|_| "the leader can't be reached")?;
        parts.version = Version::HTTP_11;
        // What is attached to the request is about this server.
        parts.extensions.clear();
        client.request(Request::from_parts(parts, Body::from(body))).await.map_err(|error| {
            tracing::debug!(%error, %leader, "failed to forward a request to the leader");
            "the leader can't be reached"
        })
    }
}

fn connecting(config: &ClientConfig) -> Option<LeaderClient> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(CONNECT));
    tcp.set_nodelay(true);
    let name = ServerName::try_from(REPLICA).ok()?;
    let tls = HttpsConnectorBuilder::new()
        .with_tls_config(config.clone())
        .https_only()
        .with_server_name_resolver(FixedServerNameResolver::new(name))
        .enable_http1()
        .wrap_connector(tcp);
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_MOST)
        .build(Connector { tls, free: Arc::new(Semaphore::new(OPENING)) });
    Some(client)
}

/// Opens a limited number of connections at a time.
#[derive(Clone)]
struct Connector {
    tls: HttpsConnector<HttpConnector>,
    free: Arc<Semaphore>,
}

impl Service<Uri> for Connector {
    type Response = <HttpsConnector<HttpConnector> as Service<Uri>>::Response;
    type Error = <HttpsConnector<HttpConnector> as Service<Uri>>::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.tls.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, free) = (self.tls.call(uri), Arc::clone(&self.free));
        Box::pin(async move {
            // It is never closed.
            let _free = free.acquire().await;
            tokio::time::timeout(2 * CONNECT, connecting).await?
        })
    }
}

/// The body of an answer, which counts as being forwarded until its end.
pub(super) struct Answer {
    body: Incoming,
    _permit: OwnedSemaphorePermit,
}

impl Answer {
    pub(super) fn new(body: Incoming, permit: OwnedSemaphorePermit) -> Self {
        Self { body, _permit: permit }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
