//! Preferences: which nodes are taken of those that are equal for everything that comes before them.
//!
//! Where a request fits and in which domain is decided first, without its preferences, so they never keep it from
//! starting. Then its slots are placed again, one by one, each on the best node that is allowed at that moment:
//!
//! 1. by time, as in [`super::order`];
//! 2. with [`NodePolicy::Spread`], by the share of the node that would be allocated;
//! 3. by score: the weights of all preferences that the node meets, of the Pod and of those that are there. A soft
//!    spread constraint counts as much as the highest weight, and so does the absence of each taint with
//!    `PreferNoSchedule` that is not tolerated;
//! 4. by the number of Pods in the node's domain: many for affinity, few for anti-affinity and spread constraints;
//! 5. in the policy's order.
//!
//! If that places fewer slots, the preferences are ignored.

use std::cmp::Reverse;

use super::availability::Availability;
use super::board::{Board, Fit};
use super::counting::{Counting, Counts};
use super::filling::{Taken, Work};
use super::most::better;
use super::order::{self, Class};
use super::plan::{Plan, PlannedShape};
use super::policy::NodePolicy;
use super::rules::Rules;
use super::tally::Tally;
use crate::constraint::{discouraging_taints, term_matches};
use crate::inventory::NodeId;

/// Weight of a soft spread constraint, and of each taint: the highest one of a term.
pub(crate) const WEIGHT: u32 = 100;
/// Nodes looked at, once per shape and slot; beyond that, preferences are ignored.
const BUDGET: u64 = 20_000_000;

/// The slots of a result, moved to preferred nodes of the same list.
pub(super) fn prefer(
    plan: &Plan<'_>,
    availability: &Availability<'_>,
    group: usize,
    taken: Taken,
    work: &mut Work,
) -> Taken {
    if !plan.scored || !availability.is_start() {
        return taken;
    }
    let counting = Counting::new(plan, availability);
    let scores = Scores::new(&counting);
    if scores.all_best(&taken) {
        return taken;
    }
    let Some((_, nodes)) = plan.group(group) else { return taken };
    let (classes, nodes) = order::by_class(plan, availability, nodes);
    let rules = Rules::new(plan, availability).unwrap_or_else(|| Rules::none(plan));
    let mut search = Search { board: Board::new(plan, availability, rules, &nodes), scores, classes };
    let complete = search.fill();
    work.visited += search.board.looked;
    let preferred = search.board.taken();
    if complete && better(plan, &preferred, &taken).is_ge() { preferred } else { taken }
}

/// A preference about other Pods.
enum Wish {
    Near { tally: usize, weight: u32 },
    Apart { tally: usize, weight: u32 },
    Even { tally: usize, max_skew: u32, own: u32 },
}

/// How good a node is for one more slot; the least is the best.
type Rank = (u64, Reverse<i64>, Reverse<i64>);

struct Scores<'a> {
    plan: &'a Plan<'a>,
    tallies: Vec<Tally>,
    /// By shape of the plan.
    wishes: Vec<Vec<Wish>>,
}

impl<'a> Scores<'a> {
    fn new(counting: &Counting<'a>) -> Self {
        let plan = counting.plan;
        let mut scores = Self { plan, tallies: Vec::new(), wishes: Vec::new() };
        for shape in &plan.shapes {
            let mut wishes = Vec::new();
            for preferred in shape.preferences.iter().flat_map(|preferences| &preferences.pods) {
                let selection = vec![preferred.term.selector.clone()];
                let tally = counting.tally(&selection, &preferred.term.topology, Counts::There, None);
                let (tally, weight) = (scores.push(tally), preferred.weight);
                wishes.push(if preferred.apart {
                    Wish::Apart { tally, weight }
                } else {
                    Wish::Near { tally, weight }
                });
            }
            let spread = shape.preferences.map_or(&[][..], |preferences| &preferences.spread);
            for one in spread {
                let (tally, own) = counting.spread(one, spread, shape);
                wishes.push(Wish::Even { tally: scores.push(tally), max_skew: one.max_skew, own });
            }
            scores.others_wishes(counting, shape, &mut wishes);
            scores.wishes.push(wishes);
        }
        scores
    }

