//! Nodes.

use std::collections::BTreeMap;

use fluxion_core::constraint::Taint;
use fluxion_core::inventory::NodeSpec;
use fluxion_core::quantity::Amount;
use fluxion_core::resources::ResourceList;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::affinity::taint_effect;
use super::{Meta, Unreadable, labels};

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// The node as the engine reads it.
pub fn translate(node: &Node) -> Result<NodeSpec, Unreadable> {
    let meta = Meta::read(&node.metadata)?;
    let (spec, status) = (node.spec.as_ref(), node.status.as_ref());
    let taints = spec.and_then(|spec| spec.taints.as_ref()).into_iter().flatten();
    let ready = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    Ok(NodeSpec {
        name: meta.name,
        uid: meta.uid,
        labels: labels(node.metadata.labels.as_ref()),
        taints: taints
            .filter_map(|taint| {
                Some(Taint {
                    key: taint.key.as_str().into(),
                    value: taint.value.as_deref().unwrap_or_default().into(),
                    effect: taint_effect(&taint.effect)?,
                })
            })
            .collect(),
        unschedulable: spec.and_then(|spec| spec.unschedulable) == Some(true),
        ready: ready.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"),
        deleting: meta.deleting,
        capacity: offered(status.and_then(|status| status.capacity.as_ref())),
        allocatable: offered(
            status.and_then(|status| status.allocatable.as_ref().or(status.capacity.as_ref())),
        ),
    })
}

/// What a node offers, rounded down. What is no quantity, negative or beyond counting is offered as nothing.
fn offered(list: Option<&BTreeMap<String, Quantity>>) -> ResourceList {
    let whole = |(resource, quantity): (&String, &Quantity)| {
        let nanos = quantity.0.parse::<Amount>().map_or(0, Amount::nanos);
        let unit = if resource == "cpu" { NANOS_PER_MILLI } else { NANOS_PER_UNIT };
        (resource.as_str().into(), u64::try_from(nanos.div_euclid(unit)).unwrap_or(0))
    };
    list.into_iter().flatten().map(whole).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_offers_whole_units_rounded_down() {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "n1", "uid": "u", "labels": {"zone": "a"}},
            "spec": {"unschedulable": true, "taints": [
                {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}, {"key": "odd", "effect": "Whatever"}]},
            "status": {
                "capacity": {"cpu": "4", "memory": "3731881984500m", "pods": "110"},
                "allocatable": {"cpu": "3920m", "memory": "1Gi", "nvidia.com/gpu": "rubbish", "x/y": "-1"},
                "conditions": [{"type": "Ready", "status": "True"}]}
        }))
        .unwrap();
        let spec = translate(&node).unwrap();
        assert_eq!(spec.capacity.to_string(), "cpu 4, memory 3731881984, pods 110");
        assert_eq!(spec.allocatable.to_string(), "cpu 3920m, memory 1073741824, nvidia.com/gpu 0, x/y 0");
        assert_eq!((spec.ready, spec.unschedulable, spec.taints.len()), (true, true, 1));
    }

    #[test]
    fn a_node_without_a_status_is_not_ready() {
        let node: Node = serde_json::from_value(json!({"metadata": {"name": "n1", "uid": "u"}})).unwrap();
        assert!(!translate(&node).unwrap().ready);
        let nameless: Node = serde_json::from_value(json!({"metadata": {"uid": "u"}})).unwrap();
        assert_eq!(translate(&nameless).unwrap_err().to_string(), "it has no metadata.name");
    }
}
