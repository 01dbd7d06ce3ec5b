//! Traces: what was done, when, and because of what, sent to an OpenTelemetry collector.
//!
//! A [`Tracer`] hands out spans; without an endpoint it hands out none, and costs nothing. Ended spans wait in a bounded
//! queue (`export.rs`), so nothing that is traced ever waits for the collector.

use std::sync::Arc;
use std::time::SystemTime;

use fluxion_scheduler::model::SharedStr;
use serde_json::{Value, json};

use crate::metrics::Metrics;

mod context;
mod export;
mod settings;
mod starts;

pub use context::SpanContext;
pub use export::{Exporter, ExporterStats};
pub use settings::{InvalidSettings, Settings};

use context::Ids;
use export::Queue;
use settings::Sampler;
use starts::Starts;

/// Longer attribute values are cut off (bytes).
const VALUE_MAX: usize = 512;

/// What a span describes, as in OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// Starts spans; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Tracer(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    ids: Ids,
    sampler: Sampler,
    queue: Queue,
    starts: Starts,
}

/// Starts to export spans to the collector of the flag or of OpenTelemetry's variables, if there is one.
///
/// # Errors
/// The flag or a variable is invalid.
pub fn start(flag: Option<&str>, metrics: &Metrics) -> Result<(Option<Exporter>, Tracer), StartError> {
    let Some(settings) = Settings::read(flag, |name| std::env::var(name).ok())? else {
        return Ok((None, Tracer::default()));
    };
    let (exporter, tracer) = Exporter::start(settings, metrics)?;
    Ok((Some(exporter), tracer))
}

/// Sends what is left, which takes at most 2 s.
pub async fn finish(exporter: Option<Exporter>) {
    if let Some(exporter) = exporter {
        exporter.finish().await;
    }
}

/// Why traces can't be exported.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    #[error("the client for the OpenTelemetry collector: {0}")]
    Client(#[from] reqwest::Error),
}

impl Tracer {
    fn new(sampler: Sampler, queue: Queue) -> Self {
        Self(Some(Arc::new(Inner { ids: Ids::new(), sampler, queue, starts: Starts::default() })))
    }

    /// Starts a span, if it is to be recorded: below its parent, or as the first one of a trace.
    pub fn start(
        &self,
        name: impl Into<String>,
        kind: SpanKind,
        parent: Option<SpanContext>,
    ) -> Option<Span> {
        self.start_at(SystemTime::now(), name, kind, parent)
    }

    /// The same for something that began earlier.
    pub fn start_at(
        &self,
        began: SystemTime,
        name: impl Into<String>,
        kind: SpanKind,
        parent: Option<SpanContext>,
    ) -> Option<Span> {
        let inner = self.0.as_ref()?;
        let trace = parent.map_or_else(|| inner.ids.trace(), |parent| parent.trace);
        let sampled = match parent {
            Some(parent) if inner.sampler.parent => parent.sampled,
            // The lower half, as other implementations do, so that they agree.
            _ => (trace & u128::from(u64::MAX)) < inner.sampler.below,
        };
        let context = SpanContext { trace, span: inner.ids.next(), sampled };
        sampled.then(|| Span {
            context,
            parent: parent.map(|parent| parent.span),
            name: name.into(),
            kind,
            began,
            attributes: Vec::new(),
            error: None,
            inner: Some(Arc::clone(inner)),
        })
    }

    /// The span of the start of the job with this UID is under way.
    pub fn job_starts(&self, uid: &SharedStr, span: Option<Span>) {
        if let (Some(inner), Some(span)) = (&self.0, span) {
            inner.starts.put(uid, span);
        }
    }

    /// That span has ended; `None` if there is none.
    pub fn job_started(&self, uid: &SharedStr) -> Option<Span> {
        self.0.as_ref()?.starts.take(uid)
    }

    /// Identity of that span while it is under way.
    pub fn start_of(&self, uid: &SharedStr) -> Option<SpanContext> {
        self.0.as_ref()?.starts.context(uid)
    }

    /// Whether spans are recorded at all.
    pub fn enabled(&self) -> bool {
        self.0.is_some()
    }
}

/// A span under way. It ends when it is dropped.
#[derive(Debug)]
pub struct Span {
    context: SpanContext,
    parent: Option<u64>,
    name: String,
    kind: SpanKind,
    began: SystemTime,
    attributes: Vec<(&'static str, Value)>,
    error: Option<String>,
    inner: Option<Arc<Inner>>,
}

impl Span {
    /// Its identity, for spans below it.
    pub fn context(&self) -> SpanContext {
        self.context
    }

    /// Adds an attribute; texts are cut off.
    pub fn set(&mut self, key: &'static str, value: &str) {
        let end = value.floor_char_boundary(VALUE_MAX);
        self.attributes.push((key, json!({ "stringValue": value[..end] })));
    }

    /// Adds an attribute that is a number.
    pub fn set_number(&mut self, key: &'static str, value: impl Into<i64>) {
        // JSON of protocol buffers has 64-bit numbers as texts.
        self.attributes.push((key, json!({ "intValue": value.into().to_string() })));
    }

    /// What it describes has failed.
    pub fn fail(&mut self, message: &str) {
        self.error = Some(message[..message.floor_char_boundary(VALUE_MAX)].to_owned());
    }

    /// Ends it without recording it.
    pub fn discard(mut self) {
        self.inner = None;
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        inner.queue.push(export::encode(self, SystemTime::now()));
    }
}

#[cfg(test)]
mod tests;
