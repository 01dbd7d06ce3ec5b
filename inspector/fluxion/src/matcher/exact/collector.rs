//! Candidates below a vertex, per type, and the choice among them.

use smallvec::SmallVec;

use crate::graph::{EdgeId, TypeId};
use crate::matcher::policy::Order;
use crate::matcher::sort;

/// How a candidate is taken: by which edge, how much of its target, and whether exclusively.
#[derive(Clone, Copy, Debug)]
pub(in crate::matcher) struct Taken {
    pub edge: EdgeId,
    pub exclusive: bool,
    pub needs: u64,
    /// Not the target itself, but the candidate of this type and position that was found below it and
    /// is only known in summary.
    pub below: Option<(TypeId, u32)>,
}

/// One candidate: a vertex, or a slot made of several.
#[derive(Clone, Debug)]
pub(in crate::matcher) struct Group {
    pub score: i64,
    pub count: u64,
    pub taken: SmallVec<[Taken; 1]>,
}

/// The candidates of one type.
#[derive(Clone, Debug, Default)]
pub(in crate::matcher) struct Candidates {
    pub groups: Vec<Group>,
    /// Sum of the counts of groups with a positive score.
    pub qualified: u64,
    /// Sum of all counts.
    pub total: u64,
    /// The order of the groups as it was last found out; empty as long as it is that of discovery.
    order: Vec<u32>,
    /// How many groups from the front of the order are chosen.
    chosen: Option<usize>,
}

impl Candidates {
    fn add(&mut self, group: Group) {
        self.total = self.total.saturating_add(group.count);
        if group.score > 0 {
            self.qualified = self.qualified.saturating_add(group.count);
        }
        self.groups.push(group);
    }

    /// Puts the groups in the order of the policy and takes from the front until `count` is reached.
    /// Answers whether there are enough. With `once` the list is not chosen from again, so that the
    /// order behind what is chosen does not matter.
    fn choose(&mut self, count: u64, ranking: &Ranking, once: bool) -> bool {
        if count == 0 || count > self.qualified {
            return false;
        }
        let all = u32::try_from(self.groups.len()).expect("graphs have fewer than 2^32 vertices");
        let wanted = if once { usize::try_from(count).unwrap_or(usize::MAX) } else { usize::MAX };
        let before = std::mem::take(&mut self.order);
        let before = if before.is_empty() { (0..all).collect() } else { before };
        self.order = ranking.order(&self.groups, before, wanted);
        let mut left = count;
        let enough = self.order.iter().position(|&at| {
            left = left.saturating_sub(self.groups[at as usize].count);
            left == 0
        });
        self.chosen = Some(enough.map_or(self.groups.len(), |at| at + 1));
        true
    }

    /// Puts all groups in the order of the policy.
    pub(super) fn arrange(&mut self, ranking: &Ranking) {
        if self.qualified > 0 {
            ranking.sort(&mut self.groups);
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.chosen.is_none()
    }

    fn picked(&self) -> impl Iterator<Item = &Group> {
        let count = self.chosen.unwrap_or(0);
        self.order[..count].iter().map(|&at| &self.groups[at as usize])
    }
}

/// How groups are put in order.
#[derive(Clone, Debug)]
pub(in crate::matcher) struct Ranking {
    pub by: By,
    /// Whether equals end up where GNU's sort leaves them.
    pub introsort: bool,
}

/// What groups are compared by.
#[derive(Clone, Debug)]
pub(in crate::matcher) enum By {
    Score(Order),
    /// Lower ends of runs of neighbouring scores, larger first. Sorted scores, each with the lower end
    /// of its run.
    Runs(Vec<(i64, i64)>),
}

/// What scores are compared by: lower comes first.
pub(super) fn by_score(order: Order, score: i64) -> i64 {
    match order {
        // Scores stay far from the ends of the range; the order of others only saturates.
        Order::Descending => score.saturating_neg(),
        Order::Ascending => score,
    }
}

impl Ranking {
    /// What a group is compared by: lower comes first.
    fn key(&self, group: &Group) -> i64 {
        match &self.by {
            By::Score(order) => by_score(*order, group.score),
            By::Runs(runs) => {
                let at = runs.partition_point(|(score, _)| *score < group.score);
                runs.get(at).map_or(group.score, |(_, low)| *low).saturating_neg()
            }
        }
    }

