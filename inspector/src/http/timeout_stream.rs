//! A connection that fails if its client does not read pending data for too long, and ends if there is no traffic at all.
//!
//! Streams with a timeout per direction, such as those of tokio-io-timeout, would end watches: a watch client sends
//! nothing, and only successful writes show that it is alive.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use crate::metrics::Metrics;

/// A connection whose client has not read pending data for this long is closed.
const STALLED: Duration = Duration::from_secs(30);
/// A connection without traffic in either direction for this long is closed. It is longer than the longest request and
/// than the interval between bookmarks of a watch.
const QUIET: Duration = Duration::from_secs(45);

/// Such a connection.
pub(super) struct TimeoutStream {
    stream: TcpStream,
    /// Time since the last traffic.
    silence: Pin<Box<Sleep>>,
    quiet: Duration,
    /// Runs while there is data to write.
    stalled: Option<Pin<Box<Sleep>>>,
    patience: Duration,
    metrics: Arc<Metrics>,
}

impl TimeoutStream {
    /// One with the usual patience.
    pub(super) fn new(stream: TcpStream, metrics: Arc<Metrics>) -> Self {
        Self::with(stream, metrics, (STALLED, QUIET))
    }

    fn with(stream: TcpStream, metrics: Arc<Metrics>, (patience, quiet): (Duration, Duration)) -> Self {
        let silence = Box::pin(sleep(quiet));
        Self { stream, stalled: None, patience, silence, quiet, metrics }
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

impl AsyncRead for TimeoutStream {
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

impl AsyncWrite for TimeoutStream {
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn who_stops_reading_is_dropped_and_who_is_silent_too() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let blink = Duration::from_millis(50);
        let connect = |stream| TimeoutStream::with(stream, Arc::default(), (blink, blink));
        let _client = TcpStream::connect(address).await.unwrap();
        let mut connection = connect(listener.accept().await.unwrap().0);
        let chunk = vec![0_u8; 1 << 20];
        let error = loop {
            if let Err(error) = connection.write_all(&chunk).await {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let _client = TcpStream::connect(address).await.unwrap();
        let mut connection = connect(listener.accept().await.unwrap().0);
        assert_eq!(connection.read(&mut [0]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
