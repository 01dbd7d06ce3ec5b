//! Everything as one JSON document.

use std::collections::BTreeMap;

use anyhow::Result;
use fluxion_scheduler::sim::{Group, Machine, Report, TraceJob};
use serde::Serialize;

use super::PolicyRun;
use super::row::{Row, rows};
use crate::replicas::Confidence;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    cluster: Cluster,
    jobs: usize,
    results: Vec<PolicyResult<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cluster {
    nodes: u32,
    cores_per_node: u32,
    whole_nodes: bool,
    enforce_limits: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyResult<'a> {
    policy: &'static str,
    /// Of conservative queues: `compress`, `replan` or `mixed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    planning: Option<&'static str>,
    #[serde(flatten)]
    report: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<Confidence>,
    /// By `user`, `width` or `queue`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    by: BTreeMap<&'static str, &'a [Group]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<Vec<Row<'a>>>,
}

/// Everything as one JSON document; times in seconds.
pub(crate) fn json(
    machine: Machine,
    trace: &[TraceJob],
    results: &[PolicyRun],
    schedule: bool,
) -> Result<String> {
    let results = results.iter().map(|result| PolicyResult {
        policy: result.name,
        planning: result.planning,
        report: result.report,
        confidence: result.confidence,
        by: result.groups.iter().map(|(by, groups)| (by.name(), groups.as_slice())).collect(),
        schedule: schedule.then(|| rows(machine, trace, &result.outcome).collect()),
    });
    let document = Document {
        cluster: Cluster {
            nodes: machine.nodes,
            cores_per_node: machine.cores,
            whole_nodes: machine.whole_nodes,
            enforce_limits: machine.enforce_limits,
        },
        jobs: trace.len(),
        results: results.collect(),
    };
    Ok(serde_json::to_string_pretty(&document)?)
}
