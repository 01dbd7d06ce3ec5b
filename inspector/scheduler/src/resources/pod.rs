//! The resource requests of a Pod: only determined here.
//!
//! The maximum of (application containers and sidecars in total) and (each init container with the sidecars started
//! before it), plus the overhead of the runtime class; a Pod-level resource replaces that of the containers (KEP-753,
//! KEP-2837). During an in-place resize, the maximum of desired, allocated and actual amounts of the whole Pod applies
//! (KEP-1287), as in kube-scheduler 1.37.
//! Containers are added exactly; each resource is rounded up once.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ResourceList, whole};
use fluxion_text::quantity::Amount;

/// Exact amounts by resource name.
pub type Requests = BTreeMap<Arc<str>, Amount>;

/// Requests of a container. Limits must have been applied as defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerAsk {
    /// The container's name, for errors.
    pub name: String,
    /// An init container that keeps running (restartPolicy Always).
    pub sidecar: bool,
    /// Requests from the spec.
    pub requests: Requests,
    /// Allocated by the kubelet, if in the status.
    pub allocated: Option<Requests>,
    /// Actually used by the container runtime, if in the status.
    pub actual: Option<Requests>,
}

/// Everything that determines the requests of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodAsk {
    /// Init containers and sidecars in the order of the spec.
    pub init: Vec<ContainerAsk>,
    /// Application containers.
    pub app: Vec<ContainerAsk>,
    /// The runtime class's overhead.
    pub overhead: Requests,
    /// Pod-level requests.
    pub pod_level: Requests,
    /// Allocated to the Pod as a whole by the kubelet, if in the status.
    pub pod_level_allocated: Option<Requests>,
    /// Actually used by the Pod as a whole, if in the status.
    pub pod_level_actual: Option<Requests>,
    /// The desired resize is infeasible on its node, so it is ignored.
    pub resize_infeasible: bool,
}

/// An invalid request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{resource} of {} {problem}", container.as_ref().map_or("the Pod".to_owned(), |c| format!("container {c}")))]
pub struct InvalidRequest {
    /// The container, or none for the Pod as a whole.
    pub container: Option<String>,
    /// The resource.
    pub resource: Arc<str>,
    /// The problem: negative, or too large.
    pub problem: &'static str,
}

const NEGATIVE: &str = "is negative";
const TOO_LARGE: &str = "is too large";

/// The Pod's requests, including `pods` 1.
pub fn pod_requests(ask: &PodAsk) -> Result<ResourceList, InvalidRequest> {
    let infeasible = ask.resize_infeasible;
    let mut peak = Requests::new();
    if !infeasible {
        raise(&mut peak, &of_containers(ask, |container| Some(&container.requests))?);
    }
    // An infeasible wish counts only if nothing else is known.
    let counts = |one: &&ContainerAsk| !infeasible || !one.is_granted();
    let wish = |container| Some(container).filter(counts).map(|one: &ContainerAsk| &one.requests);
    let totals = ask.pod_level_allocated.as_ref().zip(ask.pod_level_actual.as_ref());
    let (allocated, actual) = if let Some((allocated, actual)) = totals {
        // These are of all containers.
        (stored(allocated, None)?, stored(actual, None)?)
    } else {
        let allocated = of_containers(ask, |one| one.allocated.as_ref().or_else(|| wish(one)))?;
        let actual = of_containers(ask, |one| one.in_use().or_else(|| wish(one)))?;
        (allocated, actual)
    };
    raise(&mut peak, &allocated);
    raise(&mut peak, &actual);
    peak.extend(of_pod_level(ask)?);
    add(&mut peak, &stored(&ask.overhead, None)?, None)?;
    let mut list = ResourceList::new();
    for (resource, amount) in peak {
        let quantity = whole(&resource, amount).ok_or_else(|| InvalidRequest {
            container: None,
            resource: resource.clone(),
            problem: TOO_LARGE,
        })?;
        if quantity > 0 {
            list.set(resource, quantity);
        }
    }
    list.set("pods", 1);
    Ok(list)
}

impl ContainerAsk {
    /// Whether the status contains what it has.
    fn is_granted(&self) -> bool {
        self.in_use().is_some()
    }

    /// What it has according to the status, at the latest known step of a resize.
    fn in_use(&self) -> Option<&Requests> {
        self.actual.as_ref().or(self.allocated.as_ref())
    }
}

