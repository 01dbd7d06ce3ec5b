//! The resource `fluxionjobs`.

mod columns;

use fluxion_api::job::WaitsFor;
use fluxion_api::{FluxionJob, ObjectMeta};
use fluxion_scheduler::state::{Job, JobId};

use super::{Key, Listed, Resource, Source, Stamp};
use crate::http::columns::{Cell, Column};
use crate::http::selector::Selector;
use crate::http::template::{Hole, Template};
use crate::view::{Visible, job, words};

/// The resource.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) struct Jobs;

impl Resource for Jobs {
    type Object = FluxionJob;
    type Id = JobId;

    const KIND: &'static str = "FluxionJob";
    const PLURAL: &'static str = "fluxionjobs";
    const FIELDS: &'static [&'static str] = &[
        "metadata.name",
        "metadata.namespace",
        "status.state",
        "spec.queue",
        "spec.group.kind",
        "spec.group.name",
        "node",
    ];
    const COLUMNS: &'static [Column] = columns::COLUMNS;
    const ALIKE: bool = true;

    fn rows(visible: &Visible<'_>) -> Vec<Listed<JobId>> {
        let rows = visible.state.jobs().map(|job| {
            let name = visible.state.object_name(job);
            (
                Key { namespace: job.key.namespace.clone(), name: name.into() },
                job.key.uid.clone(),
                job.id,
                Some(stamp(visible, job)),
            )
        });
        rows.collect()
    }

    fn render(visible: &Visible<'_>, id: &JobId) -> Option<FluxionJob> {
        visible.state.job(*id).map(|found| job::job(visible, found))
    }

    /// From the state: rendering thousands of jobs, most of which are not selected, takes much longer.
    fn selected(visible: &Visible<'_>, id: &JobId, labels: &Selector, fields: &Selector) -> bool {
        let Some(found) = visible.state.job(*id) else { return false };
        if !labels.accepts(|key| found.labels.get(key).map(|value| &**value).into_iter().collect()) {
            return false;
        }
        let state = words::state(found.state);
        let nodes = if fields.looks_at("node") { job::nodes(visible.state, found) } else { Vec::new() };
        fields.accepts(|field| match field {
            "metadata.namespace" => vec![&*found.key.namespace],
            "status.state" => vec![state.as_str()],
            "spec.queue" => vec![&*found.queue],
            "spec.group.kind" => vec![job::group_kind(found)],
            "spec.group.name" => vec![&*found.key.name],
            "node" => nodes.iter().map(|node| &**node).collect(),
            // The name belongs to the key of the row.
            _ => Vec::new(),
        })
    }

    fn field<'a>(object: &'a FluxionJob, field: &str) -> Vec<&'a str> {
        match field {
            "metadata.name" => vec![&object.metadata.name],
            "metadata.namespace" => object.metadata.namespace.as_deref().into_iter().collect(),
            "status.state" => vec![object.status.state.as_str()],
            "spec.queue" => vec![&object.spec.queue],
            "spec.group.kind" => vec![&object.spec.group.kind],
            "spec.group.name" => vec![&object.spec.group.name],
            // Current or planned nodes.
            "node" => {
                let on = object.status.allocation.iter().flat_map(|allocation| &allocation.nodes);
                let planned = object.status.reservation.iter().flat_map(|reservation| &reservation.nodes);
                on.map(|node| node.name.as_str()).chain(planned.map(String::as_str)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn meta(object: &FluxionJob) -> &ObjectMeta {
        &object.metadata
    }

    fn meta_mut(object: &mut FluxionJob) -> &mut ObjectMeta {
        &mut object.metadata
    }

    fn redact(object: &mut FluxionJob) {
        object.status.position = None;
        object.status.waits_for.clear();
        job::redact(object);
    }

    fn cells(object: &FluxionJob) -> Vec<Cell> {
        columns::cells(object)
    }

    fn rest(object: &mut FluxionJob, out: &mut Template) -> Result<(), serde_json::Error> {
        out.push("\"spec\":");
        out.push_json(&object.spec)?;
        out.push(",\"status\":");
        let (position, waits_for) =
            (object.status.position.take(), std::mem::take(&mut object.status.waits_for));
        let written = out.push_seen(&object.status);
        (object.status.position, object.status.waits_for) = (position, waits_for);
        written
    }

    fn fill(source: Source<'_, Self>, hole: Hole, out: &mut Vec<u8>) {
        let position = match source {
            Source::Now(visible, id) => visible.position(*id),
            Source::Was(object) => object.status.position,
        };
        if hole == Hole::Position {
            let cell = position.map_or_else(|| "\"-\"".to_owned(), |position| position.to_string());
            return out.extend_from_slice(cell.as_bytes());
        }
        if let Some(position) = position {
            out.extend_from_slice(format!("\"position\":{position},").as_bytes());
        }
        match source {
            Source::Now(visible, id) => {
                if let Some(found) = visible.state.job(*id).filter(|job| !job.waits_for.is_empty()) {
                    write_waits(out, &job::waits_for(visible, found));
                }
            }
            Source::Was(object) => write_waits(out, &object.status.waits_for),
        }
    }
}

fn write_waits(out: &mut Vec<u8>, waits: &[WaitsFor]) {
    // Texts and booleans, which can be written.
    if let (false, Ok(text)) = (waits.is_empty(), serde_json::to_string(waits)) {
        out.extend_from_slice(format!("\"waitsFor\":{text},").as_bytes());
    }
}

/// The job's revision, and of what it shows of others: its place in the queue, and the jobs that it waits for.
fn stamp(visible: &Visible<'_>, job: &Job) -> Stamp {
    let position = visible.position(job.id).map_or(0, u64::from);
    let others = job.waits_for.iter().filter_map(|id| visible.state.job(*id));
    let others = others.flat_map(|other| [u64::from(other.id.0), visible.state.revision_of(other.id)]);
    let seen = std::iter::once(position).chain(others).collect();
    Stamp { own: visible.state.revision_of(job.id), seen }
}
