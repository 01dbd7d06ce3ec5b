//! The resource `fluxionqueues`.

use fluxion_api::{FluxionQueue, JobState, ObjectMeta};
use fluxion_scheduler::model::SharedStr;

use super::{Key, Listed, Resource};
use crate::http::columns::{Cell, Column};
use crate::http::template::Template;
use crate::view::{Visible, queue};

/// The resource.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) struct Queues;

impl Resource for Queues {
    type Object = FluxionQueue;
    type Id = SharedStr;

    const KIND: &'static str = "FluxionQueue";
    const PLURAL: &'static str = "fluxionqueues";
    const FIELDS: &'static [&'static str] = &["metadata.name", "spec.policy"];
    const COLUMNS: &'static [Column] = &[
        Column::name("Name of the queue."),
        Column::text("Policy", "Scheduling policy: fcfs, easy, conservative or hybrid."),
        Column::number("Pending", "Number of waiting jobs."),
        Column::number("Running", "Number of running jobs."),
        Column::text("Last Pass", "Time since the last pass over the queue."),
        Column::number("Depth", "Maximum number of pending jobs considered per pass.").wide(),
        Column::number("Reservations", "Maximum number of reservations.").wide(),
        Column::text("Nodes", "Which suitable nodes are used first: low, high or spread.").wide(),
        Column::number("Tried", "Jobs considered in the last pass.").wide(),
        Column::number("Started", "Jobs started in the last pass.").wide(),
    ];
    // What it counts depends on who asks.
    const ALIKE: bool = false;

    fn rows(visible: &Visible<'_>) -> Vec<Listed<SharedStr>> {
        let row = |name: &SharedStr| {
            let key = Key { namespace: SharedStr::from(""), name: name.clone() };
            (key, SharedStr::from(""), name.clone(), None)
        };
        visible.state.queues().iter().map(|config| row(&config.name)).collect()
    }

    fn render(visible: &Visible<'_>, id: &SharedStr) -> Option<FluxionQueue> {
        let config = visible.state.queues().iter().find(|config| config.name == *id)?;
        Some(queue::queue(visible, config))
    }

    fn field<'a>(object: &'a FluxionQueue, field: &str) -> Vec<&'a str> {
        match field {
            "metadata.name" => vec![&object.metadata.name],
            "spec.policy" => vec![&object.spec.policy],
            _ => Vec::new(),
        }
    }

    fn meta(object: &FluxionQueue) -> &ObjectMeta {
        &object.metadata
    }

    fn meta_mut(object: &mut FluxionQueue) -> &mut ObjectMeta {
        &mut object.metadata
    }

    fn redact(object: &mut FluxionQueue) {
        object.status.jobs.clear();
    }

    fn cells(object: &FluxionQueue) -> Vec<Cell> {
        let (spec, status) = (&object.spec, &object.status);
        let count = |is_meant: fn(&JobState) -> bool| {
            let counts = status.jobs.iter().filter(|(state, _)| is_meant(state));
            Cell::Number(counts.map(|(_, count)| i64::from(*count)).sum())
        };
        let pass = &status.last_pass;
        vec![
            Cell::foreign(&object.metadata.name),
            Cell::text(&*spec.policy),
            count(JobState::is_queued),
            count(JobState::holds_nodes),
            Cell::since(pass.at.as_deref()),
            Cell::Number(spec.queue_depth.into()),
            Cell::Number(spec.reservation_depth.into()),
            Cell::text(&*spec.node_policy),
            Cell::Number(pass.tried.into()),
            Cell::Number(pass.started.into()),
        ]
    }

    fn rest(object: &mut FluxionQueue, out: &mut Template) -> Result<(), serde_json::Error> {
        out.push("\"spec\":");
        out.push_json(&object.spec)?;
        out.push(",\"status\":");
        out.push_json(&object.status)
    }
}
