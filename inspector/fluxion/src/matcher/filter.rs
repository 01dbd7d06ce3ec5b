//! Pruning filters: the types aggregated at each vertex, and the aggregates.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::allocations::Allocations;
use crate::graph::{Graph, Subsystem, TypeId, VertexId};
use crate::planner::MultiPlanner;
use crate::quirks::Quirks;

/// Maximum depth of a graph; traversals recurse to this depth.
pub const MAX_DEPTH: usize = 300;

/// Why pruning filters can't be set up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FilterError {
    /// The filters are malformed.
    #[error("invalid prune filters `{0}`: must be HIGH:LOW pairs such as ALL:core,rack:node")]
    Malformed(String),
    /// A subsystem in use has no root.
    #[error("subsystem {0} has no root in this graph")]
    NoRoot(String),
    /// The graph is too deep.
    #[error("the graph is more than {MAX_DEPTH} levels deep: flatten it")]
    TooDeep,
    /// Too many aggregates.
    #[error("more than {0} aggregates: use fewer prune filters")]
    TooManySums(usize),
}

/// Types to aggregate by vertex type.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    all: BTreeSet<TypeId>,
    at: BTreeMap<TypeId, BTreeSet<TypeId>>,
    tracked: BTreeSet<TypeId>,
}

impl Filters {
    /// The default filters.
    pub const DEFAULT: &'static str = "ALL:core,ALL:node";

    /// Parses `HIGH:LOW,...`; `ALL` as `HIGH` means all vertices. The types are added to the graph.
    pub fn parse(text: &str, graph: &mut Graph) -> Result<Self, FilterError> {
        let malformed = || FilterError::Malformed(text.to_owned());
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let mut filters = Self::default();
        for pair in compact.split(',') {
            let (high, low) = pair.split_once(':').ok_or_else(malformed)?;
            if high.is_empty() || low.is_empty() {
                return Err(malformed());
            }
            let high = if high == "ALL" { None } else { Some(graph.intern_type(high)) };
            let low = graph.intern_type(low);
            filters.register(high, low);
        }
        Ok(filters)
    }

    fn register(&mut self, high: Option<TypeId>, low: TypeId) {
        self.tracked.insert(low);
        match high {
            None => {
                self.at.values_mut().for_each(|types| {
                    types.remove(&low);
                });
                self.all.insert(low);
            }
            Some(high) if !self.all.contains(&low) => {
                self.at.entry(high).or_default().insert(low);
            }
            Some(_) => {}
        }
    }

    /// Whether a type is aggregated anywhere.
    pub fn is_tracked(&self, of: TypeId) -> bool {
        self.tracked.contains(&of)
    }

    /// All aggregated types.
    pub(super) fn tracked(&self) -> &BTreeSet<TypeId> {
        &self.tracked
    }

    /// The types aggregated at vertices of one type, in the order of their planners.
    fn types_at(&self, of: TypeId) -> Vec<TypeId> {
        let specific = self.at.get(&of).into_iter().flatten();
        specific.chain(self.all.iter().filter(|low| **low != of)).copied().collect()
    }

    /// Calculates the aggregates of a graph from the root of a subsystem, and sets them in the allocations.
    /// Existing spans are kept.
    ///
    /// A type of leaves that is not aggregated anywhere is aggregated at clusters from then on.
    pub fn prime(
        &mut self,
        graph: &Graph,
        allocations: &mut Allocations,
        subsystem: Subsystem,
        quirks: Quirks,
    ) -> Result<(), FilterError> {
        let no_root = || FilterError::NoRoot(graph.subsystem_name(subsystem).to_owned());
        let root = graph.root(subsystem).ok_or_else(no_root)?;
        loop {
            let known = self.tracked.len();
            let seen = vec![false; graph.vertex_count()];
            let lag = quirks.lagging_time_index;
            Priming { filters: self, graph, allocations, subsystem, lag, seen, count: 0 }.visit(root, 0)?;
            if quirks.halfway_tracking || self.tracked.len() == known {
                return Ok(());
            }
        }
    }
}

