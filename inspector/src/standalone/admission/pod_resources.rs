//! Pod-level resources compared with those of the containers.

use std::collections::BTreeMap;

use fluxion_text::quantity::Amount;
use k8s_openapi::api::core::v1::{PodSpec, ResourceRequirements};

use super::problems::{Path, Problems};
use super::quantities::Quantities;

/// The Pod's requests cover those of its containers, and no container's limit exceeds the Pod's.
pub(super) fn consistent(
    spec: &PodSpec,
    resources: &ResourceRequirements,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let whole = path.field("resources");
    let requests = whole.field("requests");
    let together = together(spec);
    for (name, quantity) in resources.requests.iter().flatten() {
        let Ok(amount) = quantity.0.parse::<Amount>() else { continue };
        if let Some(asked) = together.get(name.as_str()).filter(|asked| **asked > amount) {
            let why = format!("must be greater than or equal to aggregate container requests of {asked}");
            problems.invalid(&requests.key(name), &quantity.0, &why);
        }
    }
    let list = path.field("containers");
    for (index, container) in spec.containers.iter().enumerate() {
        let own = container.resources.as_ref().and_then(|resources| resources.limits.as_ref());
        for (name, quantity) in own.into_iter().flatten() {
            let most = resources.limits.as_ref().and_then(|limits| limits.get(name));
            let most = most.and_then(|most| most.0.parse::<Amount>().ok());
            let amount = quantity.0.parse::<Amount>().ok();
            if let (Some(most), Some(amount)) = (most, amount)
                && amount > most
            {
                let (item, why) =
                    (list.item(index), format!("must be less than or equal to pod limits of {most}"));
                let resources = item.field("resources");
                problems.invalid(&resources.field("limits").key(name), &quantity.0, &why);
            }
        }
    }
}

/// Total requests of the containers that run concurrently.
fn together(spec: &PodSpec) -> BTreeMap<&str, Amount> {
    let sidecars = spec.init_containers.iter().flatten();
    let sidecars = sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let mut sums: BTreeMap<&str, Amount> = BTreeMap::new();
    for container in spec.containers.iter().chain(sidecars) {
        let requests: Option<&Quantities> =
            container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        for (name, quantity) in requests.into_iter().flatten() {
            let Ok(amount) = quantity.0.parse::<Amount>() else { continue };
            let sum = sums.entry(name).or_default();
            *sum = sum.checked_add(amount).unwrap_or(*sum);
        }
    }
    sums
}
