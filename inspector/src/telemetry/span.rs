//! Spans, and the tracer that starts them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use fluxion_scheduler::model::SharedStr;
use serde_json::{Value, json};

use super::context::{Ids, SpanContext};
use super::queue::Queue;
use super::settings::Sampler;

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

impl Tracer {
    pub(super) fn new(sampler: Sampler, queue: Queue) -> Self {
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
        inner.queue.push(encode(self, SystemTime::now()));
    }
}

/// Jobs that are being started, by UID: the spans that the spans of their bindings are below.
#[derive(Debug, Default)]
struct Starts(Mutex<HashMap<SharedStr, Span>>);

/// Maximum number of jobs; further ones have no span.
const JOBS_MAX: usize = 10_000;

impl Starts {
    fn put(&self, uid: &SharedStr, span: Span) {
        let mut spans = self.lock();
        if spans.len() < JOBS_MAX || spans.contains_key(uid) {
            spans.insert(uid.clone(), span);
        } else {
            span.discard();
        }
    }

    fn take(&self, uid: &SharedStr) -> Option<Span> {
        self.lock().remove(uid)
    }

    fn context(&self, uid: &SharedStr) -> Option<SpanContext> {
        self.lock().get(uid).map(Span::context)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SharedStr, Span>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A span in OTLP's JSON: IDs are hexadecimal, 64-bit numbers are texts.
fn encode(span: &mut Span, ended: SystemTime) -> Value {
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
