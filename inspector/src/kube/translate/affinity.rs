//! Where a Pod may run: selectors, required node affinity, tolerations, host ports.

use std::collections::BTreeMap;

use fluxion_core::constraint::{
    Effect, Expression, HostPort, NodeConstraint, Operator, Protocol, Term, Toleration, TolerationOperator,
};
use fluxion_core::model::Text;
use k8s_openapi::api::core::v1::{
    Container, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Toleration as ApiToleration,
};

pub(super) fn node_constraint(spec: &PodSpec) -> NodeConstraint {
    let required = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    NodeConstraint {
        selector: selector(spec.node_selector.as_ref()),
        affinity: required.map(terms),
        tolerations: spec.tolerations.iter().flatten().filter_map(toleration).collect(),
    }
}

/// Alternatives, of which one must match.
pub(in crate::kube) fn terms(selector: &NodeSelector) -> Vec<Term> {
    selector.node_selector_terms.iter().map(term).collect()
}

fn selector(map: Option<&BTreeMap<String, String>>) -> BTreeMap<Text, Text> {
    map.into_iter().flatten().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
}

fn term(term: &NodeSelectorTerm) -> Term {
    Term {
        labels: term.match_expressions.iter().flatten().map(expression).collect(),
        fields: term.match_fields.iter().flatten().map(expression).collect(),
    }
}

fn expression(requirement: &NodeSelectorRequirement) -> Expression {
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
    match operator {
        Some(operator) => Expression { key, operator, values },
        // One of no values: what is not understood matches no node.
        None => Expression { key, operator: Operator::In, values: Vec::new() },
    }
}

/// `None` for one that is not understood: it then tolerates nothing.
fn toleration(toleration: &ApiToleration) -> Option<Toleration> {
    let operator = match toleration.operator.as_deref() {
        None | Some("" | "Equal") => TolerationOperator::Equal,
        Some("Exists") => TolerationOperator::Exists,
        Some(_) => return None,
    };
    let effect = match toleration.effect.as_deref() {
        None | Some("") => None,
        Some(effect) => Some(taint_effect(effect)?),
    };
    let key = toleration.key.as_deref().filter(|key| !key.is_empty()).map(Text::from);
    Some(Toleration { key, operator, value: toleration.value.as_deref().unwrap_or_default().into(), effect })
}

pub(super) fn taint_effect(effect: &str) -> Option<Effect> {
    match effect {
        "NoSchedule" => Some(Effect::NoSchedule),
        "PreferNoSchedule" => Some(Effect::PreferNoSchedule),
        "NoExecute" => Some(Effect::NoExecute),
        _ => None,
    }
}

/// Ports on the node's own addresses, of the containers that run side by side. With the node's network every port
/// is one.
pub(super) fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
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
        .flat_map(|container| container_ports(container, on_host))
        .collect();
    ports.sort();
    ports.dedup();
    ports
}

fn container_ports(container: &Container, on_host: bool) -> impl Iterator<Item = HostPort> {
    container.ports.iter().flatten().filter_map(move |port| {
        let number = port.host_port.filter(|port| *port != 0).or(on_host.then_some(port.container_port))?;
        let protocol = match port.protocol.as_deref() {
            Some("UDP") => Protocol::Udp,
            Some("SCTP") => Protocol::Sctp,
            _ => Protocol::Tcp,
        };
        let ip = port.host_ip.as_deref().unwrap_or_default().into();
        Some(HostPort { protocol, ip, port: u16::try_from(number).ok().filter(|port| *port != 0)? })
    })
}
