//! The nodes a job ran on.

use std::sync::Arc;

use fluxion::formats::idset::Idset;

/// Adjacent nodes on which a job has the same number of cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSpan {
    /// Index of the first node, from 0.
    pub first: u32,
    /// Index of the last node.
    pub last: u32,
    /// Cores on each of them; at least 1.
    pub cores: u32,
}

/// The name of a node.
pub(super) fn name(index: u32) -> Arc<str> {
    format!("node{index}").into()
}

/// The index in a node's name.
pub(super) fn index(name: &str) -> Option<u32> {
    name.strip_prefix("node")?.parse().ok()
}

/// Joins nodes, each with its cores.
pub(super) fn spans(mut nodes: Vec<(u32, u32)>) -> Box<[NodeSpan]> {
    nodes.sort_unstable();
    let mut spans: Vec<NodeSpan> = Vec::new();
    for (node, cores) in nodes {
        match spans.last_mut() {
            Some(last) if last.last == node => last.cores += cores,
            Some(last) if last.last + 1 == node && last.cores == cores => last.last = node,
            _ => spans.push(NodeSpan { first: node, last: node, cores }),
        }
    }
    spans.into()
}

/// The indices of nodes, as `0-3,7`.
pub fn node_list(spans: &[NodeSpan]) -> String {
    let indices = spans.iter().flat_map(|span| u64::from(span.first)..=u64::from(span.last));
    Idset::from_ids(indices).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_joined_where_they_are_alike() {
        let spans = spans(vec![(7, 1), (0, 2), (2, 2), (1, 2), (3, 1)]);
        let span = |first, last, cores| NodeSpan { first, last, cores };
        assert_eq!(*spans, [span(0, 2, 2), span(3, 3, 1), span(7, 7, 1)]);
        assert_eq!(node_list(&spans), "0-3,7");
        assert_eq!(node_list(&[]), "");
        assert_eq!(index(&name(12)), Some(12));
    }
}
