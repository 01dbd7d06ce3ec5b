//! Constraints of a gang's slots, in Kubernetes' terms: node selector, required node affinity, tolerations, host
//! ports. Both parsing and printing are implemented here, so that they stay consistent.

use std::sync::Arc;

use fluxion::jobspec::JobspecError;
use fluxion::jobspec::yaml::Value;
use serde_json::{Map, Value as Json, json};

use super::yaml::{only, refuse, text};
use crate::constraint::{
    Expression, HostPort, NodeConstraint, Operator, Protocol, TaintEffect, Term, Toleration,
    TolerationOperator,
};

const OPERATORS: [(&str, Operator); 6] = [
    ("In", Operator::In),
    ("NotIn", Operator::NotIn),
    ("Exists", Operator::Exists),
    ("DoesNotExist", Operator::DoesNotExist),
    ("Gt", Operator::Gt),
    ("Lt", Operator::Lt),
];
const TOLERATION_OPERATORS: [(&str, TolerationOperator); 2] =
    [("Equal", TolerationOperator::Equal), ("Exists", TolerationOperator::Exists)];
const EFFECTS: [(&str, TaintEffect); 3] = [
    ("NoSchedule", TaintEffect::NoSchedule),
    ("PreferNoSchedule", TaintEffect::PreferNoSchedule),
    ("NoExecute", TaintEffect::NoExecute),
];
const PROTOCOLS: [(&str, Protocol); 3] =
    [("TCP", Protocol::Tcp), ("UDP", Protocol::Udp), ("SCTP", Protocol::Sctp)];

fn by_name<T: Copy>(names: &[(&str, T)], key: &str, name: &str) -> Result<T, JobspecError> {
    if let Some((_, value)) = names.iter().find(|(known, _)| *known == name) {
        return Ok(*value);
    }
    let all: Vec<&str> = names.iter().map(|(known, _)| *known).collect();
    refuse(format!("\"{key}\" must be one of {}, not \"{name}\"", all.join(", ")))
}

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> &'static str {
    names.iter().find(|(_, known)| known == value).map_or("", |(name, _)| name)
}

pub(super) fn list<'v, 't>(value: &'v Value<'t>, key: &str) -> Result<&'v [Value<'t>], JobspecError> {
    match value.sequence() {
        Some(items) => Ok(items),
        None => refuse(format!("\"{key}\" is not a sequence")),
    }
}

/// Parses the constraint of a slot.
pub(super) fn constraint(value: &Value) -> Result<NodeConstraint, JobspecError> {
    only(value, "constraint", &["nodeSelector", "nodeAffinity", "tolerations"])?;
    let mut constraint = NodeConstraint::default();
    if let Some(selector) = value.get("nodeSelector") {
        let Some(pairs) = selector.mapping() else { return refuse("\"nodeSelector\" is not a mapping") };
        for (key, value) in pairs {
            let (Some(key), Some(value)) = (key.scalar(), value.scalar()) else {
                return refuse("\"nodeSelector\" must map labels to values");
            };
            if constraint.selector.insert(Arc::from(key), Arc::from(value)).is_some() {
                return refuse(format!("duplicate \"{key}\" in nodeSelector"));
            }
        }
    }
    if let Some(terms) = value.get("nodeAffinity") {
        let terms = list(terms, "nodeAffinity")?;
        constraint.affinity = Some(terms.iter().map(|term| read_term(term)).collect::<Result<_, _>>()?);
    }
    if let Some(tolerations) = value.get("tolerations") {
        let tolerations = list(tolerations, "tolerations")?;
        constraint.tolerations = tolerations.iter().map(|one| toleration(one)).collect::<Result<_, _>>()?;
    }
    Ok(constraint)
}

fn read_term(term: &Value) -> Result<Term, JobspecError> {
    only(term, "term", &["matchExpressions", "matchFields"])?;
    let read = |key: &str| match term.get(key) {
        Some(items) => list(items, key)?.iter().map(|one| expression(one)).collect(),
        None => Ok(Vec::new()),
    };
    Ok(Term { labels: read("matchExpressions")?, fields: read("matchFields")? })
}

