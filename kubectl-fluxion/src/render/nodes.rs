//! The table of nodes, with bars.

use std::collections::BTreeSet;

use fluxion_api::FluxionNode;

use super::Options;
use super::bars::{Share, bar};
use fluxion_text::quantity::Amount;

use super::quantity::{amount_of, is_gpu, summary};
use super::style::{BAD, BOLD, GOOD, Painted, WARN};
use super::table::Table;

/// Usage of one resource on one or more nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeUse {
    pub share: Share,
    /// The part of the usage allocated by other schedulers.
    pub foreign: Amount,
}

impl NodeUse {
    /// Usage of `resource` on `node`.
    pub fn of(node: &FluxionNode, resource: &str) -> Self {
        let status = &node.status;
        Self {
            share: Share {
                whole: amount_of(&status.allocatable, resource),
                used: amount_of(&status.allocated, resource),
                reserved: amount_of(&status.reserved, resource),
            },
            foreign: amount_of(&status.foreign, resource),
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            share: Share {
                whole: self.share.whole.plus(other.share.whole),
                used: self.share.used.plus(other.share.used),
                reserved: self.share.reserved.plus(other.share.reserved),
            },
            foreign: self.foreign.plus(other.foreign),
        }
    }
}

/// The resources shown as bars: cpu, memory, and all GPU resources of the nodes, in this order.
pub fn resources_of(nodes: &[FluxionNode]) -> Vec<String> {
    let gpus: BTreeSet<&String> = nodes
        .iter()
        .flat_map(|node| node.status.allocatable.keys().chain(node.status.allocated.keys()))
        .filter(|name| is_gpu(name))
        .collect();
    ["cpu".to_owned(), "memory".to_owned()].into_iter().chain(gpus.into_iter().cloned()).collect()
}

/// All GPU resources of a node combined; fractions of GPUs count like whole GPUs.
pub fn gpus(node: &FluxionNode) -> NodeUse {
    let names: BTreeSet<&String> =
        node.status.allocatable.keys().chain(node.status.allocated.keys()).collect();
    names
        .into_iter()
        .filter(|name| is_gpu(name))
        .fold(NodeUse::default(), |sum, name| sum.plus(NodeUse::of(node, name)))
}

/// The table of nodes, in the order given.
pub fn nodes(nodes: &[FluxionNode], options: &Options) -> String {
    let resources = resources_of(nodes);
    let mut table = node_table(&resources, options);
    for node in nodes {
        table.push(node_row(node, &resources, options));
    }
    table.take(options.headers, options.width)
}

/// An empty table with columns for cpu, memory and, if there are any, GPUs.
pub fn node_table(resources: &[String], options: &Options) -> Table {
    let mut columns = vec!["NAME", "STATUS", "CPU", "MEMORY"];
    if resources.len() > 2 {
        columns.push("GPU");
    }
    columns.push("JOBS");
    if options.wide {
        columns.extend(["PODS", "OTHER-SCHEDULERS", "RESERVED", "TOPOLOGY"]);
    }
    columns.push("NOTE");
    Table::new(columns)
}

/// One row of such a table.
pub fn node_row(node: &FluxionNode, resources: &[String], options: &Options) -> Vec<Painted> {
    let status = &node.status;
    let mut row: Vec<Painted> = vec![
        Painted::new(&node.metadata.name, BOLD),
        Painted::new(condition(node), if unschedulable(node) { WARN } else { GOOD }),
        cell(NodeUse::of(node, "cpu"), "cpu"),
        cell(NodeUse::of(node, "memory"), "memory"),
    ];
    if resources.len() > 2 {
        let gpus =
            resources[2..].iter().fold(NodeUse::default(), |sum, name| sum.plus(NodeUse::of(node, name)));
        row.push(if gpus.share.whole.nanos() == 0 && gpus.share.used.nanos() == 0 {
            "-".into()
        } else {
            cell(gpus, "gpu")
        });
    }
    row.push(status.jobs.len().to_string().into());
    if options.wide {
        let pods = NodeUse::of(node, "pods").share;
        row.push(format!("{}/{}", pods.used.shown(""), pods.whole.shown("")).into());
        row.push(summary(&status.foreign, false).into());
        row.push(summary(&status.reserved, false).into());
        let levels: Vec<String> =
            status.levels.iter().map(|(key, domain)| format!("{key}={domain}")).collect();
        row.push(if levels.is_empty() { "-".into() } else { levels.join(",").into() });
    }
    row.push(note(node));
    row
}

fn cell(usage: NodeUse, resource: &str) -> Painted {
    let Share { whole, used, .. } = usage.share;
    let style = if used > whole { BAD } else { anstyle::Style::new() };
    Painted::new(
        format!("{} {}/{}", bar(usage.share, 10), used.shown(resource), whole.shown(resource)),
        style,
    )
}

/// Whether no new Pods can start on the node; taints do not count, because Pods may tolerate them.
pub fn unschedulable(node: &FluxionNode) -> bool {
    !node.status.eligible && node.status.reasons.iter().any(|reason| !reason.starts_with("tainted "))
}

/// The state of the node as `kubectl get nodes` prints it.
fn condition(node: &FluxionNode) -> String {
    let is = |wanted: &str| node.status.reasons.iter().any(|reason| reason == wanted);
    let ready = if is("not ready") { "NotReady" } else { "Ready" };
    if is("cordoned") { format!("{ready},SchedulingDisabled") } else { ready.to_owned() }
}

/// Why the node does not accept Pods, and which resources are overcommitted.
fn note(node: &FluxionNode) -> Painted {
    let status = &node.status;
    if status.deficit.is_empty() {
        return Painted::new(status.reasons.join(", "), WARN);
    }
    let mut parts = status.reasons.clone();
    parts.insert(0, format!("overcommitted: {}", summary(&status.deficit, true)));
    Painted::new(parts.join(", "), BAD)
}
