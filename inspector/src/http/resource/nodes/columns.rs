//! The table of nodes.

use fluxion_api::{FluxionNode, Quantities};
use fluxion_text::quantity::Amount;
use fluxion_text::{clean, is_gpu, summary};

use crate::http::columns::{Cell, Column};

pub(super) const COLUMNS: &[Column] = &[
    Column::name("Name of the node."),
    Column::text("Status", "Whether Pods can be scheduled to the node."),
    Column::text("CPU", "Allocated and allocatable cores."),
    Column::text("Memory", "Allocated and allocatable memory."),
    Column::text("GPU", "Allocated and allocatable GPUs."),
    Column::number("Jobs", "Jobs with resources on the node."),
    Column::text("Pods", "Allocated and allocatable Pods.").wide(),
    Column::text("Foreign", "Resources held by Pods that other schedulers placed.").wide(),
    Column::text("Reserved", "Resources reserved for planned jobs and for replacements of lost members.")
        .wide(),
    Column::text("Levels", "Topology domains of the node.").wide(),
    Column::text("Note", "Why no Pods can be scheduled to the node, and overcommitted resources.").wide(),
];

pub(super) fn cells(node: &FluxionNode) -> Vec<Cell> {
    let status = &node.status;
    let levels: Vec<String> = status.levels.iter().map(|(key, domain)| format!("{key}={domain}")).collect();
    let mut notes = status.reasons.clone();
    if !status.deficit.is_empty() {
        notes.insert(0, format!("overcommitted: {}", summary(&status.deficit, true)));
    }
    vec![
        Cell::foreign(&node.metadata.name),
        Cell::text(condition(node)),
        Cell::text(used(node, "cpu", |name| name == "cpu")),
        Cell::text(used(node, "memory", |name| name == "memory")),
        Cell::text(used(node, "gpu", is_gpu)),
        Cell::Number(i64::try_from(status.jobs.len()).unwrap_or(i64::MAX)),
        Cell::text(used(node, "pods", |name| name == "pods")),
        Cell::text(clean(&summary(&status.foreign, false))),
        Cell::text(clean(&summary(&status.reserved, false))),
        Cell::foreign(&levels.join(",")),
        Cell::foreign(&notes.join(", ")),
    ]
}

/// As `kubectl get nodes` prints it.
fn condition(node: &FluxionNode) -> String {
    let is = |wanted: &str| node.status.reasons.iter().any(|reason| reason == wanted);
    let ready = if is("not ready") { "NotReady" } else { "Ready" };
    if is("cordoned") { format!("{ready},SchedulingDisabled") } else { ready.to_owned() }
}

/// What is allocated of the resources that are meant, of what can be; nothing where there is none.
fn used(node: &FluxionNode, shown_as: &str, is_meant: impl Fn(&str) -> bool) -> String {
    let sum = |list: &Quantities| {
        let meant = list.iter().filter(|(name, _)| is_meant(name));
        meant.filter_map(|(_, text)| text.parse::<Amount>().ok()).fold(Amount::ZERO, Amount::plus)
    };
    let (used, whole) = (sum(&node.status.allocated), sum(&node.status.allocatable));
    if (used, whole) == (Amount::ZERO, Amount::ZERO) {
        return String::new();
    }
    format!("{}/{}", used.shown(shown_as), whole.shown(shown_as))
}
