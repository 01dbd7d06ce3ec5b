//! The API's listener: on loopback only, with a connection limit, closing connections of clients that stop reading.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use fluxion_api::server_file;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

use super::{App, router};
use crate::metrics::Metrics;

/// Maximum number of concurrent connections; others wait to be accepted.
const CONNECTIONS: usize = 1024;
/// A connection whose client has not read pending data for this long is closed.
const STALLED: Duration = Duration::from_secs(30);
/// A connection without traffic in either direction for this long is closed. It is longer than the longest request and
/// than the interval between bookmarks of a watch.
const QUIET: Duration = Duration::from_secs(45);

/// Why the listener could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("{0} is reachable from other machines: listen on 127.0.0.1 or [::1]")]
    NotLoopback(SocketAddr),
    #[error(
        "{address} is already in use{}: stop that process, or choose another address with --listen (port 0 picks a free port)",
        holder(address, *.pid)
    )]
    InUse { address: SocketAddr, pid: Option<u32> },
    #[error(
        "can't listen on {address}: {source}; choose another address with --listen (port 0 picks a free port)"
    )]
    Io { address: SocketAddr, source: io::Error },
    #[error("can't listen on {address}: {source}; choose another address with --secure-listen")]
    Secure { address: SocketAddr, source: io::Error },
}

/// The process using the address, or how to find it.
fn holder(address: &SocketAddr, pid: Option<u32>) -> String {
    pid.map_or_else(
        || format!(" by another process (see `ss -ltnp 'sport = :{}'`)", address.port()),
        |pid| format!(" by another inspector (process {pid})"),
    )
}

/// PID of the inspector that, according to the default state directory, listens there.
fn inspector_at(address: SocketAddr) -> Option<u32> {
    let found = server_file::read(&server_file::state_dir()?)?;
    (found.url == format!("http://{address}")).then_some(found.pid)
}

/// Binds a loopback address; port 0 picks a free port.
pub async fn listen(address: SocketAddr) -> Result<TcpListener, ListenError> {
    if !address.ip().is_loopback() {
        return Err(ListenError::NotLoopback(address));
    }
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse { address, pid: inspector_at(address) },
        _ => ListenError::Io { address, source },
    })
}

/// Serves until the app is stopped, then ends watches and waits for running requests.
pub async fn serve(listener: TcpListener, app: App) -> io::Result<()> {
    let stopping = app.stopping.clone();
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    let listener = LimitedListener {
        listener,
        free,
        patience: STALLED,
        quiet: QUIET,
        metrics: Arc::clone(&app.metrics),
    };
    let serving =
        axum::serve(listener, router(app.clone())).with_graceful_shutdown(stopping.cancelled_owned());
    tokio::select! {
        ended = serving.into_future() => ended,
        never = app.tidy() => match never {},
    }
}

struct LimitedListener {
    listener: TcpListener,
    free: Arc<Semaphore>,
    patience: Duration,
    quiet: Duration,
    metrics: Arc<Metrics>,
}

impl Listener for LimitedListener {
    type Io = PatientStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (PatientStream, SocketAddr) {
        // The semaphore is never closed; if it were, the connection would be served without being counted.
        let permit = if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            Some(permit)
        } else {
            tracing::warn!(CONNECTIONS, "connection limit reached: new connections have to wait");
            Arc::clone(&self.free).acquire_owned().await.ok()
        };
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (PatientStream::with(stream, permit, Arc::clone(&self.metrics), (self.patience, self.quiet)), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails if its client does not read pending data for too long, and ends if there is no traffic at
/// all.
///
/// Streams with a timeout per direction, such as those of tokio-io-timeout, would end watches: a watch client sends
/// nothing, and only successful writes show that it is alive.
pub(super) struct PatientStream {
    stream: TcpStream,
    /// Time since the last traffic.
    silence: Pin<Box<Sleep>>,
    quiet: Duration,
    /// Runs while there is data to write.
    stalled: Option<Pin<Box<Sleep>>>,
    patience: Duration,
    metrics: Arc<Metrics>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl PatientStream {
    /// One with the usual patience; `permit` is given back at its end.
    pub(super) fn new(
        stream: TcpStream,
        permit: Option<OwnedSemaphorePermit>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self::with(stream, permit, metrics, (STALLED, QUIET))
    }

    fn with(
        stream: TcpStream,
        permit: Option<OwnedSemaphorePermit>,
        metrics: Arc<Metrics>,
        (patience, quiet): (Duration, Duration),
    ) -> Self {
        let silence = Box::pin(sleep(quiet));
        Self { stream, stalled: None, patience, silence, quiet, metrics, _permit: permit }
    }

    fn spoken(&mut self) {
        let until = Instant::now() + self.quiet;
        self.silence.as_mut().reset(until);
    }

    fn watched<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            self.spoken();
            return written;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stalled.as_mut().poll(context));
        self.metrics.connection_dropped("stalled");
        tracing::info!("closed a connection whose client stopped reading");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for PatientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            self.spoken();
            return read;
        }
        ready!(self.silence.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for PatientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watched(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn other_machines_are_not_listened_to() {
        for bad in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            assert!(matches!(listen(bad.parse().unwrap()).await, Err(ListenError::NotLoopback(_))), "{bad}");
        }
        let listener = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let taken = listener.local_addr().unwrap();
        let told = listen(taken).await.unwrap_err().to_string();
        for part in [
            &format!("{taken} is already in use"),
            &format!("`ss -ltnp 'sport = :{}'`", taken.port()),
            "--listen",
        ] {
            assert!(told.contains(part), "{told}");
        }
        let told = ListenError::InUse { address: taken, pid: Some(7) }.to_string();
        assert!(told.contains("by another inspector (process 7): stop that process"), "{told}");
    }

    #[tokio::test]
    async fn who_stops_reading_is_dropped() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut patient = LimitedListener {
            listener,
            free: Arc::new(Semaphore::new(1)),
            patience: Duration::from_millis(50),
            quiet: Duration::from_millis(50),
            metrics: Arc::default(),
        };
        let _client = TcpStream::connect(address).await.unwrap();
        let (mut connection, _) = patient.accept().await;
        let chunk = vec![0_u8; 1 << 20];
        let error = loop {
            if let Err(error) = connection.write_all(&chunk).await {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // An idle connection must be closed as well.
        drop(connection);
        let _client = TcpStream::connect(address).await.unwrap();
        let (mut connection, _) = patient.accept().await;
        assert_eq!(connection.read(&mut [0]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