/// One walk that sums up.
struct Priming<'a> {
    filters: &'a mut Filters,
    graph: &'a Graph,
    allocations: &'a mut Allocations,
    subsystem: Subsystem,
    lag: bool,
    seen: Vec<bool>,
    /// Sums set up.
    count: usize,
}

/// How many amounts are searched one by one.
const FEW: usize = 32;

/// Sums that a graph may have, and that for each of its vertices: real ones have a handful at each.
const MAX_SUMS: usize = 1_000_000;
const MAX_SUMS_PER_VERTEX: usize = 64;

/// Amounts per type.
#[derive(Default)]
struct Sums {
    few: Vec<(TypeId, u64)>,
    /// Those that came when there were few already.
    more: BTreeMap<TypeId, u64>,
}

impl Sums {
    fn add(&mut self, of: TypeId, amount: u64) {
        let sum = match self.few.iter().position(|(known, _)| *known == of) {
            Some(at) => &mut self.few[at].1,
            None if self.few.len() < FEW => {
                self.few.push((of, amount));
                return;
            }
            None => self.more.entry(of).or_default(),
        };
        *sum = sum.saturating_add(amount);
    }

    fn get(&self, of: TypeId) -> u64 {
        let few = self.few.iter().find(|(known, _)| *known == of).map(|(_, sum)| *sum);
        few.or_else(|| self.more.get(&of).copied()).unwrap_or(0)
    }
}

impl Priming<'_> {
    fn visit(&mut self, id: VertexId, depth: usize) -> Result<Sums, FilterError> {
        if depth > MAX_DEPTH {
            return Err(FilterError::TooDeep);
        }
        self.seen[id.index()] = true;
        let graph = self.graph;
        let vertex = graph.vertex(id);
        let mut sums = Sums::default();
        if vertex.out_edges.is_empty() {
            self.drop_sums(id);
            if !self.filters.is_tracked(vertex.type_id) {
                let cluster = graph.find_type("cluster").unwrap_or(TypeId(0));
                self.filters.register(Some(cluster), vertex.type_id);
            }
        } else {
            for (_, child) in graph.children(id, self.subsystem) {
                if self.seen[child.index()] {
                    continue;
                }
                let child_vertex = graph.vertex(child);
                if child_vertex.out_edges.is_empty() && self.filters.is_tracked(child_vertex.type_id) {
                    self.seen[child.index()] = true;
                    self.drop_sums(child);
                    sums.add(child_vertex.type_id, child_vertex.size);
                    continue;
                }
                let below = self.visit(child, depth + 1)?;
                for (of, amount) in below.few.into_iter().chain(below.more) {
                    sums.add(of, amount);
                }
            }
            self.set(id, &sums)?;
        }
        if self.filters.is_tracked(vertex.type_id) {
            sums.add(vertex.type_id, vertex.size);
        }
        Ok(sums)
    }

    /// A vertex that has nothing below it any more has no sums.
    fn drop_sums(&mut self, id: VertexId) {
        if !self.lag
            && self.allocations.aggregates(id).is_some()
            && let Some(account) = self.allocations.get_mut(id)
        {
            account.aggregates = None;
        }
    }

    fn set(&mut self, id: VertexId, sums: &Sums) -> Result<(), FilterError> {
        let types = self.filters.types_at(self.graph.vertex(id).type_id);
        self.count += types.len();
        let most = MAX_SUMS + MAX_SUMS_PER_VERTEX * self.graph.vertex_count();
        if self.count > most {
            return Err(FilterError::TooManySums(most));
        }
        let totals: Vec<(TypeId, u64)> = types.into_iter().map(|of| (of, sums.get(of))).collect();
        if totals.is_empty() {
            if let Some(account) = self.allocations.get_mut(id) {
                account.aggregates = None;
            }
            return Ok(());
        }
        let account = self.allocations.open(self.graph, id);
        match &mut account.aggregates {
            Some(aggregates) => aggregates.reshape(&totals, self.lag),
            None => account.aggregates = Some(Box::new(MultiPlanner::new(totals))),
        }
        Ok(())
    }
}
