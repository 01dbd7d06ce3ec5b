//! Request metrics, and metrics computed from the latest snapshot.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use fluxion_scheduler::inventory::Inventory;
use fluxion_scheduler::state::FINDING_CLASSES;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Unit;

use super::audit_log::REFUSALS_EVERY;
use crate::engine::{EngineHandle, Published};
use crate::health::Health;
use crate::history::HistoryHealth;
use crate::logs::RateLimit;
use crate::metrics::{Kind, Metrics, Reason};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    resource: &'static str,
    verb: &'static str,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabels {
    resource: &'static str,
    verb: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabels {
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JobLabels {
    queue: String,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    queue: String,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabels {
    resource: String,
}

/// Amounts by resource: cores, bytes, units.
type Amounts = Family<ResourceLabels, Gauge<f64, AtomicU64>>;

/// Minimum time between two audits for metrics.
const AUDIT_EVERY: Duration = Duration::from_secs(10);

/// Why a request with this status was rejected, as the reason of its Status.
fn rejection(code: u16) -> Option<&'static str> {
    Some(match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        409 => "Conflict",
        413 => "RequestEntityTooLarge",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => return None,
    })
}

/// Request counters, and gauges that are updated when scraped.
pub(super) struct Requests {
    engine: EngineHandle,
    total: Family<RequestLabels, Counter>,
    rejected: Family<Reason, Counter>,
    /// How often refused requests are logged.
    pub(super) refusals: RateLimit,
    seconds: Family<DurationLabels, Histogram>,
    findings: Family<ClassLabels, Gauge>,
    /// The snapshot that was audited last, and when.
    audited: Mutex<Option<(u64, Instant)>>,
    snapshot_age: Gauge,
    jobs: Family<JobLabels, Gauge>,
    waiting: Family<ReasonLabels, Gauge>,
    allocatable: Amounts,
    allocated: Amounts,
    foreign: Amounts,
    reserved: Amounts,
    nodes: Gauge,
    snapshot: Gauge,
    waiting_events: Gauge,
    watch_age: Family<Kind, Gauge<f64, AtomicU64>>,
    health: OnceLock<Arc<Health>>,
}