/// The peak of all containers with these amounts of each.
fn of_containers<'a>(
    ask: &'a PodAsk,
    amounts: impl Fn(&'a ContainerAsk) -> Option<&'a Requests>,
) -> Result<Requests, InvalidRequest> {
    let own = |container: &'a ContainerAsk| match amounts(container) {
        Some(requests) => stored(requests, Some(&container.name)),
        None => Ok(Requests::new()),
    };
    let mut running = Requests::new();
    for container in &ask.app {
        add(&mut running, &own(container)?, Some(&container.name))?;
    }
    let mut sidecars = Requests::new();
    let mut peak = Requests::new();
    for container in &ask.init {
        let own = own(container)?;
        if container.sidecar {
            add(&mut running, &own, Some(&container.name))?;
            add(&mut sidecars, &own, Some(&container.name))?;
            raise(&mut peak, &sidecars);
        } else {
            let mut together = sidecars.clone();
            add(&mut together, &own, Some(&container.name))?;
            raise(&mut peak, &together);
        }
    }
    raise(&mut peak, &running);
    Ok(peak)
}

/// What replaces the sum of the containers.
fn of_pod_level(ask: &PodAsk) -> Result<Requests, InvalidRequest> {
    if ask.pod_level.is_empty() {
        return Ok(Requests::new());
    }
    let granted = [&ask.pod_level_allocated, &ask.pod_level_actual].into_iter().flatten();
    let known = ask.pod_level_allocated.is_some() || ask.pod_level_actual.is_some();
    let mut most =
        if ask.resize_infeasible && known { Requests::new() } else { stored(&ask.pod_level, None)? };
    for requests in granted {
        raise(&mut most, &stored(requests, None)?);
    }
    Ok(most)
}

/// The amounts as stored by an API server: milli-units, rounded up; negative ones are rejected.
fn stored(requests: &Requests, container: Option<&str>) -> Result<Requests, InvalidRequest> {
    let one = |(resource, amount): (&Arc<str>, &Amount)| {
        if amount.is_negative() {
            return Err(invalid(container, resource, NEGATIVE));
        }
        let amount = amount.ceil_to_milli();
        // The requests of each container must be valid as well, so that the error can name it.
        whole(resource, amount)
            .map(|_| (resource.clone(), amount))
            .ok_or_else(|| invalid(container, resource, TOO_LARGE))
    };
    requests.iter().map(one).collect()
}

fn add(sum: &mut Requests, more: &Requests, container: Option<&str>) -> Result<(), InvalidRequest> {
    for (resource, amount) in more {
        let slot = sum.entry(resource.clone()).or_default();
        *slot = slot
            .checked_add(*amount)
            .filter(|total| whole(resource, *total).is_some())
            .ok_or_else(|| invalid(container, resource, TOO_LARGE))?;
    }
    Ok(())
}

fn raise(most: &mut Requests, other: &Requests) {
    for (resource, amount) in other {
        let slot = most.entry(resource.clone()).or_default();
        *slot = (*slot).max(*amount);
    }
}

