//! The free cores of a cluster of identical nodes, and which of them a job gets.
//!
//! Where only the number of free nodes decides when a job starts, the scheduler is given all of them as one node, so that a
//! pass takes the same time whatever their number. Which of them a started job runs on is decided here: the free ones
//! with the lowest numbers, or the highest.

use super::nodes::NodeSpan;

/// See the module documentation.
#[derive(Clone, Debug)]
pub(super) struct NodePool {
    /// Free cores by position, which is the number of the node, or counts from the last one.
    free: Vec<u32>,
    /// A bit for each position with free cores.
    open: Vec<u64>,
    /// Words before this one have no bit set.
    first: usize,
    highest: bool,
}

impl NodePool {
    /// All nodes, each with so many free cores (at least 1). The highest numbers are taken first, or the lowest.
    pub(super) fn new(nodes: u32, cores: u32, highest: bool) -> Self {
        let count = nodes as usize;
        let mut open = vec![u64::MAX; count.div_ceil(64)];
        if let Some(last) = open.last_mut().filter(|_| !count.is_multiple_of(64)) {
            *last = (1 << (count % 64)) - 1;
        }
        Self { free: vec![cores; count], open, first: 0, highest }
    }

    /// Takes so many cores, or as many as are free.
    pub(super) fn take(&mut self, mut cores: u64) -> Box<[NodeSpan]> {
        let mut spans: Vec<NodeSpan> = Vec::new();
        while cores > 0
            && let Some(word) = self.open.get_mut(self.first)
        {
            if *word == 0 {
                self.first += 1;
                continue;
            }
            let at = self.first * 64 + word.trailing_zeros() as usize;
            let here = u32::try_from(cores).unwrap_or(u32::MAX).min(self.free[at]);
            self.free[at] -= here;
            if self.free[at] == 0 {
                *word &= *word - 1;
            }
            cores -= u64::from(here);
            let Ok(node) = u32::try_from(at) else { break };
            match spans.last_mut() {
                Some(last) if last.last + 1 == node && last.cores == here => last.last = node,
                _ => spans.push(NodeSpan { first: node, last: node, cores: here }),
            }
        }
        self.turned(&mut spans);
        spans.into()
    }

    /// Gives back what was taken.
    pub(super) fn give_back(&mut self, spans: &[NodeSpan]) {
        let mut spans = spans.to_vec();
        self.turned(&mut spans);
        for span in spans {
            for node in span.first..=span.last {
                let at = node as usize;
                self.free[at] += span.cores;
                self.open[at / 64] |= 1 << (at % 64);
            }
            self.first = self.first.min(span.first as usize / 64);
        }
    }

    /// Turns positions into numbers of nodes, or back.
    fn turned(&self, spans: &mut [NodeSpan]) {
        if let Some(end) = u32::try_from(self.free.len()).ok().filter(|_| self.highest) {
            for span in &mut *spans {
                (span.first, span.last) = (end - 1 - span.last, end - 1 - span.first);
            }
            spans.reverse();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(first: u32, last: u32, cores: u32) -> NodeSpan {
        NodeSpan { first, last, cores }
    }

    #[test]
    fn the_lowest_free_nodes_are_taken() {
        let mut pool = NodePool::new(130, 2, false);
        let first = pool.take(3);
        assert_eq!(*first, [span(0, 0, 2), span(1, 1, 1)]);
        let wide = pool.take(250);
        assert_eq!(*wide, [span(1, 1, 1), span(2, 125, 2), span(126, 126, 1)]);
        pool.give_back(&first);
        assert_eq!(*pool.take(4), [span(0, 0, 2), span(1, 1, 1), span(126, 126, 1)]);
        assert_eq!(*pool.take(100), [span(127, 129, 2)], "there are no more");
    }

    #[test]
    fn the_highest_free_nodes_are_taken() {
        let mut pool = NodePool::new(5, 1, true);
        let first = pool.take(2);
        assert_eq!(*first, [span(3, 4, 1)]);
        let second = pool.take(1);
        assert_eq!(*second, [span(2, 2, 1)]);
        pool.give_back(&first);
        assert_eq!(*pool.take(3), [span(1, 1, 1), span(3, 4, 1)]);
    }
}
