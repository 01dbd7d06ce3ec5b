//! Jobspec constraints (RFC 31), which restrict the nodes of a job.

use crate::formats::hostlist::Hostlist;
use crate::formats::idset::Idset;
use crate::graph::{Graph, VertexId};
use crate::jobspec::yaml::Value;

/// A condition on a vertex.
#[derive(Clone, Debug, PartialEq)]
pub enum Constraint {
    /// Satisfied by every vertex.
    Any,
    /// All of these properties are present, or absent if negated.
    Properties(Vec<Property>),
    /// The name is one of these.
    Hostlist(Hostlist),
    /// The rank is one of these.
    Ranks(Vec<Idset>),
    /// All are satisfied.
    And(Vec<Constraint>),
    /// At least one is satisfied; satisfied without operands.
    Or(Vec<Constraint>),
    /// Not all are satisfied.
    Not(Vec<Constraint>),
}

/// A property that must be present or absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// The key; values are ignored.
    pub name: String,
    /// Whether it must be absent.
    pub absent: bool,
}

impl Constraint {
    /// Parses a constraint. The error is a message.
    pub fn from_yaml(value: &Value) -> Result<Self, String> {
        let Some(pairs) = value.mapping() else { return Err("constraint is not a mapping".to_owned()) };
        let [(operator, operands)] = pairs else {
            return match pairs {
                [] => Ok(Self::Any),
                _ => Err("constraint map may not contain > 1 operation".to_owned()),
            };
        };
        let operator = operator.scalar().unwrap_or_default();
        if !matches!(operator, "properties" | "hostlist" | "ranks" | "and" | "or" | "not") {
            return Err(format!("unknown constraint operator: {operator}"));
        }
        let Some(operands) = operands.sequence() else {
            return Err(format!("{operator} operator value must be an array"));
        };
        let operands = operands.iter();
        match operator {
            "properties" => operands.map(property).collect::<Result<_, _>>().map(Self::Properties),
            "hostlist" => hostlist(operands).map(Self::Hostlist),
            "ranks" => operands.map(ranks).collect::<Result<_, _>>().map(Self::Ranks),
            "and" => operands.map(Self::from_yaml).collect::<Result<_, _>>().map(Self::And),
            "or" => operands.map(Self::from_yaml).collect::<Result<_, _>>().map(Self::Or),
            _ => operands.map(Self::from_yaml).collect::<Result<_, _>>().map(Self::Not),
        }
    }

    /// Whether a vertex satisfies the constraint.
    pub fn matches(&self, graph: &Graph, vertex: VertexId) -> bool {
        match self {
            Self::Any => true,
            Self::Properties(wanted) => wanted.iter().all(|property| {
                let there =
                    graph.find_text(&property.name).is_some_and(|key| graph.has_property(vertex, key));
                there != property.absent
            }),
            Self::Hostlist(hosts) => hosts.contains(graph.text(graph.vertex(vertex).name)),
            Self::Ranks(ranks) => u64::try_from(graph.vertex(vertex).rank)
                .is_ok_and(|rank| ranks.iter().any(|ids| ids.contains(rank))),
            Self::And(all) => all.iter().all(|part| part.matches(graph, vertex)),
            Self::Or(any) => any.is_empty() || any.iter().any(|part| part.matches(graph, vertex)),
            Self::Not(all) => !all.iter().all(|part| part.matches(graph, vertex)),
        }
    }
}

fn property(value: &Value) -> Result<Property, String> {
    let text = value.scalar().filter(|_| value.is_quoted());
    let Some(text) = text else { return Err("non-string property specified".to_owned()) };
    let (name, absent) = text.strip_prefix('^').map_or((text, false), |name| (name, true));
    if let Some(bad) = name.chars().find(|&c| "!&'\"^`|()".contains(c)) {
        return Err(format!("invalid character '{bad}' in property \"{text}\""));
    }
    Ok(Property { name: name.to_owned(), absent })
}

fn hostlist<'v, 't: 'v>(operands: impl Iterator<Item = &'v Value<'t>>) -> Result<Hostlist, String> {
    let mut all = Hostlist::default();
    for operand in operands {
        let Some(text) = operand.scalar() else { return Err("non-string hostlist specified".to_owned()) };
        all.append(Hostlist::parse(text).map_err(|_| format!("Invalid hostlist `{text}'"))?);
    }
    Ok(all)
}

fn ranks(operand: &Value) -> Result<Idset, String> {
    let Some(text) = operand.scalar() else { return Err("non-string idset specified".to_owned()) };
    Idset::parse(text).map_err(|_| format!("Invalid idset `{text}'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::VertexSpec;
    use crate::jobspec::yaml;

    #[test]
    fn conditions_are_met_or_not() {
        let mut graph = Graph::new();
        let spec = VertexSpec { type_name: "node", name: "node7", rank: 3, ..VertexSpec::default() };
        let node = graph.add_vertex(&spec).unwrap();
        graph.set_property(node, "fast", "");
        for (text, met) in [
            ("{}", true),
            ("{properties: ['fast']}", true),
            ("{properties: ['^fast']}", false),
            ("{properties: ['fast', '^slow']}", true),
            ("{hostlist: ['node[1-9]']}", true),
            ("{hostlist: ['node[1-6]']}", false),
            ("{ranks: ['0-2', '5']}", false),
            ("{ranks: ['0-3']}", true),
            ("{and: []}", true),
            ("{or: []}", true),
            ("{not: []}", false),
            ("{or: [{ranks: ['9']}, {properties: ['fast']}]}", true),
            ("{not: [{ranks: ['9']}, {properties: ['fast']}]}", true),
        ] {
            let constraint = Constraint::from_yaml(&yaml::parse(text).unwrap()).unwrap();
            assert_eq!(constraint.matches(&graph, node), met, "{text}");
        }
    }

    #[test]
    fn malformed_ones_are_refused() {
        for text in [
            "~",
            "[]",
            "{properties: [fast]}",
            "{properties: ['a&b']}",
            "{properties: fast}",
            "{and: [], or: []}",
            "{xor: []}",
            "{hostlist: ['node[']}",
            "{ranks: ['a']}",
            "{and: [~]}",
        ] {
            assert!(Constraint::from_yaml(&yaml::parse(text).unwrap()).is_err(), "{text}");
        }
    }
}
