//! Clients that hold connections: they say nothing, or one byte a second, and read nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// Few bytes are on their way to a client that reads nothing.
const RECEIVED: u32 = 4096;

/// What such clients do.
#[derive(Clone, Default)]
pub struct Manner {
    /// Whom they reach; plain without this.
    pub tls: Option<Arc<ClientConfig>>,
    /// What they say at first; nothing at all (no handshake either) without this.
    pub says: Option<String>,
    /// What follows, once a second; where that is nothing, whether the connection has been closed is not noticed.
    pub drips: &'static str,
}

/// Many of these; all connections are closed on drop.
pub struct SlowClients {
    opened: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl SlowClients {
    /// Opens `count` connections in all, one after each pause; who is thrown out does not come back.
    pub fn start(address: SocketAddr, manner: Manner, count: usize, pause: Duration) -> Self {
        let (opened, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (made, over) = (Arc::clone(&opened), Arc::clone(&ended));
        let task = tokio::spawn(async move {
            let mut clients = JoinSet::new();
            for _ in 0..count {
                let (manner, made, over) = (manner.clone(), Arc::clone(&made), Arc::clone(&over));
                clients.spawn(async move {
                    // However it ends: it was thrown out.
                    let _ = hold(address, &manner, &made).await;
                    over.fetch_add(1, Ordering::Relaxed);
                });
                while clients.try_join_next().is_some() {}
                tokio::time::sleep(pause).await;
            }
            while clients.join_next().await.is_some() {}
        });
        Self { opened, ended, task }
    }

    /// Connections opened so far.
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }

    /// Those of them that the server has closed.
    pub fn ended(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }
}

impl Drop for SlowClients {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn hold(address: SocketAddr, manner: &Manner, opened: &AtomicUsize) -> Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(RECEIVED)?;
    let stream = socket.connect(address).await?;
    opened.fetch_add(1, Ordering::Relaxed);
    let Some(says) = &manner.says else { return closed(&stream).await };
    match &manner.tls {
        None => drip(stream, says, manner.drips).await,
        Some(config) => {
            let name = ServerName::try_from("localhost")?;
            let stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await?;
            drip(stream, says, manner.drips).await
        }
    }
}

/// Waits until the server closes it.
async fn closed(stream: &TcpStream) -> Result<()> {
    stream.readable().await?;
    Ok(())
}

async fn drip(mut stream: impl AsyncRead + AsyncWrite + Unpin, says: &str, drips: &str) -> Result<()> {
    stream.write_all(says.as_bytes()).await?;
    stream.flush().await?;
    if drips.is_empty() {
        return std::future::pending().await;
    }
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stream.write_all(drips.as_bytes()).await?;
        stream.flush().await?;
    }
}
