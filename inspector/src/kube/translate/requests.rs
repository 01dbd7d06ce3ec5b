//! Requests of containers, as input for the scheduler's resource formula.

use std::collections::BTreeMap;

use fluxion_scheduler::resources::{
    ContainerAsk, InvalidRequest, PodAsk, Requests, ResourceList, pod_requests,
};
use k8s_openapi::api::core::v1::{Container, ContainerStatus, PodSpec, PodStatus, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

type Quantities = BTreeMap<String, Quantity>;

/// The Pod's requests, or why they can't be determined.
pub(super) fn needs(spec: &PodSpec, status: Option<&PodStatus>) -> Result<ResourceList, InvalidRequest> {
    let statuses =
        |list: fn(&PodStatus) -> Option<&Vec<ContainerStatus>>| status.and_then(list).map_or(&[][..], |l| l);
    let (running, started) =
        (statuses(|s| s.container_statuses.as_ref()), statuses(|s| s.init_container_statuses.as_ref()));
    let ask = |containers: &[Container], statuses: &[ContainerStatus]| -> Result<Vec<_>, InvalidRequest> {
        containers.iter().map(|container| container_ask(container, statuses)).collect()
    };
    let allocated = status.and_then(|status| status.allocated_resources.as_ref());
    let actual = status.and_then(|s| s.resources.as_ref()).and_then(|r| r.requests.as_ref());
    pod_requests(&PodAsk {
        init: ask(spec.init_containers.as_deref().unwrap_or_default(), started)?,
        app: ask(&spec.containers, running)?,
        overhead: amounts(spec.overhead.as_ref(), None)?,
        pod_level: asked(spec.resources.as_ref(), None)?,
        pod_level_allocated: allocated.map(|list| amounts(Some(list), None)).transpose()?,
        pod_level_actual: actual.map(|list| amounts(Some(list), None)).transpose()?,
        resize_infeasible: infeasible(status),
    })
}

fn container_ask(
    container: &Container,
    statuses: &[ContainerStatus],
) -> Result<ContainerAsk, InvalidRequest> {
    let status = statuses.iter().find(|status| status.name == container.name);
    let name = Some(container.name.as_str());
    let allocated = status.and_then(|status| status.allocated_resources.as_ref());
    let actual = status.and_then(|status| status.resources.as_ref()?.requests.as_ref());
    Ok(ContainerAsk {
        name: container.name.clone(),
        sidecar: container.restart_policy.as_deref() == Some("Always"),
        requests: asked(container.resources.as_ref(), name)?,
        allocated: allocated.map(|list| amounts(Some(list), name)).transpose()?,
        actual: actual.map(|list| amounts(Some(list), name)).transpose()?,
    })
}

/// Requests, with limits as defaults (set by the API server, but not necessarily in a file).
fn asked(
    resources: Option<&ResourceRequirements>,
    container: Option<&str>,
) -> Result<Requests, InvalidRequest> {
    let Some(resources) = resources else { return Ok(Requests::new()) };
    let mut asked = amounts(resources.limits.as_ref(), container)?;
    asked.extend(amounts(resources.requests.as_ref(), container)?);
    Ok(asked)
}

fn amounts(list: Option<&Quantities>, container: Option<&str>) -> Result<Requests, InvalidRequest> {
    let amount = |(resource, quantity): (&String, &Quantity)| match quantity.0.parse() {
        Ok(amount) => Ok((resource.as_str().into(), amount)),
        Err(_) => Err(InvalidRequest {
            container: container.map(str::to_owned),
            resource: resource.as_str().into(),
            problem: "is not a valid quantity",
        }),
    };
    list.into_iter().flatten().map(amount).collect()
}

/// According to the kubelet, the requested resize never fits its node.
fn infeasible(status: Option<&PodStatus>) -> bool {
    let Some(status) = status else { return false };
    let pending = status.conditions.iter().flatten().any(|condition| {
        condition.type_ == "PodResizePending"
            && condition.status == "True"
            && condition.reason.as_deref() == Some("Infeasible")
    });
    pending || status.resize.as_deref() == Some("Infeasible")
}
