//! Constraints between Pods: inter-Pod affinity and anti-affinity, topology spread; required and preferred.

use std::collections::BTreeMap;
use std::sync::Arc;

use fluxion_scheduler::constraint::{
    Expression, Operator, PodSelector, PodTerm, PodTerms, Preferences, PreferredNodes, PreferredPods,
    TopologySpread,
};
use fluxion_scheduler::model::{SharedStr, Unsupported};
use k8s_openapi::api::core::v1::{
    PodAffinityTerm, PodSpec, TopologySpreadConstraint, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::{affinity, short};

/// Maximum number of terms and constraints of a Pod that we bind: each costs work on every node.
const MOST_TERMS: usize = 64;

/// The constraints of a Pod in this namespace with these labels; none if there are none. What can't be interpreted
/// matches no Pod, and is the reason for not binding it.
pub(super) fn terms(
    spec: &PodSpec,
    namespace: &SharedStr,
    labels: Option<&BTreeMap<String, String>>,
) -> (Option<Arc<PodTerms>>, Option<Unsupported>) {
    let mut reading = Reading { namespace, labels, problem: None };
    let affinity = spec.affinity.as_ref();
    let with = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let with = with.and_then(|with| with.required_during_scheduling_ignored_during_execution.as_ref());
    let against = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let against =
        against.and_then(|against| against.required_during_scheduling_ignored_during_execution.as_ref());
    let terms = PodTerms {
        affinity: with.into_iter().flatten().map(|term| reading.term(term)).collect(),
        anti_affinity: against.into_iter().flatten().map(|term| Arc::new(reading.term(term))).collect(),
        spread: spec
            .topology_spread_constraints
            .iter()
            .flatten()
            .filter(|spread| !is_soft(spread))
            .map(|spread| reading.spread(spread))
            .collect(),
    };
    if terms.is_empty() {
        return (None, None);
    }
    if terms.len() > MOST_TERMS {
        reading.problem = Some(format!(
            "more than {MOST_TERMS} required inter-Pod affinity terms and topology spread constraints are not supported"
        ));
    }
    (Some(Arc::new(terms)), reading.problem.map(|problem| Unsupported::PodTerms(problem.into())))
}

/// The preferences of a Pod in this namespace with these labels; none if there are none. What can't be interpreted
/// matches nothing, and is one of the Pod's problems.
pub(super) fn preferences(
    spec: &PodSpec,
    namespace: &SharedStr,
    labels: Option<&BTreeMap<String, String>>,
    problems: &mut Vec<SharedStr>,
) -> Option<Arc<Preferences>> {
    let mut reading = Reading { namespace, labels, problem: None };
    let affinity = spec.affinity.as_ref();
    let nodes = affinity
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|nodes| nodes.preferred_during_scheduling_ignored_during_execution.as_ref());
    let with = affinity
        .and_then(|affinity| affinity.pod_affinity.as_ref())
        .and_then(|with| with.preferred_during_scheduling_ignored_during_execution.as_ref());
    let against = affinity
        .and_then(|affinity| affinity.pod_anti_affinity.as_ref())
        .and_then(|against| against.preferred_during_scheduling_ignored_during_execution.as_ref());
    let mut preferences = Preferences::default();
    for preferred in nodes.into_iter().flatten() {
        let term = affinity::term(&preferred.preference, problems);
        preferences.nodes.push(PreferredNodes { weight: weight(preferred.weight), term });
    }
    let pods = |terms: Option<&Vec<WeightedPodAffinityTerm>>, apart, reading: &mut Reading<'_>| {
        let one = |one: &WeightedPodAffinityTerm| PreferredPods {
            weight: weight(one.weight),
            apart,
            term: reading.term(&one.pod_affinity_term),
        };
        terms.into_iter().flatten().map(one).collect::<Vec<_>>()
    };
    preferences.pods = pods(with, false, &mut reading);
    preferences.pods.extend(pods(against, true, &mut reading));
    for spread in spec.topology_spread_constraints.iter().flatten().filter(|spread| is_soft(spread)) {
        preferences.spread.push(reading.spread(spread));
    }
    if let Some(problem) = reading.problem {
        problems.push(format!("preference ignored: {problem}").into());
    }
    if preferences.len() > MOST_TERMS {
        problems.push(format!("preferences ignored: there are more than {MOST_TERMS}").into());
        return None;
    }
    (!preferences.is_empty()).then(|| Arc::new(preferences))
}

