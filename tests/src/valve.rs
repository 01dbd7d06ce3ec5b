//! A connection to kube-apiserver that can be blocked: it stays open, and nothing passes until it is opened again. What was
//! sent meanwhile passes then, as over a network that comes back, also where the client has given up since.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::cluster::{Access, Cluster};

/// What has waited passes so long before what follows it, such as the end of the connection: kube-apiserver breaks off what it
/// is doing for a client that has gone.
const AHEAD: Duration = Duration::from_secs(1);

/// What passes in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Everything,
    Nothing,
    /// Everything but what was held before, and what follows it on its connection.
    Onward,
}

/// A proxy to kube-apiserver; ended on drop.
#[derive(Debug)]
pub struct Valve {
    address: SocketAddr,
    /// Of what the client sends, and of what kube-apiserver sends.
    there: watch::Sender<Flow>,
    back: watch::Sender<Flow>,
    held: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Valve {
    /// An open one in front of the cluster's API server.
    pub async fn before(cluster: &Cluster) -> Result<Self> {
        let target = cluster.server().strip_prefix("https://").context("an https URL")?.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listening")?;
        let address = listener.local_addr()?;
        let ((there, to), (back, fro)) = (watch::channel(Flow::Everything), watch::channel(Flow::Everything));
        let held = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&held);
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (target, to, fro, held) = (target.clone(), to.clone(), fro.clone(), Arc::clone(&counter));
                tokio::spawn(async move {
                    // Who breaks off notices it by itself.
                    let _ = pass(near, &target, to, fro, &held).await;
                });
            }
        });
        Ok(Self { address, there, back, held, task })
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
        self.hold(blocked);
        self.back.send_replace(if blocked { Flow::Nothing } else { Flow::Everything });
    }

    /// Blocks only what the client sends, or lets it pass again: the client still hears of everything.
    pub fn hold(&self, held: bool) {
        if held {
            self.held.store(0, Ordering::Relaxed);
        }
        self.there.send_replace(if held { Flow::Nothing } else { Flow::Everything });
    }

    /// Lets other connections pass again, and holds up further what has been held so far, until [`Self::hold`] ends.
    pub fn hold_only_these(&self) {
        self.there.send_replace(Flow::Onward);
    }

    /// On how many connections something of the client has been waiting since it was last blocked.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

impl Drop for Valve {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(
    near: TcpStream,
    target: &str,
    mut to: watch::Receiver<Flow>,
    fro: watch::Receiver<Flow>,
    held: &AtomicUsize,
) -> Result<()> {
    to.wait_for(|flow| *flow != Flow::Nothing).await?;
    let far = TcpStream::connect(target).await?;
    let (near, far) = (near.into_split(), far.into_split());
    let there = carry(near.0, far.1, to, Some(held));
    let back = carry(far.0, near.1, fro, None);
    tokio::try_join!(there, back)?;
    Ok(())
}

/// Carries bytes, and the end, while it is open.
async fn carry(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut state: watch::Receiver<Flow>,
    held: Option<&AtomicUsize>,
) -> Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        // A connection that breaks off ends.
        let read = from.read(&mut buffer).await.unwrap_or(0);
        let waits = *state.borrow() == Flow::Nothing;
        if let Some(held) = held.filter(|_| read > 0 && waits) {
            held.fetch_add(1, Ordering::Relaxed);
        }
        if waits {
            state.wait_for(|flow| *flow == Flow::Everything).await?;
        }
        if read == 0 {
            to.shutdown().await?;
            return Ok(());
        }
        to.write_all(&buffer[..read]).await?;
        if waits {
            tokio::time::sleep(AHEAD).await;
        }
    }
}
