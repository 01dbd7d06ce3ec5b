//! Readers, each of which lists a namespace again and again and watches all jobs, and what they take from the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use futures::StreamExt as _;
use tokio::task::JoinSet;

use super::ask::Asker;
use crate::inspector::Inspector;

/// Running readers; ended on drop.
pub struct Readers {
    lists: Arc<AtomicUsize>,
    _all: JoinSet<Result<()>>,
}

impl Readers {
    /// So many, each of which reads a watch, and a list every such time.
    pub fn start(asker: &Asker, count: usize, namespace: impl Fn(usize) -> String, every: Duration) -> Self {
        let lists = Arc::new(AtomicUsize::new(0));
        let mut all = JoinSet::new();
        for index in 0..count {
            let (asker, lists, namespace) = (asker.clone(), Arc::clone(&lists), namespace(index));
            all.spawn(async move {
                let watch = asker.get("fluxionjobs?watch=true").await?;
                let read = async {
                    let mut chunks = watch.bytes_stream();
                    while chunks.next().await.is_some() {}
                    anyhow::Ok(())
                };
                let list = async {
                    loop {
                        asker.get(&format!("namespaces/{namespace}/fluxionjobs")).await?.bytes().await?;
                        lists.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(every).await;
                    }
                };
                tokio::select! {
                    ended = read => ended,
                    ended = list => ended,
                }
            });
        }
        Self { lists, _all: all }
    }

    /// Lists read so far.
    pub fn lists(&self) -> usize {
        self.lists.load(Ordering::Relaxed)
    }
}

/// What passes have taken so far.
#[derive(Clone, Copy, Debug)]
pub struct Passes {
    count: f64,
    seconds: f64,
    engine: Duration,
}

impl Passes {
    /// Of this inspector.
    pub async fn of(inspector: &Inspector) -> Result<Self> {
        Ok(Self {
            count: inspector.metric("fluxion_pass_seconds_count").await?,
            seconds: inspector.metric("fluxion_pass_seconds_sum").await?,
            engine: inspector.thread_time("engine")?,
        })
    }

    /// Their number since then, and of one of them the milliseconds, and the processor time of the engine's thread, what it
    /// does between passes included.
    pub fn since(self, before: Self) -> (f64, f64, f64) {
        let count = (self.count - before.count).max(1.0);
        let engine = self.engine.saturating_sub(before.engine).as_secs_f64();
        (self.count - before.count, (self.seconds - before.seconds) * 1e3 / count, engine * 1e3 / count)
    }
}
