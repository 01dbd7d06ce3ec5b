//! Renders why nodes cannot run a member.

use std::fmt::Write as _;

use fluxion_text::quantity::Amount;

use super::fact::{Lack, NearestNode, ShapeNodes};
use super::left_out::{NodesLeftOut, compared};

/// `3/10 nodes are available: 5 had insufficient cpu, 2 were not ready`, prefixed with the requests of this shape if there
/// are `several`.
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

/// Number of nodes and reason: `5 had insufficient cpu`.
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

/// Human-readable quantity; invalid quantities are returned unchanged.
fn shown(resource: &str, quantity: &str) -> String {
    quantity.parse().map_or_else(|_| quantity.to_owned(), |amount: Amount| amount.shown(resource))
}