impl Requests {
    /// Registers these metrics.
    pub(super) fn register(metrics: &Metrics, engine: EngineHandle) -> Self {
        let requests = Self {
            engine,
            total: Family::default(),
            rejected: Family::default(),
            refusals: RateLimit::new(REFUSALS_EVERY),
            // 0.5 ms to about 12 s.
            seconds: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.0005, 2.5, 12))),
            findings: Family::default(),
            audited: Mutex::default(),
            snapshot_age: Gauge::default(),
            jobs: Family::default(),
            waiting: Family::default(),
            allocatable: Family::default(),
            allocated: Family::default(),
            foreign: Family::default(),
            reserved: Family::default(),
            nodes: Gauge::default(),
            snapshot: Gauge::default(),
            waiting_events: Gauge::default(),
            watch_age: Family::default(),
            health: OnceLock::new(),
        };
        metrics.register(|registry| {
            registry.register(
                "http_requests",
                "HTTP requests by resource, verb and status code",
                requests.total.clone(),
            );
            registry.register(
                "http_request_seconds",
                "Time until the response started, by resource and verb",
                requests.seconds.clone(),
            );
            registry.register(
                "http_requests_rejected",
                "HTTP requests that were rejected, by reason",
                requests.rejected.clone(),
            );
            registry.register(
                "audit_findings",
                "Problems found by the audit of the state, by class; all zero when healthy",
                requests.findings.clone(),
            );
            registry.register(
                "snapshot_age_seconds",
                "Time since the served snapshot was last known to be current",
                requests.snapshot_age.clone(),
            );
            registry.register("jobs", "Jobs by queue and state", requests.jobs.clone());
            registry.register(
                "waiting_jobs",
                "Waiting jobs by queue and reason class",
                requests.waiting.clone(),
            );
            for (name, help, amounts) in [
                (
                    "resource_allocatable",
                    "Allocatable resources of all nodes (cores, bytes or units)",
                    &requests.allocatable,
                ),
                ("resource_allocated", "Resources allocated to Pods on nodes", &requests.allocated),
                (
                    "resource_foreign",
                    "Resources allocated to Pods placed by other schedulers",
                    &requests.foreign,
                ),
                (
                    "resource_reserved",
                    "Resources reserved for planned jobs and for replacements of lost members",
                    &requests.reserved,
                ),
            ] {
                registry.register(name, help, amounts.clone());
            }
            registry.register("nodes", "Nodes in the resource graph", requests.nodes.clone());
            registry.register(
                "snapshot_timestamp_seconds",
                "Time at which the served snapshot was last known to be current",
                requests.snapshot.clone(),
            );
            registry.register(
                "inbox_events",
                "Events waiting to be processed by the engine",
                requests.waiting_events.clone(),
            );
        });
        requests
    }

    /// Registers the ages of the watches.
    pub(super) fn show(&self, metrics: &Metrics, health: &Arc<Health>) {
        if self.health.set(Arc::clone(health)).is_ok() {
            let help = "Time since a watch last received anything: an event, a bookmark, a renewal or a list";
            metrics.register(|registry| {
                registry.register_with_unit("watch_age", help, Unit::Seconds, self.watch_age.clone());
            });
        }
    }

    /// Records a request, with labels from a fixed set, and the seconds until its response started.
    pub(super) fn observe(&self, (resource, verb): (&'static str, &'static str), code: u16, seconds: f64) {
        self.seconds.get_or_create(&DurationLabels { resource, verb }).observe(seconds);
        if let Some(reason) = rejection(code) {
            self.rejected.get_or_create(&Reason { reason }).inc();
        }
        self.total.get_or_create(&RequestLabels { resource, verb, code }).inc();
    }

    /// Updates the gauges; may take a while.
    pub(super) fn refresh(&self, history: &HistoryHealth) {
        if let Some(health) = self.health.get() {
            self.watch_age.clear();
            for watched in health.watches() {
                if let Some(age) = watched.age(Instant::now()) {
                    let labels = Kind { kind: watched.kind() };
                    self.watch_age.get_or_create(&labels).set(age.as_secs_f64());
                }
            }
        }
        let published = self.engine.snapshot();
        let mut counts: BTreeMap<(&str, &'static str), i64> = BTreeMap::new();
        let mut reasons: BTreeMap<(&str, &'static str), i64> = BTreeMap::new();
        for job in published.state.jobs() {
            *counts.entry((&job.queue, job.state.as_str())).or_default() += 1;
            if let Some(reason) = job.reason.as_ref().filter(|_| job.state.waiting()) {
                *reasons.entry((&job.queue, reason.class.as_str())).or_default() += 1;
            }
        }
        self.waiting.clear();
        for ((queue, reason), count) in reasons {
            self.waiting.get_or_create(&ReasonLabels { queue: queue.to_owned(), reason }).set(count);
        }
        self.amounts(published.state.inventory());
        self.jobs.clear();
        for ((queue, state), count) in counts {
            self.jobs.get_or_create(&JobLabels { queue: queue.to_owned(), state }).set(count);
        }
        self.nodes.set(i64::try_from(published.state.inventory().node_count()).unwrap_or(i64::MAX));
        self.snapshot.set(published.observed_at);
        self.snapshot_age
            .set(jiff::Timestamp::now().as_second().saturating_sub(published.observed_at).max(0));
        self.audit(&published, history);
        self.waiting_events.set(i64::try_from(self.engine.waiting()).unwrap_or(i64::MAX));
    }

    /// Counts the findings, unless nothing has changed since, or it was done a moment ago: it looks at everything.
    fn audit(&self, published: &Published, history: &HistoryHealth) {
        let stale = self.health.get().map_or(0, |health| health.problems().len());
        for (class, count) in [("StaleWatch", stale), ("NoHistory", usize::from(history.problem().is_some()))]
        {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.findings.get_or_create(&ClassLabels { class }).set(count);
        }
        let mut audited = self.audited.lock().unwrap_or_else(PoisonError::into_inner);
        if audited.is_some_and(|(sequence, at)| sequence == published.sequence || at.elapsed() < AUDIT_EVERY)
        {
            return;
        }
        *audited = Some((published.sequence, Instant::now()));
        let mut counts: BTreeMap<&'static str, i64> = FINDING_CLASSES.map(|class| (class, 0)).into();
        for finding in published.state.audit() {
            *counts.entry(finding.class).or_default() += 1;
        }
        for (class, count) in counts {
            self.findings.get_or_create(&ClassLabels { class }).set(count);
        }
    }

    /// Totals over all nodes.
    fn amounts(&self, inventory: &Inventory) {
        let mut sums: [BTreeMap<String, u128>; 4] = Default::default();
        for node in inventory.nodes() {
            let lists = [&node.spec.allocatable, &node.allocated, &node.foreign, &node.reserved, &node.kept];
            for (place, list) in lists.into_iter().enumerate() {
                for (name, amount) in list.iter() {
                    let sum = sums[place.min(3)].entry(name.to_string()).or_default();
                    *sum = sum.saturating_add(u128::from(amount));
                }
            }
        }
        for (family, sum) in
            [&self.allocatable, &self.allocated, &self.foreign, &self.reserved].into_iter().zip(sums)
        {
            family.clear();
            for (resource, amount) in sum {
                // cpu is in milli-cores.
                let unit = if resource == "cpu" { 1000.0 } else { 1.0 };
                family.get_or_create(&ResourceLabels { resource }).set(amount as f64 / unit);
            }
        }
    }
}
