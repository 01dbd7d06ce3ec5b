//! Where a Pod may run: selectors, required node affinity, tolerations, host ports.

use std::collections::BTreeMap;

use fluxion_scheduler::constraint::{
    Expression, HostPort, NodeConstraint, Operator, Protocol, TaintEffect, Term, Toleration,
    TolerationOperator,
};
use fluxion_scheduler::model::SharedStr;
use k8s_openapi::api::core::v1::{
    Container, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Toleration as ApiToleration,
};

use super::short;

pub(super) fn node_constraint(spec: &PodSpec, problems: &mut Vec<SharedStr>) -> NodeConstraint {
    let required = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    NodeConstraint {
        selector: selector(spec.node_selector.as_ref()),
        affinity: required.map(|selector| known_terms(selector, problems)),
        tolerations: spec.tolerations.iter().flatten().filter_map(|one| toleration(one, problems)).collect(),
        ..NodeConstraint::default()
    }
}

/// Alternatives, one of which must match.
pub(in crate::kube) fn terms(selector: &NodeSelector) -> Vec<Term> {
    known_terms(selector, &mut Vec::new())
}

fn known_terms(selector: &NodeSelector, problems: &mut Vec<SharedStr>) -> Vec<Term> {
    selector.node_selector_terms.iter().map(|one| term(one, problems)).collect()
}

fn selector(map: Option<&BTreeMap<String, String>>) -> BTreeMap<SharedStr, SharedStr> {
    map.into_iter().flatten().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
}

pub(super) fn term(term: &NodeSelectorTerm, problems: &mut Vec<SharedStr>) -> Term {
    Term {
        labels: term.match_expressions.iter().flatten().map(|one| expression(one, problems)).collect(),
        fields: term.match_fields.iter().flatten().map(|one| expression(one, problems)).collect(),
    }
}

fn expression(requirement: &NodeSelectorRequirement, problems: &mut Vec<SharedStr>) -> Expression {
    let operator = match requirement.operator.as_str() {
        "In" => Some(Operator::In),
        "NotIn" => Some(Operator::NotIn),
        "Exists" => Some(Operator::Exists),
        "DoesNotExist" => Some(Operator::DoesNotExist),
        "Gt" => Some(Operator::Gt),
        "Lt" => Some(Operator::Lt),
        _ => None,
    };
    let values = requirement.values.iter().flatten().map(|value| value.as_str().into()).collect();
    let key = requirement.key.as_str().into();
    if let Some(operator) = operator {
        return Expression { key, operator, values };
    }
    let (key_shown, operator) = (short(&requirement.key), short(&requirement.operator));
    problems.push(
        format!("node affinity on {key_shown} has unknown operator '{operator}' and matches no node").into(),
    );
    // `In` without values: an invalid requirement matches no node.
    Expression { key, operator: Operator::In, values: Vec::new() }
}

/// `None` for an invalid one: it tolerates nothing.
fn toleration(toleration: &ApiToleration, problems: &mut Vec<SharedStr>) -> Option<Toleration> {
    let operator = match toleration.operator.as_deref() {
        None | Some("" | "Equal") => Some(TolerationOperator::Equal),
        Some("Exists") => Some(TolerationOperator::Exists),
        Some(_) => None,
    };
    let effect = match toleration.effect.as_deref() {
        None | Some("") => Some(None),
        Some(effect) => taint_effect(effect).map(Some),
    };
    let key = toleration.key.as_deref().filter(|key| !key.is_empty()).map(SharedStr::from);
    let (Some(operator), Some(effect)) = (operator, effect) else {
        let of = key.as_deref().map_or_else(|| "all taints".to_owned(), short);
        let (what, value) = match operator {
            None => ("operator", toleration.operator.as_deref()),
            Some(_) => ("effect", toleration.effect.as_deref()),
        };
        let value = short(value.unwrap_or_default());
        problems
            .push(format!("toleration of {of} has unknown {what} '{value}' and tolerates nothing").into());
        return None;
    };
    Some(Toleration { key, operator, value: toleration.value.as_deref().unwrap_or_default().into(), effect })
}

pub(super) fn taint_effect(effect: &str) -> Option<TaintEffect> {
    match effect {
        "NoSchedule" => Some(TaintEffect::NoSchedule),
        "PreferNoSchedule" => Some(TaintEffect::PreferNoSchedule),
        "NoExecute" => Some(TaintEffect::NoExecute),
        _ => None,
    }
}

/// Host ports of the containers that run concurrently. With hostNetwork, every port is a host port.
pub(super) fn host_ports(spec: &PodSpec, problems: &mut Vec<SharedStr>) -> Vec<HostPort> {
    let on_host = spec.host_network == Some(true);
    let sidecars = spec
        .init_containers
        .iter()
        .flatten()
        .filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let mut ports: Vec<HostPort> = spec
        .containers
        .iter()
        .chain(sidecars)
        .flat_map(|container| container_ports(container, on_host, problems))
        .collect();
    ports.sort();
    ports.dedup();
    ports
}

fn container_ports(container: &Container, on_host: bool, problems: &mut Vec<SharedStr>) -> Vec<HostPort> {
    let mut found = Vec::new();
    for port in container.ports.iter().flatten() {
        let wanted = port.host_port.filter(|port| *port != 0).or(on_host.then_some(port.container_port));
        let Some(number) = wanted else { continue };
        let protocol = match port.protocol.as_deref() {
            None | Some("" | "TCP") => Some(Protocol::Tcp),
            Some("UDP") => Some(Protocol::Udp),
            Some("SCTP") => Some(Protocol::Sctp),
            Some(_) => None,
        };
        let number_fits = u16::try_from(number).ok().filter(|port| *port != 0);
        if let (Some(protocol), Some(port_number)) = (protocol, number_fits) {
            let ip = port.host_ip.as_deref().unwrap_or_default().into();
            found.push(HostPort { protocol, ip, port: port_number });
        } else {
            let protocol = short(port.protocol.as_deref().unwrap_or("TCP"));
            problems.push(format!("ignoring invalid host port {number}/{protocol}").into());
        }
    }
    found
}
