//! A connection to kube-apiserver that can be blocked: it stays open, and nothing passes until it is opened again. What was
//! sent meanwhile passes then, as over a network that comes back.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::cluster::{Access, Cluster};

/// A proxy to kube-apiserver; ended on drop.
#[derive(Debug)]
pub struct Valve {
    address: SocketAddr,
    open: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Valve {
    /// An open one in front of the cluster's API server.
    pub async fn before(cluster: &Cluster) -> Result<Self> {
        let target = cluster.server().strip_prefix("https://").context("an https URL")?.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listening")?;
        let address = listener.local_addr()?;
        let (open, state) = watch::channel(true);
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (target, state) = (target.clone(), state.clone());
                tokio::spawn(async move {
                    // Who breaks off notices it by itself.
                    let _ = pass(near, &target, state).await;
                });
            }
        });
        Ok(Self { address, open, task })
    }

    /// The same rights by way of this.
    pub fn access(&self, cluster: &Cluster, access: &Access, name: &str) -> Result<Access> {
        let text = std::fs::read_to_string(&access.kubeconfig)
            .with_context(|| format!("reading {}", access.kubeconfig.display()))?;
        let path: PathBuf = cluster.dir().join(format!("{name}.kubeconfig"));
        let text = text.replace(cluster.server(), &format!("https://{}", self.address));
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        Ok(Access { kubeconfig: path, token: access.token.clone() })
    }

    /// Blocks it, or opens it again.
    pub fn block(&self, blocked: bool) {
        self.open.send_replace(!blocked);
    }
}

impl Drop for Valve {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(near: TcpStream, target: &str, mut state: watch::Receiver<bool>) -> Result<()> {
    state.wait_for(|open| *open).await?;
    let far = TcpStream::connect(target).await?;
    let (near, far) = (near.into_split(), far.into_split());
    let there = carry(near.0, far.1, state.clone());
    let back = carry(far.0, near.1, state);
    tokio::try_join!(there, back)?;
    Ok(())
}

/// Carries bytes, and the end, while it is open.
async fn carry(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut state: watch::Receiver<bool>,
) -> Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        state.wait_for(|open| *open).await?;
        if read == 0 {
            to.shutdown().await?;
            return Ok(());
        }
        to.write_all(&buffer[..read]).await?;
    }
}
