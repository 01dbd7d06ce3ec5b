//! `/metrics`: counts of requests, and what can be read off the latest snapshot.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use fluxion_scheduler::inventory::Inventory;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Unit;

use super::App;
use crate::engine::EngineHandle;
use crate::health::Health;
use crate::metrics::{Kind, Metrics, TextFormat};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    resource: &'static str,
    verb: &'static str,
    code: u16,
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

/// Amounts by resource: cores, bytes, pieces.
type Amounts = Family<ResourceLabels, Gauge<f64, AtomicU64>>;

/// What is counted about requests, and gauges that are set when they are asked for.
pub(super) struct Requests {
    engine: EngineHandle,
    total: Family<RequestLabels, Counter>,
    seconds: Histogram,
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
    /// Puts these among the other metrics.
    pub(super) fn register(metrics: &Metrics, engine: EngineHandle) -> Self {
        let requests = Self {
            engine,
            total: Family::default(),
            // 100 µs to about 50 s.
            seconds: Histogram::new(exponential_buckets(0.0001, 2.0, 20)),
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
            registry.register("http_requests", "Requests by resource, verb and code", requests.total.clone());
            registry.register("http_request_seconds", "Time until an answer began", requests.seconds.clone());
            registry.register("jobs", "Jobs by queue and state", requests.jobs.clone());
            registry.register(
                "waiting_jobs",
                "Jobs that wait, by queue and class of reason",
                requests.waiting.clone(),
            );
            for (name, help, amounts) in [
                ("resource_allocatable", "What nodes can give (cores, bytes, pieces)", &requests.allocatable),
                ("resource_allocated", "What Pods on nodes hold", &requests.allocated),
                ("resource_foreign", "The part of it that other schedulers placed", &requests.foreign),
                (
                    "resource_reserved",
                    "What is kept for jobs that are to start, and for lost members",
                    &requests.reserved,
                ),
            ] {
                registry.register(name, help, amounts.clone());
            }
            registry.register("nodes", "Nodes in the graph", requests.nodes.clone());
            registry.register(
                "snapshot_timestamp_seconds",
                "When the snapshot that is served was last known to be current",
                requests.snapshot.clone(),
            );
            registry.register(
                "inbox_events",
                "Events that wait for the engine",
                requests.waiting_events.clone(),
            );
        });
        requests
    }

    /// Adds the ages of the watches, once.
    pub(super) fn show(&self, metrics: &Metrics, health: &Arc<Health>) {
        if self.health.set(Arc::clone(health)).is_ok() {
            let help = "Time since a watch was last heard of: an event, a bookmark, its renewal, or a list";
            metrics.register(|registry| {
                registry.register_with_unit("watch_age", help, Unit::Seconds, self.watch_age.clone());
            });
        }
    }

    fn refresh(&self) {
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
        self.waiting_events.set(i64::try_from(self.engine.waiting()).unwrap_or(i64::MAX));
    }

    /// Sums over all nodes.
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
                // cpu is counted in milli-cores.
                let unit = if resource == "cpu" { 1000.0 } else { 1.0 };
                family.get_or_create(&ResourceLabels { resource }).set(amount as f64 / unit);
            }
        }
    }
}

/// Counts a request.
pub(super) async fn count(State(app): State<App>, request: Request, next: Next) -> Response {
    let (resource, verb) = kind_of(request.method(), request.uri().path(), request.uri().query());
    let began = Instant::now();
    let response = next.run(request).await;
    app.requests.seconds.observe(began.elapsed().as_secs_f64());
    let labels = RequestLabels { resource, verb, code: response.status().as_u16() };
    app.requests.total.get_or_create(&labels).inc();
    response
}

