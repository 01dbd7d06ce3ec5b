//! The status screen and its JSON document.

use std::collections::BTreeMap;

use fluxion_api::graph::Finding;
use fluxion_api::{FluxionNode, FluxionQueue, JobState, ListMeta, Role};
use fluxion_text::clean;
use serde::Serialize;

use super::Options;
use super::bars::bar;
use super::jobs::state_style;
use super::nodes::{NodeUse, resources_of};
use super::style::{BAD, BOLD, DIM, GOOD, Painted, WARN};
use super::table::Table;
use super::time::{ago, parse};
use fluxion_text::quantity::Amount;

/// The status report, printed unchanged with `-o json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    pub api_version: String,
    /// `FluxionStatus`.
    pub kind: String,
    /// Name of the server.
    pub server: String,
    pub role: Role,
    pub resource_version: String,
    /// When the snapshot was taken (RFC 3339).
    pub observed_at: String,
    /// Warning about the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    pub nodes: NodeCount,
    /// Usage by resource, summed over all nodes.
    pub usage: BTreeMap<String, Usage>,
    /// Number of jobs by state.
    pub jobs: BTreeMap<JobState, u32>,
    pub queues: Vec<FluxionQueue>,
    /// `None` if the audit is not available, e.g. because of missing permissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<Finding>>,
}

/// Number of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCount {
    pub total: usize,
    /// Nodes that accept Pods without tolerations.
    pub eligible: usize,
    /// Reasons why the other nodes are not eligible; a node with two reasons counts for both.
    pub reasons: BTreeMap<String, u32>,
}

/// Usage of one resource, as Kubernetes quantities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub allocatable: String,
    pub allocated: String,
    pub foreign: String,
    pub reserved: String,
    /// The same amounts as numbers, for the bars.
    #[serde(skip)]
    amounts: NodeUse,
}

impl StatusReport {
    /// Summarizes the responses of the server. Usage includes unschedulable nodes.
    pub fn new(
        server: &str,
        list: &ListMeta,
        nodes: &[FluxionNode],
        queues: Vec<FluxionQueue>,
        findings: Option<Vec<Finding>>,
    ) -> Self {
        let mut count = NodeCount { total: nodes.len(), ..NodeCount::default() };
        for node in nodes {
            if node.status.eligible {
                count.eligible += 1;
            }
            for reason in &node.status.reasons {
                *count.reasons.entry(reason.clone()).or_default() += 1;
            }
        }
        let usage = resources_of(nodes)
            .into_iter()
            .map(|name| {
                let sum =
                    nodes.iter().fold(NodeUse::default(), |sum, node| sum.plus(NodeUse::of(node, &name)));
                let usage = Usage {
                    allocatable: sum.share.whole.shown(""),
                    allocated: sum.share.used.shown(""),
                    foreign: sum.foreign.shown(""),
                    reserved: sum.share.reserved.shown(""),
                    amounts: sum,
                };
                (name, usage)
            })
            .collect();
        let mut jobs: BTreeMap<JobState, u32> = BTreeMap::new();
        for (state, number) in queues.iter().flat_map(|queue| &queue.status.jobs) {
            let sum = jobs.entry(state.clone()).or_default();
            *sum = sum.saturating_add(*number);
        }
        Self {
            api_version: fluxion_api::API_VERSION.to_owned(),
            kind: "FluxionStatus".to_owned(),
            server: server.to_owned(),
            role: list.role.clone(),
            resource_version: list.resource_version.clone(),
            observed_at: list.observed_at.clone(),
            warning: list.warning.clone(),
            nodes: count,
            usage,
            jobs,
            queues,
            findings,
        }
    }
}

/// The status screen.
pub fn status(report: &StatusReport, options: &Options) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        putln!(text, "{DIM}{name:<9}{DIM:#}{value}");
    };
    let role = if report.role == Role::default() { String::new() } else { format!("  ({})", report.role) };
    line("Server:", &format!("{BOLD}{}{BOLD:#}{}", clean(&report.server), clean(&role)));
    line("Data:", &freshness(report, options));
    if let Some(warning) = &report.warning {
        line("", &format!("{WARN}{}{WARN:#}", clean(warning)));
    }
    line("Nodes:", &node_line(&report.nodes));
    for (name, usage) in &report.usage {
        line(&format!("{}:", short_name(name)), &usage_line(name, usage));
    }
    line("Jobs:", &job_line(&report.jobs));
    line("Audit:", &audit_line(report.findings.as_deref()));
    for finding in report.findings.iter().flatten().take(5) {
        line(
            "",
            &format!(
                "{BAD}{}{BAD:#} {}: {}",
                clean(&finding.class),
                clean(&finding.object),
                clean(&finding.text)
            ),
        );
    }
    if let Some(more) =
        report.findings.as_ref().map(|all| all.len().saturating_sub(5)).filter(|more| *more > 0)
    {
        line("", &format!("and {more} more; run `kubectl fluxion status -o json` to list all findings"));
    }
    if !report.queues.is_empty() {
        text.push('\n');
        text.push_str(&queues(&report.queues, options));
    }
    text
}

