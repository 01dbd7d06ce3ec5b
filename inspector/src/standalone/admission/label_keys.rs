//! `matchLabelKeys` and `mismatchLabelKeys` of inter-Pod affinity: a new Pod's own values of these labels become part of
//! the label selectors.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodAffinityTerm, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

/// Adds the Pod's values to its selectors; labels that it does not have are ignored, as are terms without a selector.
pub(super) fn merge(spec: &mut PodSpec, labels: Option<&BTreeMap<String, String>>) {
    let Some(affinity) = &mut spec.affinity else { return };
    let mut terms: Vec<&mut PodAffinityTerm> = Vec::new();
    if let Some(with) = &mut affinity.pod_affinity {
        terms.extend(with.required_during_scheduling_ignored_during_execution.iter_mut().flatten());
        let preferred = with.preferred_during_scheduling_ignored_during_execution.iter_mut().flatten();
        terms.extend(preferred.map(|preferred| &mut preferred.pod_affinity_term));
    }
    if let Some(against) = &mut affinity.pod_anti_affinity {
        terms.extend(against.required_during_scheduling_ignored_during_execution.iter_mut().flatten());
        let preferred = against.preferred_during_scheduling_ignored_during_execution.iter_mut().flatten();
        terms.extend(preferred.map(|preferred| &mut preferred.pod_affinity_term));
    }
    for term in terms {
        let keys = [("In", &term.match_label_keys), ("NotIn", &term.mismatch_label_keys)];
        let own = keys.into_iter().flat_map(|(operator, keys)| {
            keys.iter().flatten().filter_map(move |key| {
                let value = labels?.get(key)?;
                Some(LabelSelectorRequirement {
                    key: key.clone(),
                    operator: operator.to_owned(),
                    values: Some(vec![value.clone()]),
                })
            })
        });
        let own: Vec<_> = own.collect();
        if let Some(selector) = term.label_selector.as_mut().filter(|_| !own.is_empty()) {
            selector.match_expressions.get_or_insert_default().extend(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_the_pod_become_part_of_its_selectors() {
        let term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}},
            "matchLabelKeys": ["rev", "none"], "mismatchLabelKeys": ["job"]});
        let without = json!({"topologyKey": "zone", "matchLabelKeys": ["rev"]});
        let mut spec: PodSpec =
            serde_json::from_value(json!({"containers": [], "affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term, without]}}}))
            .unwrap();
        let labels = [("rev", "7"), ("job", "a")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        merge(&mut spec, Some(&labels.into()));
        let affinity = spec.affinity.unwrap().pod_affinity.unwrap();
        let terms = affinity.required_during_scheduling_ignored_during_execution.unwrap();
        let want = json!({"matchLabels": {"app": "web"}, "matchExpressions": [
            {"key": "rev", "operator": "In", "values": ["7"]}, {"key": "job", "operator": "NotIn", "values": ["a"]}]});
        assert_eq!(serde_json::to_value(&terms[0].label_selector).unwrap(), want);
        assert_eq!(terms[1].label_selector, None);
    }
}