/// Which resource and verb, from a fixed set: labels must not grow with what is asked.
fn kind_of(method: &Method, path: &str, query: Option<&str>) -> (&'static str, &'static str) {
    const RESOURCES: [&str; 6] = [
        "fluxionjobs",
        "fluxionnodes",
        "fluxionqueues",
        "fluxiongraphs",
        "fluxiontimelines",
        "fluxionaudits",
    ];
    let parts: Vec<&str> = path.split('/').collect();
    let found = RESOURCES.iter().find_map(|name| Some((*name, parts.iter().position(|part| part == name)?)));
    let Some((resource, at)) = found else {
        return ("other", if method == Method::GET { "get" } else { "other" });
    };
    let watch = query
        .is_some_and(|query| query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch")));
    let verb = match (method, parts.get(at + 1), parts.get(at + 2).copied()) {
        (&Method::GET, None, _) if watch => "watch",
        (&Method::GET, None, _) => "list",
        (&Method::GET, Some(_), None) => "get",
        (&Method::GET, Some(_), Some("explain")) => "explain",
        (&Method::POST, Some(_), Some("cancel")) => "cancel",
        _ => "other",
    };
    (resource, verb)
}

/// `/metrics`.
pub(super) async fn metrics(State(app): State<App>, headers: HeaderMap) -> Response {
    app.requests.refresh();
    let accept = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let format = wanted(accept);
    let content_type = match format {
        TextFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        TextFormat::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
    };
    ([(header::CONTENT_TYPE, content_type), (header::VARY, "Accept")], app.metrics.encode(format))
        .into_response()
}

/// The form that a client asks for (RFC 9110, section 12.5.1); plain text where it does not say or wants both alike.
fn wanted<'a>(accept: impl Iterator<Item = &'a str>) -> TextFormat {
    let (mut open, mut plain, mut any) = (0.0_f64, 0.0_f64, 0.0_f64);
    for range in accept.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok());
        let weight = weight.unwrap_or(0.0);
        match kind.as_str() {
            "application/openmetrics-text" => open = open.max(weight),
            "text/plain" | "text/*" => plain = plain.max(weight),
            "*/*" => any = any.max(weight),
            _ => {}
        }
    }
    if open > plain && open >= any { TextFormat::OpenMetrics } else { TextFormat::Prometheus }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_has_the_form_that_is_asked_for() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                          application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, format) in [
            ("", TextFormat::Prometheus),
            ("*/*", TextFormat::Prometheus),
            ("text/html, */*;q=0.8", TextFormat::Prometheus),
            ("text/plain", TextFormat::Prometheus),
            ("application/openmetrics-text; q=0", TextFormat::Prometheus),
            ("text/plain;q=0.9, application/openmetrics-text;q=0.1", TextFormat::Prometheus),
            ("application/openmetrics-text; version=1.0.0", TextFormat::OpenMetrics),
            ("Application/OpenMetrics-Text, text/plain;q=0.5", TextFormat::OpenMetrics),
            (prometheus, TextFormat::OpenMetrics),
        ] {
            assert_eq!(wanted(std::iter::once(accept)), format, "{accept}");
        }
    }

    #[test]
    fn requests_are_told_apart_by_a_fixed_set_of_words() {
        let base = "/apis/fluxion.flux-framework.org/v1alpha1";
        let kind = |method: Method, path: &str, query| kind_of(&method, &format!("{base}{path}"), query);
        assert_eq!(kind(Method::GET, "/fluxionjobs", Some("limit=5")), ("fluxionjobs", "list"));
        assert_eq!(kind(Method::GET, "/fluxionjobs", Some("watch=true")), ("fluxionjobs", "watch"));
        assert_eq!(kind(Method::GET, "/namespaces/a/fluxionjobs/job.b", None), ("fluxionjobs", "get"));
        assert_eq!(
            kind(Method::GET, "/namespaces/a/fluxionjobs/b/explain", None),
            ("fluxionjobs", "explain")
        );
        assert_eq!(kind(Method::POST, "/namespaces/a/fluxionjobs/b/cancel", None), ("fluxionjobs", "cancel"));
        assert_eq!(kind(Method::DELETE, "/fluxionnodes/n", None), ("fluxionnodes", "other"));
        assert_eq!(kind_of(&Method::GET, "/healthz", None), ("other", "get"));
    }
}