pub(super) fn expression(value: &Value) -> Result<Expression, JobspecError> {
    only(value, "expression", &["key", "operator", "values"])?;
    let Some(key) = text(value, "key")? else { return refuse("Key \"key\" missing from expression") };
    let operator = text(value, "operator")?.unwrap_or_default();
    let operator = by_name(&OPERATORS, "operator", &operator)?;
    let mut values = Vec::new();
    if let Some(items) = value.get("values") {
        for item in list(items, "values")? {
            let Some(text) = item.scalar() else { return refuse("\"values\" must be a sequence of scalars") };
            values.push(Arc::from(text));
        }
    }
    Ok(Expression { key, operator, values })
}

fn toleration(value: &Value) -> Result<Toleration, JobspecError> {
    only(value, "toleration", &["key", "operator", "value", "effect"])?;
    let operator = match text(value, "operator")? {
        Some(name) => by_name(&TOLERATION_OPERATORS, "operator", &name)?,
        None => TolerationOperator::Equal,
    };
    let effect = match text(value, "effect")? {
        Some(name) => Some(by_name(&EFFECTS, "effect", &name)?),
        None => None,
    };
    Ok(Toleration {
        key: text(value, "key")?,
        operator,
        value: text(value, "value")?.unwrap_or_default(),
        effect,
    })
}

/// Parses the host ports of a slot.
pub(super) fn ports(value: &Value) -> Result<Vec<HostPort>, JobspecError> {
    list(value, "hostPorts")?.iter().map(|port| host_port(port)).collect()
}

fn host_port(value: &Value) -> Result<HostPort, JobspecError> {
    only(value, "host port", &["port", "protocol", "ip"])?;
    let protocol = match text(value, "protocol")? {
        Some(name) => by_name(&PROTOCOLS, "protocol", &name)?,
        None => Protocol::Tcp,
    };
    let port = value.get("port").and_then(Value::scalar).and_then(|text| text.parse().ok());
    match port {
        Some(port @ 1..) => Ok(HostPort { protocol, ip: text(value, "ip")?.unwrap_or_default(), port }),
        _ => refuse("\"port\" must be a number from 1 to 65535"),
    }
}

/// The constraint as JSON; none if it allows every node without taints.
pub(super) fn constraint_json(constraint: &NodeConstraint) -> Option<Json> {
    let mut parts = Map::new();
    if !constraint.selector.is_empty() {
        let pairs = constraint.selector.iter().map(|(key, value)| (key.to_string(), json!(**value)));
        parts.insert("nodeSelector".to_owned(), Json::Object(pairs.collect()));
    }
    if let Some(terms) = &constraint.affinity {
        parts.insert("nodeAffinity".to_owned(), terms.iter().map(term_json).collect());
    }
    if !constraint.tolerations.is_empty() {
        parts.insert("tolerations".to_owned(), constraint.tolerations.iter().map(toleration_json).collect());
    }
    (!parts.is_empty()).then_some(Json::Object(parts))
}

fn term_json(term: &Term) -> Json {
    let mut parts = Map::new();
    for (key, expressions) in [("matchExpressions", &term.labels), ("matchFields", &term.fields)] {
        if !expressions.is_empty() {
            parts.insert(key.to_owned(), expressions.iter().map(expression_json).collect());
        }
    }
    Json::Object(parts)
}

pub(super) fn expression_json(expression: &Expression) -> Json {
    let values: Vec<&str> = expression.values.iter().map(AsRef::as_ref).collect();
    let mut all = json!({"key": *expression.key, "operator": name_of(&OPERATORS, &expression.operator)});
    if !values.is_empty() {
        all["values"] = json!(values);
    }
    all
}

fn toleration_json(toleration: &Toleration) -> Json {
    let mut all = json!({"operator": name_of(&TOLERATION_OPERATORS, &toleration.operator)});
    if let Some(key) = &toleration.key {
        all["key"] = json!(**key);
    }
    if !toleration.value.is_empty() {
        all["value"] = json!(*toleration.value);
    }
    if let Some(effect) = &toleration.effect {
        all["effect"] = json!(name_of(&EFFECTS, effect));
    }
    all
}

/// Host ports as JSON.
pub(super) fn ports_json(ports: &[HostPort]) -> Json {
    let one = |port: &HostPort| {
        let mut all = json!({"port": port.port, "protocol": name_of(&PROTOCOLS, &port.protocol)});
        if !port.ip.is_empty() {
            all["ip"] = json!(*port.ip);
        }
        all
    };
    ports.iter().map(one).collect()
}
