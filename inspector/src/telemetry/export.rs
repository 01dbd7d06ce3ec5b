//! Sends ended spans to a collector: OTLP over HTTP, encoded as JSON.
//!
//! The queue is bounded: what a dead or slow collector does not take is dropped and counted.

use std::time::{Duration, SystemTime};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::settings::Settings;
use super::{Span, Tracer};
use crate::logs::Repeated;
use crate::metrics::{Metrics, Outcome};

/// Maximum number of spans that wait to be sent.
const WAITING_MAX: usize = 4096;
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

/// Number of spans by outcome: `sent`, `dropped`, `failed`.
#[derive(Clone, Debug, Default)]
pub struct ExporterStats(Family<Outcome, Counter>);

impl ExporterStats {
    /// Number of spans with an outcome.
    pub fn of(&self, outcome: &'static str) -> u64 {
        self.0.get_or_create(&Outcome { outcome }).get()
    }

    fn add(&self, outcome: &'static str, spans: usize) {
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
    pub(super) fn push(&self, span: Value) {
        if self.spans.try_send(span).is_err() {
            self.stats.add("dropped", 1);
        }
    }
}

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
    pub fn start(settings: Settings, metrics: &Metrics) -> Result<(Self, Tracer), reqwest::Error> {
        let client = reqwest::Client::builder()
            .timeout(settings.timeout)
            .connect_timeout(settings.timeout)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let (spans, ended) = mpsc::channel(WAITING_MAX);
        let (stop, stopped) = mpsc::channel(1);
        let stats = ExporterStats::default();
        let help = "Spans for the OpenTelemetry collector, by outcome (sent, dropped, failed)";
        metrics.register(|catalog| catalog.register("otlp_spans", help, stats.0.clone()));
        let tracer = Tracer::new(settings.sampler, Queue { spans, stats: stats.clone() });
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
    settings: Settings,
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
                    tracing::info!("the OpenTelemetry collector takes traces again");
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
                    let why = format!("it answered {status}");
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

/// A span in OTLP's JSON: IDs are hexadecimal, 64-bit numbers are texts.
pub(super) fn encode(span: &mut Span, ended: SystemTime) -> Value {
    let attributes = std::mem::take(&mut span.attributes).into_iter();
    let attributes: Vec<Value> =
        attributes.map(|(key, value)| json!({ "key": key, "value": value })).collect();
    let mut encoded = json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.context.span),
        "flags": 1,
        "name": std::mem::take(&mut span.name),
        "kind": span.kind as u8,
        "startTimeUnixNano": nanos(span.began),
        "endTimeUnixNano": nanos(ended.max(span.began)),
        "attributes": attributes,
    });
    if let Some(parent) = span.parent {
        encoded["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    if let Some(message) = span.error.take() {
        encoded["status"] = json!({ "code": 2, "message": message });
    }
    encoded
}

fn nanos(time: SystemTime) -> String {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}