fn invalid(container: Option<&str>, resource: &Arc<str>, problem: &'static str) -> InvalidRequest {
    InvalidRequest { container: container.map(str::to_owned), resource: resource.clone(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(pairs: &[(&str, &str)]) -> Requests {
        pairs.iter().map(|(name, text)| (Arc::from(*name), text.parse().unwrap())).collect()
    }

    fn container(name: &str, pairs: &[(&str, &str)]) -> ContainerAsk {
        ContainerAsk { name: name.to_owned(), requests: amounts(pairs), ..ContainerAsk::default() }
    }

    fn sidecar(name: &str, pairs: &[(&str, &str)]) -> ContainerAsk {
        ContainerAsk { sidecar: true, ..container(name, pairs) }
    }

    fn needs(ask: &PodAsk) -> String {
        pod_requests(ask).unwrap().to_string()
    }

    #[test]
    fn fractions_are_added_exactly_and_rounded_up_once() {
        for (cpu, memory, want) in [
            ("0.1", "1.2Gi", "cpu 100m, memory 1288490189, pods 1"),
            ("1e-1", "129e6", "cpu 100m, memory 129000000, pods 1"),
            ("1500m", "2.56Gi", "cpu 1500m, memory 2748779070, pods 1"),
            (".25", "0.5Ki", "cpu 250m, memory 512, pods 1"),
        ] {
            let ask = PodAsk {
                app: vec![container("c", &[("cpu", cpu), ("memory", memory)])],
                ..PodAsk::default()
            };
            assert_eq!(needs(&ask), want);
        }
        let part = [("cpu", "0.0005"), ("memory", "1.3Gi")];
        let ask = PodAsk { app: vec![container("a", &part), container("b", &part)], ..PodAsk::default() };
        assert_eq!(needs(&ask), "cpu 2m, memory 2791728743, pods 1");
    }

    #[test]
    fn sidecars_count_only_for_init_containers_behind_them() {
        let s1 = sidecar("s1", &[("cpu", "200m"), ("memory", "128Mi")]);
        let s2 = sidecar("s2", &[("cpu", "300m"), ("memory", "64Mi")]);
        let app = vec![container("app", &[("cpu", "1"), ("memory", "512Mi")])];
        let first = PodAsk {
            init: vec![s1.clone(), container("i1", &[("cpu", "2"), ("memory", "256Mi")]), s2.clone()],
            app: app.clone(),
            ..PodAsk::default()
        };
        assert_eq!(needs(&first), "cpu 2200m, memory 738197504, pods 1");
        let last = PodAsk {
            init: vec![container("i1", &[("cpu", "2"), ("memory", "1Gi")]), s1, s2],
            app,
            ..PodAsk::default()
        };
        assert_eq!(needs(&last), "cpu 2, memory 1073741824, pods 1");
    }

    #[test]
    fn overhead_comes_on_top_of_the_peak() {
        let ask = PodAsk {
            init: vec![container("i1", &[("cpu", "500m"), ("memory", "2Gi")])],
            app: vec![container("app", &[("cpu", "400m"), ("memory", "1Gi")])],
            overhead: amounts(&[("cpu", "250m"), ("memory", "120Mi")]),
            ..PodAsk::default()
        };
        assert_eq!(needs(&ask), "cpu 750m, memory 2273312768, pods 1");
    }

    #[test]
    fn the_pod_level_replaces_only_what_it_names() {
        let ask = PodAsk {
            app: vec![
                container("a", &[("cpu", "700m"), ("memory", "256Mi"), ("example.com/fpga", "1")]),
                container("b", &[("cpu", "600m"), ("memory", "256Mi")]),
            ],
            pod_level: amounts(&[("memory", "3Gi")]),
            ..PodAsk::default()
        };
        assert_eq!(needs(&ask), "cpu 1300m, example.com/fpga 1, memory 3221225472, pods 1");
        let whole = PodAsk {
            app: vec![container("a", &[]), container("b", &[("cpu", "9")])],
            pod_level: amounts(&[("cpu", "1500m"), ("memory", "4Gi")]),
            ..PodAsk::default()
        };
        assert_eq!(needs(&whole), "cpu 1500m, memory 4294967296, pods 1");
    }

    #[test]
    fn a_resize_holds_the_larger_one_until_it_is_done_or_infeasible() {
        let grower = ContainerAsk {
            allocated: Some(amounts(&[("cpu", "4")])),
            actual: Some(amounts(&[("cpu", "5")])),
            ..container("c", &[("cpu", "10")])
        };
        let mut ask = PodAsk { app: vec![grower], ..PodAsk::default() };
        assert_eq!(needs(&ask), "cpu 10, pods 1");
        ask.resize_infeasible = true;
        assert_eq!(needs(&ask), "cpu 5, pods 1");
        ask.app[0].allocated = None;
        ask.app[0].actual = None;
        assert_eq!(needs(&ask), "cpu 10, pods 1", "without a status the wish is all there is");
        let whole = PodAsk {
            pod_level: amounts(&[("cpu", "2")]),
            pod_level_allocated: Some(amounts(&[("cpu", "3")])),
            ..PodAsk::default()
        };
        assert_eq!(needs(&whole), "cpu 3, pods 1");
    }

    #[test]
    fn a_resize_that_moves_resources_between_containers_does_not_hold_both() {
        let resized = |name: &str, wanted: &str, now: &str| ContainerAsk {
            allocated: Some(amounts(&[("cpu", now)])),
            actual: Some(amounts(&[("cpu", now)])),
            ..container(name, &[("cpu", wanted)])
        };
        let mut ask =
            PodAsk { app: vec![resized("a", "1", "3"), resized("b", "3", "1")], ..PodAsk::default() };
        assert_eq!(needs(&ask), "cpu 4, pods 1");
        // What is known of the Pod as a whole takes precedence.
        ask.pod_level_allocated = Some(amounts(&[("cpu", "5")]));
        ask.pod_level_actual = Some(amounts(&[("cpu", "6")]));
        assert_eq!(needs(&ask), "cpu 6, pods 1");
    }

    #[test]
    fn what_cannot_be_counted_names_container_and_resource() {
        let error = |ask: &PodAsk| pod_requests(ask).unwrap_err().to_string();
        let ask = PodAsk { app: vec![container("c", &[("memory", "-1")])], ..PodAsk::default() };
        assert_eq!(error(&ask), "memory of container c is negative");
        let ask = PodAsk { app: vec![container("c", &[("memory", "20E")])], ..PodAsk::default() };
        assert_eq!(error(&ask), "memory of container c is too large");
        let half = [("memory", "10E")];
        let ask = PodAsk { app: vec![container("a", &half), container("b", &half)], ..PodAsk::default() };
        assert_eq!(error(&ask), "memory of container b is too large");
        let ask = PodAsk { overhead: amounts(&[("cpu", "-1m")]), ..PodAsk::default() };
        assert_eq!(error(&ask), "cpu of the Pod is negative");
    }
}
