//! Nodes.

use std::collections::BTreeMap;

use fluxion_scheduler::constraint::Taint;
use fluxion_scheduler::inventory::NodeSpec;
use fluxion_scheduler::model::SharedStr;
use fluxion_scheduler::resources::ResourceList;
use fluxion_text::quantity::Amount;
use k8s_openapi::api::core::v1::{self as core, Node};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::affinity::taint_effect;
use super::{Meta, Unreadable, labels, short};

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// Converts a node.
pub fn translate(node: &Node) -> Result<NodeSpec, Unreadable> {
    let meta = Meta::read(&node.metadata)?;
    let (spec, status) = (node.spec.as_ref(), node.status.as_ref());
    let ready = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    let mut problems = Vec::new();
    let capacity = status.and_then(|status| status.capacity.as_ref());
    let allocatable = status.and_then(|status| status.allocatable.as_ref());
    Ok(NodeSpec {
        name: meta.name,
        uid: meta.uid,
        labels: labels(node.metadata.labels.as_ref()),
        taints: taints(spec.and_then(|spec| spec.taints.as_deref()).unwrap_or_default(), &mut problems),
        unschedulable: spec.and_then(|spec| spec.unschedulable) == Some(true),
        ready: ready.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"),
        deleting: meta.deleting,
        capacity: offered("capacity", capacity, &mut problems),
        allocatable: match allocatable {
            Some(list) => offered("allocatable", Some(list), &mut problems),
            None => offered("capacity", capacity, &mut Vec::new()),
        },
        problems,
    })
}

/// Taints with a known effect; others are ignored.
fn taints(taints: &[core::Taint], problems: &mut Vec<SharedStr>) -> Vec<Taint> {
    let mut known = Vec::with_capacity(taints.len());
    for taint in taints {
        match taint_effect(&taint.effect) {
            Some(effect) => known.push(Taint {
                key: taint.key.as_str().into(),
                value: taint.value.as_deref().unwrap_or_default().into(),
                effect,
            }),
            None => problems.push(
                format!(
                    "ignoring taint {} with unknown effect '{}'",
                    short(&taint.key),
                    short(&taint.effect)
                )
                .into(),
            ),
        }
    }
    known
}

/// The resources of a node, rounded down. Invalid, negative and too large quantities count as 0.
fn offered(
    what: &str,
    list: Option<&BTreeMap<String, Quantity>>,
    problems: &mut Vec<SharedStr>,
) -> ResourceList {
    let mut whole = |(resource, quantity): (&String, &Quantity)| {
        let unit = if resource == "cpu" { NANOS_PER_MILLI } else { NANOS_PER_UNIT };
        let amount = quantity.0.parse::<Amount>().ok();
        let amount = amount.and_then(|amount| u64::try_from(amount.nanos().div_euclid(unit)).ok());
        if amount.is_none() {
            problems.push(
                format!(
                    "status.{what} of {}: invalid quantity '{}', treated as 0",
                    short(resource),
                    short(&quantity.0)
                )
                .into(),
            );
        }
        (resource.as_str().into(), amount.unwrap_or(0))
    };
    list.into_iter().flatten().map(&mut whole).collect()
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
        let said = [("odd", "'Whatever'"), ("nvidia.com/gpu", "'rubbish'"), ("x/y", "'-1'")];
        assert_eq!(spec.problems.len(), said.len(), "{:?}", spec.problems);
        for ((what, value), problem) in said.iter().zip(&spec.problems) {
            assert!(problem.contains(what) && problem.contains(value), "{problem}");
        }
    }

    #[test]
    fn a_node_without_a_status_is_not_ready() {
        let node: Node = serde_json::from_value(json!({"metadata": {"name": "n1", "uid": "u"}})).unwrap();
        assert!(!translate(&node).unwrap().ready);
        let nameless: Node = serde_json::from_value(json!({"metadata": {"uid": "u"}})).unwrap();
        assert_eq!(translate(&nameless).unwrap_err().to_string(), "metadata.name is missing");
    }
}
