//! Registration of metrics, and the list of those that there are.

use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Metric, Registry, Unit};

/// Prefix of all names.
const PREFIX: &str = "fluxion";

/// A registered metric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MetricHelp {
    /// As in the Prometheus text format; a histogram's samples end in `_bucket`, `_sum` and `_count`.
    pub name: String,
    /// `counter`, `gauge`, `histogram` or `info`.
    pub kind: &'static str,
    pub help: String,
}

/// A registry that knows what is in it.
pub struct Catalog {
    registry: Registry,
    listed: Vec<MetricHelp>,
}

impl Default for Catalog {
    fn default() -> Self {
        Self { registry: Registry::with_prefix(PREFIX), listed: Vec::new() }
    }
}

impl Catalog {
    /// Adds a metric; `help` is without a period at the end.
    pub fn register(&mut self, name: &str, help: &str, metric: impl Metric) {
        self.list(name, help, &metric);
        self.registry.register(name, help, metric);
    }

    /// Adds a metric whose name ends in its unit.
    pub fn register_with_unit(&mut self, name: &str, help: &str, unit: Unit, metric: impl Metric) {
        self.list(&format!("{name}_{}", unit.as_str()), help, &metric);
        self.registry.register_with_unit(name, help, unit, metric);
    }

    fn list(&mut self, name: &str, help: &str, metric: &impl Metric) {
        let (kind, end) = match metric.metric_type() {
            MetricType::Counter => ("counter", "_total"),
            MetricType::Gauge => ("gauge", ""),
            MetricType::Histogram => ("histogram", ""),
            MetricType::Info => ("info", "_info"),
            MetricType::Unknown => ("unknown", ""),
        };
        self.listed.push(MetricHelp { name: format!("{PREFIX}_{name}{end}"), kind, help: help.to_owned() });
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// All metrics, by name.
    pub(super) fn listed(&self) -> Vec<MetricHelp> {
        let mut listed = self.listed.clone();
        listed.sort();
        listed
    }
}
