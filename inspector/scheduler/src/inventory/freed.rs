//! Where something was freed lately, so that what was found wanting before only has to be looked at there.

use std::collections::VecDeque;
use std::sync::Arc;

use super::id::NodeId;

/// Number of nodes remembered, each as often as something was freed on it.
const MOST: usize = 1_024;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Freed {
    /// Generations ([`super::Inventory::freed_generation`]) in order, with the nodes on which something was freed.
    nodes: Arc<VecDeque<(u64, NodeId)>>,
    /// The nodes of all later generations are known.
    since: u64,
}

impl Freed {
    /// Something was freed on a node; generations don't decrease.
    pub(super) fn note(&mut self, generation: u64, id: NodeId) {
        let nodes = Arc::make_mut(&mut self.nodes);
        if nodes.len() >= MOST
            && let Some((forgotten, _)) = nodes.pop_front()
        {
            self.since = forgotten;
        }
        nodes.push_back((generation, id));
    }

    /// Something was freed on any node.
    pub(super) fn note_all(&mut self, generation: u64) {
        *self = Self { nodes: Arc::default(), since: generation };
    }

    /// The nodes of later generations, with repetitions; none if some of them are not known.
    pub(super) fn after(&self, generation: u64) -> Option<impl Iterator<Item = NodeId>> {
        (generation >= self.since).then(|| {
            let first = self.nodes.partition_point(|(of, _)| *of <= generation);
            self.nodes.range(first..).map(|(_, id)| *id)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_freed_long_ago_is_not_known() {
        let mut freed = Freed::default();
        let after = |freed: &Freed, generation| freed.after(generation).map(Iterator::collect::<Vec<_>>);
        freed.note(1, 7);
        freed.note(2, 8);
        freed.note(3, 7);
        assert_eq!(after(&freed, 0), Some(vec![7, 8, 7]));
        assert_eq!(after(&freed, 2), Some(vec![7]));
        assert_eq!(after(&freed, 3), Some(vec![]));
        freed.note_all(4);
        assert_eq!((after(&freed, 3), after(&freed, 4)), (None, Some(vec![])));
        (0..=MOST as u64).for_each(|at| freed.note(5 + at, 1));
        assert_eq!((after(&freed, 4), after(&freed, 5).map(|nodes| nodes.len())), (None, Some(MOST)));
    }
}
