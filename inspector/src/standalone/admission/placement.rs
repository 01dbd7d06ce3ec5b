//! Scheduling constraints of a Pod: selectors, affinity, tolerations, topology spread.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm, PodSpec, Toleration, WeightedPodAffinityTerm,
};

use super::meta;
use super::problems::{Path, Problems, one_of};
use super::syntax::{dns_subdomain, label_value, qualified_name};

/// Taint effects.
pub(super) const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const NO_OPERATOR: &str = "not a valid selector operator";

/// All scheduling constraints of a Pod.
pub(super) fn all(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    meta::labels(spec.node_selector.as_ref(), &path.field("nodeSelector"), problems);
    let list = path.field("tolerations");
    for (index, wanted) in spec.tolerations.iter().flatten().enumerate() {
        toleration(wanted, &list.item(index), problems);
    }
    spread(spec, path, problems);
    let Some(affinity) = &spec.affinity else { return };
    let path = path.field("affinity");
    if let Some(node) = &affinity.node_affinity {
        let path = path.field("nodeAffinity");
        if let Some(required) = &node.required_during_scheduling_ignored_during_execution {
            let path = path.field(REQUIRED);
            let list = path.field("nodeSelectorTerms");
            if required.node_selector_terms.is_empty() {
                problems.required(&list, "must have at least one node selector term");
            }
            for (index, term) in required.node_selector_terms.iter().enumerate() {
                node_term(term, &list.item(index), problems);
            }
        }
        let list = path.field(PREFERRED);
        let preferred = node.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        for (index, preference) in preferred.enumerate() {
            let path = list.item(index);
            weight(preference.weight, &path, problems);
            node_term(&preference.preference, &path.field("preference"), problems);
        }
    }
    if let Some(pods) = &affinity.pod_affinity {
        let required = pods.required_during_scheduling_ignored_during_execution.as_deref();
        let preferred = pods.preferred_during_scheduling_ignored_during_execution.as_deref();
        pod_terms(required, preferred, &path.field("podAffinity"), problems);
    }
    if let Some(pods) = &affinity.pod_anti_affinity {
        let required = pods.required_during_scheduling_ignored_during_execution.as_deref();
        let preferred = pods.preferred_during_scheduling_ignored_during_execution.as_deref();
        pod_terms(required, preferred, &path.field("podAntiAffinity"), problems);
    }
}

fn weight(weight: i32, path: &Path<'_>, problems: &mut Problems) {
    if !(1..=100).contains(&weight) {
        problems.invalid(&path.field("weight"), weight, "must be in the range 1-100");
    }
}

fn node_term(term: &NodeSelectorTerm, path: &Path<'_>, problems: &mut Problems) {
    let list = path.field("matchExpressions");
    for (index, expression) in term.match_expressions.iter().flatten().enumerate() {
        node_label(expression, &list.item(index), problems);
    }
    let list = path.field("matchFields");
    for (index, expression) in term.match_fields.iter().flatten().enumerate() {
        node_field(expression, &list.item(index), problems);
    }
}

