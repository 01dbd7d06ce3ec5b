//! Pods.

use std::sync::Arc;

use fluxion_scheduler::constraint::volumes::{ClaimUse, Disk, PodVolumes};
use fluxion_scheduler::model::{AllocationRecord, Phase, PodSpec, SharedStr, Unsupported};
use k8s_openapi::api::core::v1::{self as core, Pod, PodCondition};

use super::{
    ALLOCATION, Meta, Unreadable, affinity, annotations, end, labels, peers, requests, reservation, seconds,
};

/// Converts a Pod without its volumes, which depend on other objects.
pub fn translate(pod: &Pod) -> Result<PodSpec, Unreadable> {
    let meta = Meta::read(&pod.metadata)?;
    let nothing = core::PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&nothing);
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let scheduled = condition(conditions, "PodScheduled");
    let mut problems = Vec::new();
    let (terms, unsupported_terms) = peers::terms(spec, &meta.namespace, pod.metadata.labels.as_ref());
    let labelled = pod.metadata.labels.as_ref();
    let preferences = peers::preferences(spec, &meta.namespace, labelled, &mut problems);
    let phase = phase(status.and_then(|status| status.phase.as_deref()));
    Ok(PodSpec {
        uid: meta.uid,
        namespace: meta.namespace,
        name: meta.name,
        scheduler_name: spec.scheduler_name.as_deref().unwrap_or("default-scheduler").into(),
        created: meta.created,
        deleting: meta.deleting,
        deletes_at: meta.deletes_at,
        phase,
        node: text(spec.node_name.as_deref()),
        nominated: text(status.and_then(|status| status.nominated_node_name.as_deref())),
        gates: spec.scheduling_gates.iter().flatten().map(|gate| gate.name.as_str().into()).collect(),
        needs: requests::needs(spec, status).map(Arc::new),
        constraint: Arc::new(affinity::node_constraint(spec, &mut problems)),
        ports: affinity::host_ports(spec, &mut problems).into(),
        terms,
        preferences,
        volumes: None,
        unsupported: unsupported(spec).chain(unsupported_terms).collect(),
        priority: spec.priority.unwrap_or(0),
        labels: labels(pod.metadata.labels.as_ref()),
        annotations: annotations(pod.metadata.annotations.as_ref()),
        scheduling_group: spec.scheduling_group.as_ref().and_then(|g| text(g.pod_group_name.as_deref())),
        controller: meta.controller,
        active_deadline: spec.active_deadline_seconds,
        scheduled_at: scheduled
            .filter(|condition| condition.status == "True")
            .and_then(|condition| seconds(condition.last_transition_time.as_ref())),
        record: record(pod, &mut problems),
        unscheduled: scheduled.filter(|condition| condition.status == "False").map(|condition| {
            let part = |part: &Option<String>| part.as_deref().unwrap_or_default().into();
            (part(&condition.reason), part(&condition.message))
        }),
        reserved: reservation::read(condition(conditions, reservation::RESERVED), &mut problems),
        disruption: condition(conditions, "DisruptionTarget")
            .filter(|condition| condition.status == "True")
            .map(|condition| condition.reason.as_deref().unwrap_or_default().into()),
        status_reason: text(status.and_then(|status| status.reason.as_deref())),
        problems,
        end: end::end(phase, status),
    })
}

/// Converts a Pod of a cluster, with its volumes: the objects that they refer to are watched.
pub fn in_cluster(pod: &Pod) -> Result<PodSpec, Unreadable> {
    let volumes = volumes(pod);
    let none = volumes.claims.is_empty() && volumes.disks.is_empty();
    Ok(PodSpec { volumes: (!none).then(|| Arc::new(volumes)), ..translate(pod)? })
}

/// The claims used by the Pod, in its namespace, and disks that can't be shared.
fn volumes(pod: &Pod) -> PodVolumes {
    let mut found = PodVolumes::default();
    for volume in pod.spec.iter().filter_map(|spec| spec.volumes.as_ref()).flatten() {
        found.disks.extend(disks(volume));
        let claim = match (&volume.persistent_volume_claim, &volume.ephemeral, &pod.metadata.name) {
            (Some(claim), ..) => ClaimUse { name: claim.claim_name.as_str().into(), ephemeral: false },
            // The claim of a generic ephemeral volume is named after Pod and volume.
            (None, Some(_), Some(pod)) => {
                ClaimUse { name: format!("{pod}-{}", volume.name).into(), ephemeral: true }
            }
            _ => continue,
        };
        if found.claims.iter().all(|known| known.name != claim.name) {
            found.claims.push(claim);
        }
    }
    found
}

/// A disk for each name under which others may mount the same one.
fn disks(volume: &core::Volume) -> Vec<Disk> {
    let one =
        |id: String, read_only: Option<bool>| Disk { id: id.into(), read_only: read_only == Some(true) };
    if let Some(disk) = &volume.gce_persistent_disk {
        return vec![one(format!("gce {}", disk.pd_name), disk.read_only)];
    }
    if let Some(disk) = &volume.aws_elastic_block_store {
        return vec![one(format!("ebs {}", disk.volume_id), None)];
    }
    if let Some(disk) = &volume.iscsi {
        return vec![one(format!("iscsi {}", disk.iqn), disk.read_only)];
    }
    let Some(disk) = &volume.rbd else { return Vec::new() };
    let pool = disk.pool.as_deref().unwrap_or("rbd");
    let at = |monitor: &String| one(format!("rbd {monitor} {pool} {}", disk.image), disk.read_only);
    disk.monitors.iter().map(at).collect()
}

fn text(value: Option<&str>) -> Option<SharedStr> {
    value.filter(|value| !value.is_empty()).map(SharedStr::from)
}

fn condition<'a>(conditions: &'a [PodCondition], kind: &str) -> Option<&'a PodCondition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

fn phase(phase: Option<&str>) -> Phase {
    match phase {
        None | Some("" | "Pending") => Phase::Pending,
        Some("Running") => Phase::Running,
        Some("Succeeded") => Phase::Succeeded,
        Some("Failed") => Phase::Failed,
        Some(_) => Phase::Unknown,
    }
}

/// The record that we wrote with the binding; none if it is no longer valid.
fn record(pod: &Pod, problems: &mut Vec<SharedStr>) -> Option<AllocationRecord> {
    let text = pod.metadata.annotations.as_ref()?.get(ALLOCATION)?;
    match serde_json::from_str(text) {
        Ok(record) => Some(record),
        Err(error) => {
            let instead = "start and planned end are derived from the Pod's conditions and limits instead";
            problems.push(
                format!("annotation {ALLOCATION} is not a valid allocation record ({error}): {instead}")
                    .into(),
            );
            None
        }
    }
}

fn unsupported(spec: &core::PodSpec) -> impl Iterator<Item = Unsupported> {
    let claims = spec.resource_claims.iter().flatten();
    claims.map(|claim| Unsupported::ResourceClaim(claim.name.as_str().into()))
}

#[cfg(test)]
mod tests;
