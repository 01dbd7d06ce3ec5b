//! Questions to an inspector, and how long their answers take.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures::StreamExt as _;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Spread;
use crate::inspector::Inspector;

const BASE: &str = "/apis/fluxion.flux-framework.org/v1alpha1";
/// The longest that an event may take to reach a watch.
const PATIENCE: Duration = Duration::from_mins(1);

/// Somebody with the administrator's token.
#[derive(Clone)]
pub struct Asker {
    http: reqwest::Client,
    url: String,
    token: String,
}

impl Asker {
    /// Of this inspector, on loopback.
    pub fn of(inspector: &Inspector) -> Self {
        Self::at(reqwest::Client::new(), inspector.url(), inspector.token())
    }

    /// By way of another server, or of another port.
    pub fn at(http: reqwest::Client, url: &str, token: &str) -> Self {
        Self { http, url: url.to_owned(), token: token.to_owned() }
    }

    /// The answer to a path of the API's version, once it has begun.
    pub async fn get(&self, path: &str) -> Result<reqwest::Response> {
        let asked = self.http.get(format!("{}{BASE}/{path}", self.url)).bearer_auth(&self.token);
        Ok(asked.send().await?.error_for_status()?)
    }

    /// How long whole answers take, the first one left out: it is put together for the others. Their size in bytes.
    pub async fn times(&self, path: &str, times: usize) -> Result<(Spread, usize)> {
        let mut size = self.get(path).await?.bytes().await?.len();
        let mut took = Vec::new();
        for _ in 0..times {
            let began = Instant::now();
            size = self.get(path).await?.bytes().await?.len();
            took.push(began.elapsed());
        }
        Ok((Spread::of(took), size))
    }

    /// Watches all jobs from now on.
    pub async fn watch(&self) -> Result<Lines> {
        let list: Value = serde_json::from_slice(&self.get("fluxionjobs?limit=1").await?.bytes().await?)?;
        let version = list["metadata"]["resourceVersion"].as_str().context("a list has a version")?;
        let answer = self.get(&format!("fluxionjobs?watch=true&resourceVersion={version}")).await?;
        Ok(Lines {
            answer: answer.bytes_stream().map(|chunk| chunk.map(Into::into)).boxed(),
            rest: Vec::new(),
        })
    }
}

/// The events of a watch, as bytes.
pub struct Lines {
    answer: futures::stream::BoxStream<'static, reqwest::Result<Vec<u8>>>,
    rest: Vec<u8>,
}

impl Lines {
    /// Waits for the next event that contains this text.
    pub async fn find(&mut self, text: &str) -> Result<()> {
        loop {
            while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                if line.windows(text.len()).any(|part| part == text.as_bytes()) {
                    return Ok(());
                }
            }
            match self.answer.next().await {
                Some(chunk) => self.rest.extend_from_slice(&chunk?),
                None => bail!("the watch ended"),
            }
        }
    }
}

/// How long it takes from the answer to `change`, which makes a job appear, until this many watches have told of it.
pub struct Watchers {
    clients: JoinSet<Result<()>>,
    told: mpsc::Receiver<Instant>,
    next: tokio::sync::broadcast::Sender<String>,
    count: usize,
}

impl Watchers {
    /// Opens the watches, each over a connection of its own.
    pub async fn open(asker: &Asker, count: usize) -> Result<Self> {
        let (tell, told) = mpsc::channel(count);
        let (next, _) = tokio::sync::broadcast::channel::<String>(64);
        let mut clients = JoinSet::new();
        for _ in 0..count {
            let mut lines = asker.watch().await?;
            let (mut wanted, tell) = (next.subscribe(), tell.clone());
            clients.spawn(async move {
                while let Ok(text) = wanted.recv().await {
                    lines.find(&text).await?;
                    tell.send(Instant::now()).await?;
                }
                Ok(())
            });
        }
        Ok(Self { clients, told, next, count })
    }

    /// Makes one change, and waits until all have told of the job with this name.
    pub async fn time(
        &mut self,
        job: &str,
        change: impl Future<Output = Result<()>>,
    ) -> Result<Vec<Duration>> {
        self.next.send(job.to_owned())?;
        change.await?;
        let changed = Instant::now();
        let mut took = Vec::new();
        for _ in 0..self.count {
            let told = tokio::time::timeout(PATIENCE, self.told.recv()).await;
            let told = told.with_context(|| format!("{} of {} watches have told", took.len(), self.count))?;
            took.push(told.context("all watches have ended")?.saturating_duration_since(changed));
        }
        ensure!(self.clients.try_join_next().is_none(), "a watch has ended");
        Ok(took)
    }
}
