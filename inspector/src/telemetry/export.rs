//! Sends ended spans to a collector: OTLP over HTTP, encoded as JSON.
//!
//! The queue is bounded: what a dead or slow collector does not take is dropped and counted.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::queue::{ExporterStats, Queue};
use super::settings::TraceSettings;
use super::span::Tracer;
use crate::logs::Repeated;
use crate::metrics::Metrics;

/// Maximum number of spans in one request.
const BATCH_MAX: usize = 512;
/// How long an incomplete batch waits for more.
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// Attempts to send a batch, if the collector says that another one makes sense.
const ATTEMPTS: u32 = 3;
/// Maximum pause between them, whatever the collector says.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Maximum time to send what is left at the end.
const LAST: Duration = Duration::from_secs(2);

/// The running exporter.
#[derive(Debug)]
pub struct Exporter {
    /// What became of the spans.
    pub stats: ExporterStats,
    stop: mpsc::Sender<()>,
    task: JoinHandle<()>,
}

impl Exporter {
    /// Starts to export the spans of the returned tracer.
    pub fn start(settings: TraceSettings, metrics: &Metrics) -> Result<(Self, Tracer), reqwest::Error> {
        let client = reqwest::Client::builder()
            .timeout(settings.timeout)
            .connect_timeout(settings.timeout)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let (stop, stopped) = mpsc::channel(1);
        let stats = ExporterStats::on(metrics.otlp_spans.clone());
        let (queue, ended) = Queue::new(stats.clone());
        let tracer = Tracer::new(settings.sampler, queue);
        let sender = Sender {
            settings,
            client,
            stats: stats.clone(),
            complaints: Repeated::new(Duration::from_mins(5)),
        };
        let task = tokio::spawn(sender.run(ended, stopped));
        Ok((Self { stats, stop, task }, tracer))
    }

    /// Sends what is left, which takes at most 2 s.
    pub async fn finish(self) {
        drop(self.stop);
        let _ = tokio::time::timeout(LAST, self.task).await;
    }
}

struct Sender {
    settings: TraceSettings,
    client: reqwest::Client,
    stats: ExporterStats,
    complaints: Repeated,
}

impl Sender {
    async fn run(self, mut ended: mpsc::Receiver<Value>, mut stopped: mpsc::Receiver<()>) {
        let mut stopping = false;
        while !stopping {
            let mut batch = Vec::new();
            let mut due: Option<Instant> = None;
            while batch.len() < BATCH_MAX {
                tokio::select! {
                    biased;
                    _ = stopped.recv(), if !stopping => stopping = true,
                    span = ended.recv(), if !stopping => match span {
                        Some(span) => {
                            batch.push(span);
                            due.get_or_insert_with(|| Instant::now() + BATCH_WAIT);
                        }
                        None => stopping = true,
                    },
                    () = until(due), if !stopping => break,
                    else => break,
                }
            }
            self.send(batch).await;
        }
        let mut rest = Vec::new();
        while let Ok(span) = ended.try_recv() {
            rest.push(span);
            if rest.len() == BATCH_MAX {
                self.send(std::mem::take(&mut rest)).await;
            }
        }
        self.send(rest).await;
    }

    async fn send(&self, spans: Vec<Value>) {
        if spans.is_empty() {
            return;
        }
        let count = spans.len();
        match self.post(self.document(spans).to_string().into()).await {
            Ok(()) => {
                if self.complaints.over() {
                    tracing::info!("the OpenTelemetry collector accepts traces again");
                }
                self.stats.add("sent", count);
            }
            Err(why) => {
                self.stats.add("failed", count);
                if let Some(left_out) = self.complaints.now(&why) {
                    tracing::warn!(left_out, "traces can't be sent to the OpenTelemetry collector: {why}");
                }
            }
        }
    }

    /// Statuses and pauses are those of the OTLP specification ("Failures").
    async fn post(&self, body: bytes::Bytes) -> Result<(), String> {
        let mut pause = Duration::from_millis(500);
        for attempt in 1.. {
            let request = self.client.post(self.settings.url.clone()).headers(self.settings.headers.clone());
            let request = request.header("content-type", "application/json").body(body.clone());
            let (why, retry_after) = match request.send().await {
                Ok(response) if response.status().is_success() => return Ok(()),
                Ok(response) => {
                    let status = response.status();
                    let may_retry = [
                        StatusCode::TOO_MANY_REQUESTS,
                        StatusCode::BAD_GATEWAY,
                        StatusCode::SERVICE_UNAVAILABLE,
                        StatusCode::GATEWAY_TIMEOUT,
                    ];
                    let why = format!("it responded with {status}");
                    if !may_retry.contains(&status) {
                        return Err(why);
                    }
                    let after = response.headers().get("retry-after");
                    (why, after.and_then(|after| after.to_str().ok()?.parse().ok()).map(Duration::from_secs))
                }
                // The URL may contain credentials.
                Err(error) => (chain(&error.without_url()), None),
            };
            if attempt >= ATTEMPTS {
                return Err(why);
            }
            tokio::time::sleep(retry_after.unwrap_or(pause).min(PAUSE_MAX)).await;
            pause *= 2;
        }
        Ok(())
    }

    fn document(&self, spans: Vec<Value>) -> Value {
        let attribute =
            |(key, value): &(String, String)| json!({ "key": key, "value": { "stringValue": value } });
        let resource: Vec<Value> = self.settings.resource.iter().map(attribute).collect();
        let scope = json!({ "name": "fluxion-inspector", "version": env!("CARGO_PKG_VERSION") });
        json!({
            "resourceSpans": [{
                "resource": { "attributes": resource },
                "scopeSpans": [{ "scope": scope, "spans": spans }],
            }],
        })
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// The error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
