//! A Service with several endpoints, as kube-proxy makes one: each TCP connection goes to the next of them that accepts it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A running balancer; ended on drop.
#[derive(Debug)]
pub struct Balancer {
    port: u16,
    next: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Balancer {
    /// Starts one on a free port of this machine.
    pub async fn start(endpoints: Vec<SocketAddr>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listening")?;
        let port = listener.local_addr()?.port();
        let next = Arc::new(AtomicUsize::new(0));
        let turn = Arc::clone(&next);
        let task = tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (endpoints, first) = (endpoints.clone(), turn.fetch_add(1, Ordering::Relaxed));
                tokio::spawn(async move {
                    for offset in 0..endpoints.len() {
                        let endpoint = endpoints[(first + offset) % endpoints.len()];
                        if let Ok(mut far) = TcpStream::connect(endpoint).await {
                            // Who breaks off notices it by itself.
                            let _ = copy_bidirectional(&mut near, &mut far).await;
                            return;
                        }
                    }
                });
            }
        });
        Ok(Self { port, next, task })
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        self.next.load(Ordering::Relaxed)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
