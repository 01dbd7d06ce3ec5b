//! One connection, over which requests come: read by HTTP/1.1 within limits, until it ends or has to make way.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Extensions, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::tickets::Ticket;
use crate::metrics::Metrics;

/// How long the headers of a request may take, the pause before them included.
const HEADERS: Duration = Duration::from_secs(40);
/// Users may be in many groups, each of which has a header.
const HEADERS_MOST: usize = 1024;
/// Bytes that are kept of one connection: the headers of a request, and what has not been sent of a response.
const BUFFER: usize = 128 * 1024;

/// A connection that counts; its holder is its sender.
pub(super) type ConnectionTicket = Ticket<IpAddr>;

/// By what a connection is known to the requests that come over it.
#[derive(Clone, Debug)]
struct Way(Arc<ConnectionTicket>);

/// Notes that the sender of this request has a right to something: its connection makes way for no other.
pub(super) fn prove<B>(request: &Request<B>) {
    if let Some(Way(ticket)) = request.extensions().get() {
        ticket.prove();
    }
}

/// What serves all connections of a listener.
#[derive(Clone)]
pub(super) struct Answering {
    pub router: Router,
    pub metrics: Arc<Metrics>,
    /// Lets running requests finish, and no others come.
    pub stopping: CancellationToken,
}

impl Answering {
    /// Answers the requests that come over this stream; `attach` adds what else they are to know about it.
    pub(super) async fn serve<S>(
        self,
        stream: S,
        ticket: ConnectionTicket,
        attach: impl Fn(&mut Extensions) + Send,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let ticket = Arc::new(ticket);
        let way = Way(Arc::clone(&ticket));
        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            attach(request.extensions_mut());
            request.extensions_mut().insert(way.clone());
            self.router.clone().oneshot(request.map(Body::new))
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS)
            .max_headers(HEADERS_MOST)
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = ticket.ended() => return self.metrics.connection_dropped("limit"),
            () = self.stopping.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended with an error");
        }
    }
}