    /// What the Pods that are there prefer about this one. What it prefers itself counts once.
    fn others_wishes(&mut self, counting: &Counting<'_>, shape: &PlannedShape<'_>, wishes: &mut Vec<Wish>) {
        let Some(peer) = shape.peer else { return };
        let own = shape.preferences.map_or(&[][..], |preferences| &preferences.pods);
        for (preferred, holders) in self.plan.inventory.preferred_by(peer) {
            if own.contains(preferred) {
                continue;
            }
            let topology = self.plan.inventory.topology(&preferred.term.topology);
            let mut tally = Tally::new(topology, vec![0; self.plan.shapes.len()]);
            for found in holders.filter(|found| counting.availability.counts(found).0) {
                tally.add(found.node, 1);
            }
            if !tally.is_empty() {
                let (tally, weight) = (self.push(tally), preferred.weight);
                wishes.push(if preferred.apart {
                    Wish::Apart { tally, weight }
                } else {
                    Wish::Near { tally, weight }
                });
            }
        }
    }

    fn push(&mut self, tally: Tally) -> usize {
        self.tallies.push(tally);
        self.tallies.len() - 1
    }

    /// Whether nothing depends on the other slots.
    fn is_fixed(&self, shape: usize) -> bool {
        self.wishes[shape].is_empty() && self.plan.policy != NodePolicy::Spread
    }

    /// Whether no other nodes can be better than these.
    fn all_best(&self, taken: &Taken) -> bool {
        let best = |shape: &PlannedShape<'_>| -> i64 {
            let terms = shape.preferences.iter().flat_map(|preferences| &preferences.nodes);
            terms.map(|preferred| i64::from(preferred.weight)).sum()
        };
        self.plan.shapes.iter().enumerate().all(|(at, shape)| {
            let most = best(shape);
            let used = taken.iter().filter(|(_, filling)| filling[at] > 0);
            self.is_fixed(at) && used.into_iter().all(|(id, _)| self.fixed(shape, *id) == most)
        })
    }

    /// The weights of what only depends on the node.
    fn fixed(&self, shape: &PlannedShape<'_>, id: NodeId) -> i64 {
        let Some(book) = self.plan.inventory.book(id) else { return 0 };
        let terms = shape.preferences.iter().flat_map(|preferences| &preferences.nodes);
        let met = terms.filter(|preferred| term_matches(&preferred.term, &book.facts));
        let weights: i64 = met.map(|preferred| i64::from(preferred.weight)).sum();
        let taints = discouraging_taints(shape.constraint, &book.facts).count();
        weights - i64::from(WEIGHT) * i64::try_from(taints).unwrap_or(i64::MAX / 1_000)
    }

    /// What depends on other Pods: the weights, and how many Pods there are.
    fn others(&self, shape: usize, id: NodeId) -> (i64, i64) {
        let (mut met, mut finer) = (0, 0);
        for wish in &self.wishes[shape] {
            let (tally, weight) = match wish {
                Wish::Near { tally, weight } | Wish::Apart { tally, weight } => (tally, *weight),
                Wish::Even { tally, .. } => (tally, WEIGHT),
            };
            let tally = &self.tallies[*tally];
            let count = tally.domain(id).map(|domain| tally.count(domain));
            let weighed = i64::from(weight) * i64::from(count.unwrap_or(0));
            let (is_met, number) = match wish {
                Wish::Near { .. } => (count.is_some_and(|count| count > 0), weighed),
                Wish::Apart { .. } => (count.is_none_or(|count| count == 0), -weighed),
                Wish::Even { max_skew, own, .. } => {
                    let least = u64::from(tally.least(1).unwrap_or(0));
                    let even =
                        |count: u32| u64::from(count) + u64::from(*own) <= least + u64::from(*max_skew);
                    // A node without a domain is the last choice.
                    (count.is_some_and(even), count.map_or(-i64::from(u32::MAX), |_| -weighed))
                }
            };
            met += if is_met { i64::from(weight) } else { 0 };
            finer += number;
        }
        (met, finer)
    }

    fn add(&mut self, shape: usize, id: NodeId) {
        for tally in &mut self.tallies {
            tally.add(id, tally.adds[shape]);
        }
    }
}

