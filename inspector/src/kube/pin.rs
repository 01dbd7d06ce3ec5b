//! Pins a Pod to a node and removes our scheduling gate, as an API server allows it: while a Pod is gated, its required
//! node affinity can only be narrowed.

use fluxion_scheduler::marks::GATE;
use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, PodSpec};

/// The field of a node's name, which unlike its hostname label always identifies it.
const NAME: &str = "metadata.name";

/// Changes the spec accordingly. Terms are alternatives, so each of them is narrowed.
pub fn pin(spec: &mut PodSpec, node: &str) {
    let affinity = spec.affinity.get_or_insert_default().node_affinity.get_or_insert_default();
    let required = affinity.required_during_scheduling_ignored_during_execution.get_or_insert_default();
    let terms = &mut required.node_selector_terms;
    if terms.is_empty() {
        terms.push(NodeSelectorTerm::default());
    }
    for term in terms {
        let fields = term.match_fields.get_or_insert_default();
        if !fields.iter().any(|one| names(one, node)) {
            fields.push(NodeSelectorRequirement {
                key: NAME.to_owned(),
                operator: "In".to_owned(),
                values: Some(vec![node.to_owned()]),
            });
        }
    }
    let gates = spec.scheduling_gates.get_or_insert_default();
    gates.retain(|gate| gate.name != GATE);
}

/// Whether the Pod still has our scheduling gate.
pub fn is_gated(spec: &PodSpec) -> bool {
    spec.scheduling_gates.iter().flatten().any(|gate| gate.name == GATE)
}

/// Whether it allows no other node than this one.
pub fn is_pinned(spec: &PodSpec, node: &str) -> bool {
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required =
        affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    let pinned = |term: &NodeSelectorTerm| term.match_fields.iter().flatten().any(|one| names(one, node));
    required.is_some_and(|required| {
        !required.node_selector_terms.is_empty() && required.node_selector_terms.iter().all(pinned)
    })
}

fn names(requirement: &NodeSelectorRequirement, node: &str) -> bool {
    requirement.key == NAME
        && requirement.operator == "In"
        && matches!(requirement.values.as_deref(), Some([only]) if only == node)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pinned(spec: Value) -> Value {
        let mut spec: PodSpec = serde_json::from_value(spec).unwrap();
        pin(&mut spec, "n1");
        assert!(!is_gated(&spec) && is_pinned(&spec, "n1") && !is_pinned(&spec, "n2"));
        serde_json::to_value(spec).unwrap()
    }

    #[test]
    fn every_alternative_is_narrowed_and_only_our_gate_removed() {
        let field = json!({"key": NAME, "operator": "In", "values": ["n1"]});
        let gates = json!([{"name": "other"}, {"name": GATE}]);
        let alone = pinned(json!({"containers": [], "schedulingGates": gates}));
        assert_eq!(alone["schedulingGates"], json!([{"name": "other"}]));
        let at = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        assert_eq!(alone.pointer(at), Some(&json!([{"matchFields": [field]}])));

        let label = json!({"key": "rack", "operator": "Exists"});
        let other = json!({"key": NAME, "operator": "NotIn", "values": ["n2"]});
        let preferred = json!([{"weight": 1, "preference": {"matchExpressions": [label]}}]);
        let both = pinned(json!({"containers": [], "affinity": {"podAffinity": {}, "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [label]}, {"matchFields": [other]}]}}}}));
        let terms =
            json!([{"matchExpressions": [label], "matchFields": [field]}, {"matchFields": [other, field]}]);
        assert_eq!(both.pointer(at), Some(&terms));
        assert_eq!(both["affinity"]["podAffinity"], json!({}));
        let again = pinned(both.clone());
        assert_eq!(again, both, "a second time changes nothing");
    }
}
