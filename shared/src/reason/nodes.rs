//! Why nodes take no member, in words.

use std::fmt::Write as _;

use fluxion_text::quantity::Amount;

use super::words::jobs;
use super::{Lack, NearestNode, ShapeNodes};
use crate::explain::NodesLeftOut;
use crate::words::NodeReasonClass;

/// `3/10 nodes are available: 5 had insufficient cpu, 2 were not ready`; where there are `several` shapes, with what this
/// one requests in front.
pub(super) fn line(shape: &ShapeNodes, several: bool) -> String {
    let mut text = String::new();
    if several {
        let members = if shape.members == 1 { "member" } else { "members" };
        text = format!("for {} {members} requesting {}: ", shape.members, requests(shape));
    }
    _ = write!(text, "{}/{} nodes are available", shape.available, shape.total);
    let left_out: Vec<String> = shape.left_out.iter().map(counted).collect();
    if left_out.is_empty() { text } else { format!("{text}: {}", left_out.join(", ")) }
}

pub(super) fn details(shape: &ShapeNodes, time: &dyn Fn(&str) -> String) -> Vec<String> {
    let mut lines: Vec<String> = shape
        .left_out
        .iter()
        .map(|left_out| format!("{} {}", left_out.count, left_out.detail(time)))
        .collect();
    lines.extend(shape.nearest.as_ref().map(|node| format!("closest node: {}", node.text())));
    lines
}

/// How many, and why: `5 had insufficient cpu`.
fn counted(left_out: &NodesLeftOut) -> String {
    format!("{} {}", left_out.count, left_out.text())
}

fn requests(shape: &ShapeNodes) -> String {
    let listed: Vec<String> = shape
        .requests
        .iter()
        .filter(|(resource, _)| *resource != "pods")
        .map(|(resource, quantity)| format!("{resource} {}", shown(resource, quantity)))
        .collect();
    if listed.is_empty() { "no resources".to_owned() } else { listed.join(", ") }
}

impl NodesLeftOut {
    /// Why, as it follows the number of nodes: `had insufficient cpu`. What a server sent where its class is not known.
    pub fn text(&self) -> String {
        let were = if self.count == 1 { "was" } else { "were" };
        let resource = self.resource.as_deref().unwrap_or_default();
        let value = self.value.as_deref().unwrap_or_default();
        match &self.class {
            NodeReasonClass::Deleting => format!("{were} being deleted"),
            NodeReasonClass::NodeSelector => format!("didn't match node selector {value}"),
            NodeReasonClass::NodeAffinity => format!("didn't match node affinity ({value})"),
            NodeReasonClass::Taint => format!("had untolerated taint {{{value}}}"),
            NodeReasonClass::NotReady => format!("{were} not ready"),
            NodeReasonClass::SchedulingDisabled => format!("{were} cordoned"),
            NodeReasonClass::BindingRefused => "recently rejected a binding".to_owned(),
            NodeReasonClass::Missing if resource == "pods" => "had no allocatable pods".to_owned(),
            NodeReasonClass::Missing => format!("had no {resource}"),
            NodeReasonClass::TooSmall => {
                let (requested, largest) = self.amounts();
                format!("had too little {resource} ({requested} requested, at most {largest} per node)")
            }
            NodeReasonClass::NotAllocatable => {
                let (requested, largest) = self.amounts();
                format!("had at most {largest} {resource} even when empty ({requested} requested)")
            }
            NodeReasonClass::Insufficient => format!("had insufficient {resource}"),
            NodeReasonClass::HostPort => format!("had host port {value} in use"),
            NodeReasonClass::Reserved => format!("{were} reserved for {}", jobs(&self.jobs)),
            NodeReasonClass::Unknown(_) => self.reason.clone(),
        }
    }

    /// [`text`](Self::text), how much there is and until when, with times as `time` writes RFC 3339.
    pub fn detail(&self, time: &dyn Fn(&str) -> String) -> String {
        let mut line = self.text();
        if self.class == NodeReasonClass::Insufficient && self.requested.is_some() {
            let (requested, largest) = self.amounts();
            _ = write!(line, " ({requested} requested, at most {largest} available)");
        }
        if let Some(until) = &self.until {
            let first = if self.count > 1 { "the first until" } else { "until" };
            let assumed = if self.until_assumed { " (assumed)" } else { "" };
            _ = write!(line, ", {first} {}{assumed}", time(until));
        }
        match self.without_end {
            0 => {}
            endless if endless == self.count => line += ", without a planned end",
            endless => _ = write!(line, ", {endless} of them without a planned end"),
        }
        line
    }

    fn amounts(&self) -> (String, String) {
        let given = |amount: &Option<String>| amount.clone().unwrap_or_default();
        compared(self.resource.as_deref().unwrap_or_default(), &given(&self.requested), &given(&self.largest))
    }
}

impl NearestNode {
    /// `n1 (2 cpu available, 4 requested)`
    pub fn text(&self) -> String {
        let lack = |lack: &Lack| {
            let (available, requested) = compared(&lack.resource, &lack.available, &lack.requested);
            format!("{available} {} available, {requested} requested", lack.resource)
        };
        let mut lacks: Vec<String> = self.lacks.iter().map(lack).collect();
        lacks.extend(self.port.as_ref().map(|port| format!("host port {port} in use")));
        format!("{} ({})", self.name, lacks.join("; "))
    }
}

/// As a person reads it; what is no quantity as it is.
fn shown(resource: &str, quantity: &str) -> String {
    quantity.parse().map_or_else(|_| quantity.to_owned(), |amount: Amount| amount.shown(resource))
}

/// Two quantities that are compared: see [`Amount::compared`].
fn compared(resource: &str, one: &str, other: &str) -> (String, String) {
    match (one.parse::<Amount>(), other.parse()) {
        (Ok(one), Ok(other)) => one.compared(other, resource),
        _ => (one.to_owned(), other.to_owned()),
    }
}