/// The share of a node's resources that would be allocated with one more slot, in 2⁻³²: that of the scarcest one.
fn allocated_share(plan: &Plan<'_>, shape: &PlannedShape<'_>, id: NodeId, free: &[u64]) -> u64 {
    let Some(book) = plan.inventory.book(id) else { return u64::MAX };
    let share = |(at, need): &(usize, u64)| {
        let all = u128::from(book.offer(plan.kinds[*at]).allocatable);
        let left = u128::from(free[*at].saturating_sub(*need));
        (all.saturating_sub(left) << 32) / all.max(1)
    };
    shape.needs.iter().map(share).max().map_or(0, |share| u64::try_from(share).unwrap_or(u64::MAX))
}

struct Search<'a> {
    board: Board<'a>,
    scores: Scores<'a>,
    /// Of the board's nodes, in ascending order.
    classes: Vec<Class>,
}

impl Search<'_> {
    /// Places slots until none fits or all are placed; false if the budget ended.
    fn fill(&mut self) -> bool {
        let mut orders: Vec<_> = (0..self.scores.plan.shapes.len()).map(|shape| self.order(shape)).collect();
        let mut progress = true;
        while progress {
            progress = false;
            for (shape, order) in orders.iter_mut().enumerate() {
                while self.board.wanted[shape] > 0 {
                    if self.board.looked >= BUDGET {
                        return false;
                    }
                    let Some(position) = self.best(shape, order) else { break };
                    self.board.place(position, shape);
                    self.scores.add(shape, self.board.nodes[position]);
                    progress = true;
                }
            }
        }
        true
    }

    /// All positions, those that are best as far as only the node matters first, with that score.
    fn order(&self, shape: usize) -> Vec<(usize, i64)> {
        let planned = &self.scores.plan.shapes[shape];
        let nodes = self.board.nodes.iter().enumerate();
        let mut order: Vec<(usize, i64)> =
            nodes.map(|(position, id)| (position, self.scores.fixed(planned, *id))).collect();
        order.sort_by_key(|(position, score)| (self.classes[*position], Reverse(*score), *position));
        order
    }

    /// The best position that takes a slot. Those that never will again are dropped.
    fn best(&mut self, shape: usize, order: &mut Vec<(usize, i64)>) -> Option<usize> {
        let fixed = self.scores.is_fixed(shape);
        let mut best: Option<(Rank, usize)> = None;
        let mut dead = 0;
        for (at, (position, score)) in order.iter().enumerate() {
            if let Some((_, found)) = &best
                && (fixed || self.classes[*found] != self.classes[*position])
            {
                break;
            }
            match self.board.fits(*position, shape) {
                Fit::Yes => {
                    let rank = self.rank(shape, *position, *score);
                    if best.as_ref().is_none_or(|found| (rank, *position) < *found) {
                        best = Some((rank, *position));
                    }
                }
                Fit::No if dead == at => dead += 1,
                Fit::No | Fit::NotYet => {}
            }
        }
        order.drain(..dead);
        best.map(|(_, position)| position)
    }

    fn rank(&self, shape: usize, position: usize, score: i64) -> Rank {
        let (plan, id) = (self.scores.plan, self.board.nodes[position]);
        let share = if plan.policy == NodePolicy::Spread {
            allocated_share(plan, &plan.shapes[shape], id, self.board.free(position))
        } else {
            0
        };
        let (met, finer) = self.scores.others(shape, id);
        (share, Reverse(met + score), Reverse(finer))
    }
}
