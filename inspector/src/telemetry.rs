//! Traces: what was done, when, and because of what, sent to an OpenTelemetry collector.
//!
//! A [`Tracer`] hands out spans; without an endpoint it hands out none, and costs nothing. Ended spans wait in a bounded
//! queue (`export.rs`), so nothing that is traced ever waits for the collector.

use crate::metrics::Metrics;

mod context;
mod export;
mod queue;
mod settings;
mod span;

pub use context::SpanContext;
pub use export::Exporter;
pub use queue::ExporterStats;
pub use settings::{InvalidSettings, TraceSettings};
pub use span::{Span, SpanKind, Tracer};

/// Starts to export spans to the collector of the flag or of OpenTelemetry's variables, if there is one.
///
/// # Errors
/// The flag or a variable is invalid.
pub fn start(flag: Option<&str>, metrics: &Metrics) -> Result<(Option<Exporter>, Tracer), StartError> {
    let Some(settings) = TraceSettings::read(flag, |name| std::env::var(name).ok())? else {
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
    #[error("failed to create the client for the OpenTelemetry collector: {0}")]
    Client(#[from] reqwest::Error),
}

#[cfg(test)]
mod tests;