    /// The positions of the groups, which come in the order `before`, in the order of the policy; at
    /// least the first `wanted` are right.
    fn order(&self, groups: &[Group], before: Vec<u32>, wanted: usize) -> Vec<u32> {
        let mut keyed: Vec<(i64, u32)> =
            before.into_iter().map(|at| (self.key(&groups[at as usize]), at)).collect();
        if self.introsort {
            sort::introsort(&mut keyed, wanted, &|a, b| a.0 < b.0);
        } else {
            sort::stable_front(&mut keyed, wanted);
        }
        keyed.into_iter().map(|(_, at)| at).collect()
    }

    fn sort(&self, groups: &mut [Group]) {
        if self.introsort {
            sort::introsort(groups, usize::MAX, &|a, b| self.key(a) < self.key(b));
        } else {
            groups.sort_by_key(|group| self.key(group));
        }
    }
}

/// Scores, sorted, each with the lower end of the run of consecutive scores it is in.
pub(super) fn runs(mut scores: Vec<i64>) -> Vec<(i64, i64)> {
    scores.sort_unstable();
    scores.dedup();
    let mut runs: Vec<(i64, i64)> = Vec::with_capacity(scores.len());
    for score in scores {
        let low = runs
            .last()
            .filter(|(last, _)| score.checked_sub(1) == Some(*last))
            .map_or(score, |(_, low)| *low);
        runs.push((score, low));
    }
    runs
}

/// The candidates of all types, in order of the types' numbers.
#[derive(Clone, Debug, Default)]
pub(in crate::matcher) struct Collector {
    lists: Vec<(TypeId, Candidates)>,
}

impl Collector {
    pub(crate) fn get(&self, of: TypeId) -> Option<&Candidates> {
        self.lists.binary_search_by_key(&of, |(known, _)| *known).ok().map(|at| &self.lists[at].1)
    }

    pub(crate) fn get_mut(&mut self, of: TypeId) -> Option<&mut Candidates> {
        let at = self.lists.binary_search_by_key(&of, |(known, _)| *known).ok()?;
        Some(&mut self.lists[at].1)
    }

    fn list(&mut self, of: TypeId) -> &mut Candidates {
        let at = match self.lists.binary_search_by_key(&of, |(known, _)| *known) {
            Ok(at) => at,
            Err(at) => {
                self.lists.insert(at, (of, Candidates::default()));
                at
            }
        };
        &mut self.lists[at].1
    }

    pub(crate) fn add(&mut self, of: TypeId, group: Group) {
        self.list(of).add(group);
    }

    /// Appends all groups of another collector.
    pub(crate) fn merge(&mut self, other: Self) {
        for (of, candidates) in other.lists {
            let list = self.list(of);
            if list.groups.is_empty() {
                *list = Candidates { order: Vec::new(), chosen: None, ..candidates };
                continue;
            }
            list.qualified = list.qualified.saturating_add(candidates.qualified);
            list.total = list.total.saturating_add(candidates.total);
            list.groups.extend(candidates.groups);
        }
    }

    /// Puts in candidates of a type that are all chosen, or none that might still be.
    pub(crate) fn put(&mut self, of: TypeId, chosen: Option<Vec<Taken>>) {
        let list = self.list(of);
        let Some(taken) = chosen else { return };
        let group = Group { score: 1, count: 1, taken: taken.into() };
        *list = Candidates { groups: vec![group], order: vec![0], chosen: Some(1), ..Candidates::default() };
    }

    pub(crate) fn qualified(&self, of: TypeId) -> u64 {
        self.get(of).map_or(0, |list| list.qualified)
    }

    pub(crate) fn total(&self, of: TypeId) -> u64 {
        self.get(of).map_or(0, |list| list.total)
    }

    /// Chooses among the candidates of a type.
    pub(crate) fn choose(&mut self, of: TypeId, count: u64, ranking: &Ranking, once: bool) -> bool {
        self.get_mut(of).is_some_and(|list| list.choose(count, ranking, once))
    }

    /// Whether anything was chosen.
    pub(crate) fn has_choice(&self) -> bool {
        self.lists.iter().any(|(_, list)| list.chosen.is_some())
    }

    /// Everything chosen, in order of the types' numbers.
    pub(crate) fn chosen(&self) -> impl Iterator<Item = &Taken> {
        self.lists.iter().flat_map(|(_, list)| list.picked().flat_map(|group| &group.taken))
    }

    pub(crate) fn lists(&self) -> impl Iterator<Item = (TypeId, &Candidates)> {
        self.lists.iter().map(|(of, list)| (*of, list))
    }

    pub(crate) fn lists_mut(&mut self) -> impl Iterator<Item = (TypeId, &mut Candidates)> {
        self.lists.iter_mut().map(|(of, list)| (*of, list))
    }
}
