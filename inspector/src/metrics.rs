//! Metrics of the server and the engine loop, for Prometheus.
//!
//! Metrics derived from a snapshot (jobs by state, nodes) are not included; the handler of `/metrics` adds them.

use std::sync::Mutex;
use std::time::Duration;

use prometheus_client::encoding::{self, EncodeLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;

mod catalog;

pub use catalog::{Catalog, MetricHelp};

/// One label: the outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Outcome {
    pub outcome: &'static str,
}

/// One label: the kind of effect or watched object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Kind {
    pub kind: &'static str,
}

/// One label: why.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Reason {
    pub reason: &'static str,
}

/// A phase of starting a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartPhase {
    /// From being complete to the decision to start.
    Queue,
    /// The pass, until its start was decided.
    Placement,
    /// From that decision until all members are bound.
    Binding,
    /// From its creation until all members are bound.
    EndToEnd,
}

impl StartPhase {
    fn word(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Placement => "placement",
            Self::Binding => "binding",
            Self::EndToEnd => "end_to_end",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabel {
    phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Attempt {
    queue: String,
    result: &'static str,
}

/// One label: the queue of a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Queue {
    queue: String,
}

/// The two text formats of Prometheus; both include HELP and TYPE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// `OpenMetrics` 1.0.
    OpenMetrics,
    /// The Prometheus text format, version 0.0.4.
    Prometheus,
}

/// All metrics. Updating them is cheap from any task.
pub struct Metrics {
    catalog: Mutex<Catalog>,
    attempts: Family<Attempt, Counter>,
    phase_seconds: Family<PhaseLabel, Histogram>,
    pass_seconds: Histogram,
    /// Connections closed by the server: `limit`, `handshake`, `stalled`.
    connections_dropped: Family<Reason, Counter>,
    /// Requests that are for the leader to answer: `answered`, `no_leader`, `unreachable`, `too_many`.
    pub forwarded: Family<Outcome, Counter>,
    /// Watches that were refused or ended with an error, by the reason of its Status.
    watches_dropped: Family<Reason, Counter>,
    step_seconds: Histogram,
    inbox_wait_seconds: Histogram,
    wait_seconds: Family<Queue, Histogram>,
    /// `done`, `gone`, `elsewhere`, `transient`, `refused`.
    pub binds: Family<Outcome, Counter>,
    /// From the scheduling decision to the API server's response.
    pub bind_seconds: Histogram,
    /// Successful writes other than bindings, by kind (`condition`, `group`, `event`, `delete`).
    pub writes: Family<Kind, Counter>,
    /// Writes other than bindings that failed permanently, by kind.
    pub write_failures: Family<Kind, Counter>,
    /// Kubernetes Events dropped because too many were waiting, or too many were about one object.
    pub events_dropped: Counter,
    /// Effects waiting to be sent to the API server.
    pub effects_waiting: Gauge,
    /// Watches that failed and were restarted, by kind of object.
    pub watch_failures: Family<Kind, Counter>,
    /// Objects that could not be interpreted, by kind.
    pub invalid_objects: Family<Kind, Counter>,
    /// 1 while this inspector holds the leader-election Lease.
    pub leader: Gauge,
    /// Attempts to write the job history: `success`, `failure`, `rejected`, `superseded`.
    pub journal_writes: Family<Outcome, Counter>,
    /// Entries of the job history that were dropped.
    pub journal_dropped: Counter,
    /// Spans for the `OpenTelemetry` collector: `sent`, `dropped`, `failed`.
    pub otlp_spans: Family<Outcome, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All metrics, at zero.
    pub fn new() -> Self {
        let mut registry = Catalog::default();
        // 100 µs to about 50 s, and 1 ms to about 65 s.
        let step_seconds = Histogram::new(exponential_buckets(0.0001, 2.0, 20));
        let inbox_wait_seconds = Histogram::new(exponential_buckets(0.0001, 2.0, 20));
        let bind_seconds = Histogram::new(exponential_buckets(0.001, 2.0, 17));
        let metrics = Self {
            step_seconds: step_seconds.clone(),
            inbox_wait_seconds: inbox_wait_seconds.clone(),
            // 1 s to about 6 days.
            wait_seconds: Family::new_with_constructor(|| Histogram::new(exponential_buckets(1.0, 2.0, 20))),
            binds: Family::default(),
            bind_seconds: bind_seconds.clone(),
            writes: Family::default(),
            write_failures: Family::default(),
            events_dropped: Counter::default(),
            effects_waiting: Gauge::default(),
            watch_failures: Family::default(),
            invalid_objects: Family::default(),
            leader: Gauge::default(),
            journal_writes: Family::default(),
            journal_dropped: Counter::default(),
            otlp_spans: Family::default(),
            catalog: Mutex::default(),
            attempts: Family::default(),
            // 1 ms to about 12 days: placement takes milliseconds, waiting in the queue days.
            phase_seconds: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.001, 4.0, 16))
            }),
            // 1 ms to about 65 s.
            pass_seconds: Histogram::new(exponential_buckets(0.001, 2.0, 17)),
            connections_dropped: Family::default(),
            watches_dropped: Family::default(),
            forwarded: Family::default(),
        };
        metrics.register_scheduling(&mut registry);
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "Version of this inspector", build);
        registry.register(
            "job_wait_seconds",
            "Time from the creation of a job to its start, by queue",
            metrics.wait_seconds.clone(),
        );
        registry.register("step_seconds", "Duration of one engine step", step_seconds);
        registry.register(
            "inbox_wait_seconds",
            "Time the oldest event of a step waited in the inbox",
            inbox_wait_seconds,
        );
        registry.register("binds", "Bindings by outcome", metrics.binds.clone());
        registry.register(
            "bind_seconds",
            "Time from the scheduling decision to the API server's response",
            bind_seconds,
        );
        registry.register("writes", "Successful writes to the API server", metrics.writes.clone());
        registry.register(
            "write_failures",
            "Writes to the API server that failed permanently",
            metrics.write_failures.clone(),
        );
        registry.register(
            "events_dropped",
            "Kubernetes Events that were dropped",
            metrics.events_dropped.clone(),
        );
        registry.register(
            "effects_waiting",
            "Writes waiting to be sent to the API server",
            metrics.effects_waiting.clone(),
        );
        registry.register(
            "watch_failures",
            "Watch failures, each followed by a restart of the watch",
            metrics.watch_failures.clone(),
        );
        registry.register(
            "invalid_objects",
            "Objects that could not be interpreted",
            metrics.invalid_objects.clone(),
        );
        registry.register(
            "leader",
            "1 while this inspector holds the leader-election Lease",
            metrics.leader.clone(),
        );
        *metrics.lock() = registry;
        metrics
    }

    /// Registers the metrics of scheduling and of what is dropped.
    fn register_scheduling(&self, catalog: &mut Catalog) {
        catalog.register(
            "schedule_attempts",
            "Attempts to place a job, by queue and result (scheduled or unschedulable)",
            self.attempts.clone(),
        );
        catalog.register(
            "job_phase_seconds",
            "Time jobs took to start, by phase (queue, placement, binding, end_to_end)",
            self.phase_seconds.clone(),
        );
        catalog.register(
            "pass_seconds",
            "Duration of a pass over the queues, including everything done in the same steps",
            self.pass_seconds.clone(),
        );
        catalog.register(
            "connections_dropped",
            "Connections closed by the server, by reason (limit, handshake, stalled)",
            self.connections_dropped.clone(),
        );
        catalog.register(
            "watches_dropped",
            "Watches that were refused or ended with an error, by reason",
            self.watches_dropped.clone(),
        );
        catalog.register(
            "http_requests_forwarded",
            "HTTP requests forwarded to the leader, by outcome (answered, no_leader, unreachable, too_many)",
            self.forwarded.clone(),
        );
        catalog.register(
            "journal_writes",
            "Attempts to write the job history, by outcome (success, failure, rejected, superseded)",
            self.journal_writes.clone(),
        );
        catalog.register(
            "journal_entries_dropped",
            "Entries of the job history that were dropped because the journal was not writable for too long",
            self.journal_dropped.clone(),
        );
        catalog.register(
            "otlp_spans",
            "Spans for the OpenTelemetry collector, by outcome (sent, dropped, failed)",
            self.otlp_spans.clone(),
        );
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Catalog> {
        self.catalog.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Registers further metrics; for the handler of `/metrics`.
    pub fn register(&self, add: impl FnOnce(&mut Catalog)) {
        add(&mut self.lock());
    }

    /// All registered metrics, by name.
    pub fn listed(&self) -> Vec<MetricHelp> {
        self.lock().listed()
    }

    /// All metrics as text.
    pub fn encode(&self, format: TextFormat) -> String {
        let mut text = String::new();
        // Writing to a String does not fail.
        let _ = match format {
            TextFormat::OpenMetrics => encoding::text::encode(&mut text, self.lock().registry()),
            TextFormat::Prometheus => encoding::prometheus_text::encode(&mut text, self.lock().registry()),
        };
        text
    }

    /// A job of this queue was started after this many seconds.
    pub fn job_waited(&self, queue: &str, seconds: i64) {
        let queue = Queue { queue: queue.to_owned() };
        self.wait_seconds.get_or_create(&queue).observe(seconds.max(0) as f64);
    }

    /// A pass over this queue placed so many jobs, of those that it tried to place.
    pub fn attempts(&self, queue: &str, scheduled: u32, tried: u32) {
        for (result, count) in [("scheduled", scheduled), ("unschedulable", tried.saturating_sub(scheduled))]
        {
            let attempt = Attempt { queue: queue.to_owned(), result };
            self.attempts.get_or_create(&attempt).inc_by(count.into());
        }
    }

    /// A job has gone through this phase.
    pub fn phase(&self, phase: StartPhase, took: Duration) {
        self.phase_seconds.get_or_create(&PhaseLabel { phase: phase.word() }).observe(took.as_secs_f64());
    }

    /// A complete pass over all queues.
    pub fn pass(&self, took: Duration) {
        self.pass_seconds.observe(took.as_secs_f64());
    }

    /// The server closed a connection.
    pub fn connection_dropped(&self, reason: &'static str) {
        self.connections_dropped.get_or_create(&Reason { reason }).inc();
    }

    /// A watch was refused, or ended with an error, for this reason of a Status.
    pub fn watch_dropped(&self, reason: &'static str) {
        self.watches_dropped.get_or_create(&Reason { reason }).inc();
    }

    /// One step of the engine.
    pub fn step(&self, took: Duration) {
        self.step_seconds.observe(took.as_secs_f64());
    }

    /// Time the oldest event of a step waited in the inbox.
    pub fn inbox_wait(&self, waited: Duration) {
        self.inbox_wait_seconds.observe(waited.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_shown() {
        let metrics = Metrics::new();
        metrics.binds.get_or_create(&Outcome { outcome: "done" }).inc_by(3);
        for format in [TextFormat::OpenMetrics, TextFormat::Prometheus] {
            let text = metrics.encode(format);
            assert!(text.contains("fluxion_binds_total{outcome=\"done\"} 3"), "{text}");
        }
    }

    #[test]
    fn each_form_says_what_every_metric_is() {
        let metrics = Metrics::new();
        metrics.binds.get_or_create(&Outcome { outcome: "done" }).inc();
        metrics.writes.get_or_create(&Kind { kind: "event" }).inc();
        metrics.write_failures.get_or_create(&Kind { kind: "event" }).inc();
        metrics.watch_failures.get_or_create(&Kind { kind: "Pod" }).inc();
        metrics.invalid_objects.get_or_create(&Kind { kind: "Pod" }).inc();
        metrics.job_waited("default", 90);
        for format in [TextFormat::OpenMetrics, TextFormat::Prometheus] {
            let text = metrics.encode(format);
            let said = |word: &str| -> Vec<&str> {
                text.lines().filter_map(|line| line.strip_prefix(word)?.split(' ').next()).collect()
            };
            let (helped, typed) = (said("# HELP "), said("# TYPE "));
            assert_eq!(helped, typed);
            let samples = text.lines().filter(|line| !line.starts_with('#'));
            for name in samples.map(|line| line.split(['{', ' ']).next().unwrap_or_default()) {
                let ends = ["", "_total", "_info", "_bucket", "_sum", "_count"];
                assert!(
                    ends.iter().any(|end| name.strip_suffix(end).is_some_and(|name| typed.contains(&name))),
                    "{name} is not described in {text}"
                );
            }
            assert!(
                text.contains(&format!("fluxion_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")))
            );
            assert!(text.contains("fluxion_job_wait_seconds_count{queue=\"default\"} 1"), "{text}");
            assert_eq!(text.ends_with("# EOF\n"), format == TextFormat::OpenMetrics);
        }
        // In the Prometheus text format, the name of a counter is that of its sample.
        let text = metrics.encode(TextFormat::Prometheus);
        assert!(text.contains("# TYPE fluxion_binds_total counter"), "{text}");
    }
}
