//! The resource `fluxionjobs`.

use fluxion_api::{FluxionJob, ObjectMeta};
use fluxion_scheduler::state::{Job, JobId};

use super::{Key, Listed, Resource};
use crate::view::{Visible, job};

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

    fn field<'a>(object: &'a FluxionJob, field: &str) -> Vec<&'a str> {
        match field {
            "metadata.name" => vec![&object.metadata.name],
            "metadata.namespace" => object.metadata.namespace.as_deref().into_iter().collect(),
            "status.state" => vec![object.status.state.as_str()],
            "spec.queue" => vec![&object.spec.queue],
            "spec.group.kind" => vec![&object.spec.group.kind],
            "spec.group.name" => vec![&object.spec.group.name],
            // Where it is, or will be.
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
}

/// The job's revision, and of what it shows of others: its place in the queue, and the jobs that it waits for.
fn stamp(visible: &Visible<'_>, job: &Job) -> Vec<u64> {
    let position = visible.position(job.id).map_or(0, u64::from);
    let others = job.waits_for.iter().filter_map(|id| visible.state.job(*id));
    let others = others.flat_map(|other| [u64::from(other.id.0), visible.state.revision_of(other.id)]);
    [visible.state.revision_of(job.id), position].into_iter().chain(others).collect()
}
