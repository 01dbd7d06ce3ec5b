//! Jobs that are being started: the spans that the spans of their bindings are below.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use fluxion_scheduler::model::SharedStr;

use super::{Span, SpanContext};

/// Maximum number of jobs; further ones have no span.
const JOBS_MAX: usize = 10_000;

/// By the UID of the job.
#[derive(Debug, Default)]
pub(super) struct Starts(Mutex<HashMap<SharedStr, Span>>);

impl Starts {
    pub(super) fn put(&self, uid: &SharedStr, span: Span) {
        let mut spans = self.lock();
        if spans.len() < JOBS_MAX || spans.contains_key(uid) {
            spans.insert(uid.clone(), span);
        } else {
            span.discard();
        }
    }

    pub(super) fn take(&self, uid: &SharedStr) -> Option<Span> {
        self.lock().remove(uid)
    }

    pub(super) fn context(&self, uid: &SharedStr) -> Option<SpanContext> {
        self.lock().get(uid).map(Span::context)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SharedStr, Span>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