fn freshness(report: &StatusReport, options: &Options) -> String {
    let Some(taken) = parse(&report.observed_at) else { return "age unknown".to_owned() };
    let age = options.now.duration_since(taken).as_secs_f64().max(0.0);
    let style = if age < 5.0 { GOOD } else { WARN };
    let age = if age < 10.0 {
        format!("{age:.1}s old")
    } else {
        format!("{} old", ago(Some(&report.observed_at), options.now))
    };
    format!("{style}{age}{style:#}  {DIM}snapshot {}{DIM:#}", clean(&report.resource_version))
}

fn node_line(nodes: &NodeCount) -> String {
    let mut text = format!("{} of {} schedulable", nodes.eligible, nodes.total);
    if nodes.total == 0 {
        "none".clone_into(&mut text);
    }
    let mut reasons: Vec<_> = nodes.reasons.iter().collect();
    reasons.sort_by_key(|(reason, count)| (std::cmp::Reverse(**count), *reason));
    let mut parts: Vec<String> =
        reasons.iter().take(4).map(|(reason, count)| format!("{count} {}", clean(reason))).collect();
    if reasons.len() > 4 {
        parts.push("…".to_owned());
    }
    if !parts.is_empty() {
        put!(text, "  {WARN}({}){WARN:#}", parts.join(", "));
    }
    text
}

fn short_name(resource: &str) -> String {
    match resource {
        "cpu" => "CPU".to_owned(),
        "memory" => "Memory".to_owned(),
        other => clean(other.rsplit('/').next().unwrap_or(other)).to_uppercase(),
    }
}

fn usage_line(name: &str, usage: &Usage) -> String {
    let NodeUse { share, foreign } = usage.amounts;
    let style = if share.used > share.whole { BAD } else { GOOD };
    let mut text = format!(
        "{style}{}{style:#} {:>3.0}%  {} of {}",
        bar(share, 24),
        share.used.ratio(share.whole) * 100.0,
        share.used.shown(name),
        share.whole.shown(name)
    );
    for (amount, what) in [(share.reserved, "reserved"), (foreign, "used by other schedulers")] {
        if amount > Amount::ZERO {
            put!(text, ", {} {what}", amount.shown(name));
        }
    }
    text
}

fn job_line(jobs: &BTreeMap<JobState, u32>) -> String {
    let known = JobState::ALL.iter().filter_map(|state| jobs.get_key_value(state));
    let others = jobs.iter().filter(|(state, _)| matches!(state, JobState::Unknown(_)));
    let parts: Vec<String> = known
        .chain(others)
        .filter(|(_, number)| **number > 0)
        .map(|(state, number)| {
            let style = state_style(state);
            format!("{style}{number} {}{style:#}", clean(state.as_str()))
        })
        .collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

fn audit_line(findings: Option<&[Finding]>) -> String {
    match findings.map(<[Finding]>::len) {
        None => format!("{DIM}not available{DIM:#}"),
        Some(0) => format!("{GOOD}no problems found{GOOD:#}"),
        Some(1) => format!("{BAD}1 problem{BAD:#}"),
        Some(number) => format!("{BAD}{number} problems{BAD:#}"),
    }
}

fn queues(queues: &[FluxionQueue], options: &Options) -> String {
    let mut table =
        Table::new(vec!["QUEUE", "POLICY", "DEPTH", "RESERVATIONS", "WAITING", "RUNNING", "LAST PASS"]);
    for queue in queues {
        let count = |counted: fn(&JobState) -> bool| {
            let jobs = queue.status.jobs.iter().filter(|(state, _)| counted(state));
            jobs.fold(0_u32, |sum, (_, number)| sum.saturating_add(*number))
        };
        let pass = &queue.status.last_pass;
        let last = pass.at.as_deref().map_or_else(
            || "none yet".to_owned(),
            |at| {
                // A pass may be too short to be measured, or not be measured at all.
                let took = if pass.seconds < 0.000_05 {
                    String::new()
                } else {
                    format!(", took {:.1} ms", pass.seconds * 1000.0)
                };
                format!(
                    "{} ago{took}: {} considered, {} started",
                    ago(Some(at), options.now),
                    pass.tried,
                    pass.started
                )
            },
        );
        table.push(vec![
            Painted::new(&queue.metadata.name, BOLD),
            queue.spec.policy.as_str().into(),
            queue.spec.queue_depth.to_string().into(),
            queue.spec.reservation_depth.to_string().into(),
            count(JobState::is_queued).to_string().into(),
            count(JobState::holds_nodes).to_string().into(),
            last.into(),
        ]);
    }
    table.take(options.headers, options.width)
}