/// An unknown action is treated as the stricter one.
fn is_soft(spread: &TopologySpreadConstraint) -> bool {
    spread.when_unsatisfiable == "ScheduleAnyway"
}

fn weight(weight: i32) -> u32 {
    u32::try_from(weight).unwrap_or(1).clamp(1, 100)
}

struct Reading<'a> {
    namespace: &'a SharedStr,
    labels: Option<&'a BTreeMap<String, String>>,
    problem: Option<String>,
}

impl Reading<'_> {
    fn term(&mut self, term: &PodAffinityTerm) -> PodTerm {
        // matchLabelKeys and mismatchLabelKeys are part of the selector: kube-apiserver adds them to it.
        let listed = term.namespaces.iter().flatten().map(|name| name.as_str().into()).collect();
        let mut selector = PodSelector {
            namespaces: listed,
            namespace_selector: term.namespace_selector.as_ref().map(|selector| self.expressions(selector)),
            labels: term.label_selector.as_ref().map(|selector| self.expressions(selector)),
        };
        if selector.namespaces.is_empty() && selector.namespace_selector.is_none() {
            selector.namespaces.insert(self.namespace.clone());
        }
        PodTerm { selector, topology: term.topology_key.as_str().into() }
    }

    fn spread(&mut self, spread: &TopologySpreadConstraint) -> TopologySpread {
        let mut labels = spread.label_selector.as_ref().map(|selector| self.expressions(selector));
        if let Some(labels) = &mut labels {
            for key in spread.match_label_keys.iter().flatten() {
                let value = self.labels.and_then(|labels| labels.get(key));
                labels.extend(value.map(|value| equal(key, value)));
            }
            labels.sort();
            labels.dedup();
        }
        let positive = |count: i32| u32::try_from(count).unwrap_or(1).max(1);
        TopologySpread {
            selector: PodSelector {
                namespaces: [self.namespace.clone()].into(),
                namespace_selector: None,
                labels,
            },
            topology: spread.topology_key.as_str().into(),
            max_skew: positive(spread.max_skew),
            min_domains: positive(spread.min_domains.unwrap_or(1)),
            honor_affinity: spread.node_affinity_policy.as_deref() != Some("Ignore"),
            honor_taints: spread.node_taints_policy.as_deref() == Some("Honor"),
        }
    }

    fn expressions(&mut self, selector: &LabelSelector) -> Vec<Expression> {
        let pairs = selector.match_labels.iter().flatten().map(|(key, value)| equal(key, value));
        let mut all: Vec<Expression> = pairs.collect();
        all.extend(selector.match_expressions.iter().flatten().map(|one| self.expression(one)));
        all.sort();
        all.dedup();
        all
    }

    fn expression(&mut self, requirement: &LabelSelectorRequirement) -> Expression {
        let operator = match requirement.operator.as_str() {
            "In" => Some(Operator::In),
            "NotIn" => Some(Operator::NotIn),
            "Exists" => Some(Operator::Exists),
            "DoesNotExist" => Some(Operator::DoesNotExist),
            _ => None,
        };
        let key = requirement.key.as_str().into();
        let values = requirement.values.iter().flatten().map(|value| value.as_str().into()).collect();
        if let Some(operator) = operator {
            return Expression { key, operator, values };
        }
        let (key_shown, operator) = (short(&requirement.key), short(&requirement.operator));
        self.problem = Some(format!("label selector on {key_shown} has unknown operator '{operator}'"));
        // `In` without values matches nothing.
        Expression { key, operator: Operator::In, values: Vec::new() }
    }
}

fn equal(key: &str, value: &str) -> Expression {
    Expression { key: key.into(), operator: Operator::In, values: vec![value.into()] }
}
