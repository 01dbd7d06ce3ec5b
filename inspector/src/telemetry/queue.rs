//! The queue between ended spans and the exporter.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::metrics::Outcome;

/// Maximum number of spans that wait to be sent.
const WAITING_MAX: usize = 4096;

/// Number of spans by outcome: `sent`, `dropped`, `failed`.
#[derive(Clone, Debug, Default)]
pub struct ExporterStats(Family<Outcome, Counter>);

impl ExporterStats {
    /// On these counters.
    pub(super) fn on(counters: Family<Outcome, Counter>) -> Self {
        Self(counters)
    }

    /// Number of spans with an outcome.
    pub fn of(&self, outcome: &'static str) -> u64 {
        self.0.get_or_create(&Outcome { outcome }).get()
    }

    pub(super) fn add(&self, outcome: &'static str, spans: usize) {
        self.0.get_or_create(&Outcome { outcome }).inc_by(spans as u64);
    }
}

/// Where ended spans wait.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    spans: mpsc::Sender<Value>,
    stats: ExporterStats,
}

impl Queue {
    /// A queue, and its other end.
    pub(super) fn new(stats: ExporterStats) -> (Self, mpsc::Receiver<Value>) {
        let (spans, ended) = mpsc::channel(WAITING_MAX);
        (Self { spans, stats }, ended)
    }

    pub(super) fn push(&self, span: Value) {
        if self.spans.try_send(span).is_err() {
            self.stats.add("dropped", 1);
        }
    }
}