fn node_label(expression: &NodeSelectorRequirement, path: &Path<'_>, problems: &mut Problems) {
    let values = expression.values.as_deref().unwrap_or_default();
    let values_path = path.field("values");
    match expression.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => {
            problems.required(&values_path, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            problems.forbidden(&values_path, why);
        }
        "Gt" | "Lt" if values.len() != 1 => {
            problems.required(&values_path, "must be specified single value when `operator` is 'Lt' or 'Gt'");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => problems.invalid(&path.field("operator"), other, NO_OPERATOR),
    }
    problems.names(&path.field("key"), &expression.key, qualified_name(&expression.key));
    for (index, value) in values.iter().enumerate() {
        problems.names(&values_path.item(index), value, label_value(value));
    }
}

/// `metadata.name` is the only supported field.
fn node_field(expression: &NodeSelectorRequirement, path: &Path<'_>, problems: &mut Problems) {
    let values = expression.values.as_deref().unwrap_or_default();
    let values_path = path.field("values");
    match expression.operator.as_str() {
        "In" | "NotIn" if values.len() != 1 => {
            let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            problems.required(&values_path, why);
        }
        "In" | "NotIn" => {}
        other => problems.invalid(&path.field("operator"), other, NO_OPERATOR),
    }
    if expression.key == "metadata.name" {
        for (index, value) in values.iter().enumerate() {
            problems.names(&values_path.item(index), value, dns_subdomain(value));
        }
    } else {
        problems.invalid(&path.field("key"), &expression.key, "not a valid field selector key");
    }
}

fn pod_terms(
    required: Option<&[PodAffinityTerm]>,
    preferred: Option<&[WeightedPodAffinityTerm]>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let list = path.field(REQUIRED);
    for (index, term) in required.into_iter().flatten().enumerate() {
        pod_term(term, &list.item(index), problems);
    }
    let list = path.field(PREFERRED);
    for (index, preference) in preferred.into_iter().flatten().enumerate() {
        let path = list.item(index);
        weight(preference.weight, &path, problems);
        pod_term(&preference.pod_affinity_term, &path.field("podAffinityTerm"), problems);
    }
}

fn pod_term(term: &PodAffinityTerm, path: &Path<'_>, problems: &mut Problems) {
    for (field, selector) in
        [("labelSelector", &term.label_selector), ("namespaceSelector", &term.namespace_selector)]
    {
        if let Some(selector) = selector {
            meta::selector(selector, &path.field(field), problems);
        }
    }
    topology_key(&term.topology_key, path, problems);
}

fn topology_key(key: &str, path: &Path<'_>, problems: &mut Problems) {
    let path = path.field("topologyKey");
    if key.is_empty() {
        problems.required(&path, "can not be empty");
    } else {
        problems.names(&path, key, qualified_name(key));
    }
}

fn toleration(wanted: &Toleration, path: &Path<'_>, problems: &mut Problems) {
    let key = wanted.key.as_deref().unwrap_or_default();
    let value = wanted.value.as_deref().unwrap_or_default();
    let operator = wanted.operator.as_deref().unwrap_or_default();
    let effect = wanted.effect.as_deref().unwrap_or_default();
    let operator_path = path.field("operator");
    if !key.is_empty() {
        problems.names(&path.field("key"), key, qualified_name(key));
    } else if operator != "Exists" {
        let why =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        problems.invalid(&operator_path, operator, why);
    }
    if wanted.toleration_seconds.is_some() && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        problems.invalid(&path.field("effect"), effect, why);
    }
    match operator {
        "" | "Equal" => problems.names(&operator_path, value, label_value(value)),
        "Exists" if !value.is_empty() => {
            problems.invalid(&operator_path, value, "value must be empty when `operator` is 'Exists'");
        }
        "Exists" => {}
        other => problems.unsupported(&operator_path, other, &["Equal", "Exists"]),
    }
    if !effect.is_empty() {
        one_of(Some(effect), &EFFECTS, |text, values| {
            problems.unsupported(&path.field("effect"), text, values);
        });
    }
}

fn spread(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let list = path.field("topologySpreadConstraints");
    let mut seen = BTreeSet::new();
    for (index, constraint) in spec.topology_spread_constraints.iter().flatten().enumerate() {
        let path = list.item(index);
        let (key, action) = (constraint.topology_key.as_str(), constraint.when_unsatisfiable.as_str());
        if constraint.max_skew <= 0 {
            problems.invalid(&path.field("maxSkew"), constraint.max_skew, "must be greater than zero");
        }
        topology_key(key, &path, problems);
        one_of(Some(action), &["DoNotSchedule", "ScheduleAnyway"], |text, values| {
            problems.unsupported(&path.field("whenUnsatisfiable"), text, values);
        });
        if !seen.insert((key, action)) {
            problems.duplicate(&path, &format!("{{{key}, {action}}}"));
        }
        if let Some(domains) = constraint.min_domains.filter(|domains| *domains <= 0) {
            problems.invalid(&path.field("minDomains"), domains, "must be greater than zero");
        }
        if let Some(selector) = &constraint.label_selector {
            meta::selector(selector, &path.field("labelSelector"), problems);
        }
    }
}
