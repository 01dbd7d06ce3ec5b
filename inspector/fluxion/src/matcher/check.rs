//! Independent invariant checks of the allocations.
//!
//! The expected state is recalculated from the graph and the entries of the jobs. The invariants hold with all
//! quirks off; with quirks on, violations are Fluxion's quirks.

use std::collections::{BTreeMap, BTreeSet};

use super::allocations::{Account, Allocations};
use super::engine::Engine;
use super::job::{AllocationKind, JobId};
use crate::graph::{TypeId, VertexId};
use crate::planner::MultiPlanner;

impl Engine {
    /// Checks the invariants and returns a description of each violation; empty if there are none.
    pub fn check(&self) -> Vec<String> {
        let mut findings = Vec::new();
        let reachable: BTreeSet<VertexId> =
            self.root().map(|root| self.subtree(root)).unwrap_or_default().into_iter().collect();
        for at in 0..self.graph.vertex_count() {
            let id = VertexId::from_index(at);
            let Some(account) = self.allocations.get(id) else { continue };
            let name = self.describe(id);
            if !reachable.contains(&id) {
                if !account.entries().is_empty() {
                    findings.push(format!("{name}: allocated to a job, but not part of the graph"));
                }
                continue;
            }
            self.check_plan(id, account, &name, &mut findings);
            self.check_tags(id, account, &name, &mut findings);
            self.check_sums(id, account, &name, &mut findings);
        }
        self.check_extension(&mut findings);
        findings
    }

    fn check_extension(&self, findings: &mut Vec<String>) {
        if let (Some(extension), Some(pending)) = (&self.extension, self.allocations.pending()) {
            findings.extend(extension.check(self.view(), pending));
        }
    }

    /// Whether there are no allocations and all aggregates equal those of an unused graph.
    pub fn is_as_new(&self) -> bool {
        let mut allocations = Allocations::default();
        let mut filters = self.filters.clone();
        if filters.prime(&self.graph, &mut allocations, self.dominant, self.quirks).is_err() {
            return false;
        }
        (0..self.graph.vertex_count()).map(VertexId::from_index).all(|id| {
            let Some(account) = self.allocations.get(id) else { return true };
            if self.graph.vertex(id).removed {
                return account.entries().is_empty();
            }
            let totals = |account: &Account| -> Vec<(TypeId, u64)> {
                let aggregates = account.aggregates.as_deref();
                aggregates
                    .into_iter()
                    .flat_map(MultiPlanner::planners)
                    .map(|(of, plan)| (of, plan.total()))
                    .collect()
            };
            let unused = account.aggregates.as_deref().is_none_or(|aggregates| {
                aggregates.span_count() == 0
                    && aggregates.planners().all(|(_, plan)| plan.min_during(0, i64::MAX) == Ok(plan.total()))
            });
            account.entries().is_empty()
                && account.plan.span_count() == 0
                && account.plan.min_during(0, i64::MAX) == Ok(self.graph.vertex(id).size)
                && unused
                && totals(account) == allocations.get(id).map(totals).unwrap_or_default()
        })
    }

    fn describe(&self, id: VertexId) -> String {
        let vertex = self.graph.vertex(id);
        let path = vertex.path(self.dominant).map(|path| self.graph.path_text(path));
        path.unwrap_or_else(|| self.graph.text(vertex.name).to_owned())
    }

    fn check_plan(&self, id: VertexId, account: &Account, name: &str, findings: &mut Vec<String>) {
        if account.plan.total() != self.graph.vertex(id).size {
            findings.push(format!("{name}: the planner's total differs from the size of the vertex"));
        }
        if !account.plan.consistent() {
            findings.push(format!("{name}: the free amount differs from the total minus the booked amount"));
        }
        if account.plan.is_overbooked() {
            findings.push(format!("{name}: overbooked"));
        }
        let owned: BTreeSet<_> =
            account.entries().iter().filter_map(|entry| entry.plan).map(|plan| plan.1).collect();
        let entries = account.entries().iter().filter(|entry| entry.plan.is_some()).count();
        let booked: BTreeSet<_> = account.plan.spans().map(|(span, _)| span).collect();
        if owned != booked || owned.len() != entries {
            findings.push(format!("{name}: spans and jobs do not match one to one"));
        }
        for entry in account.entries() {
            let Some((hold, span)) = entry.plan else { continue };
            let Some(span) = account.plan.span(span) else { continue };
            if entry.presence() != Some((span.start, span.end)) {
                findings.push(format!("{name}: job {} is present at other times than its span", entry.job));
            }
            if (hold == AllocationKind::Allocation) != (span.start == 0) {
                findings.push(format!("{name}: job {} has the wrong kind of allocation", entry.job));
            }
        }
    }

    fn check_tags(&self, id: VertexId, account: &Account, name: &str, findings: &mut Vec<String>) {
        for entry in account.entries() {
            let job = entry.job;
            if !entry.tag || entry.presence().is_none() {
                findings.push(format!("{name}: job {job} is present without its tag"));
            }
            let mut parents = self.graph.parents(id, self.dominant);
            let known_above = parents.any(|(_, parent)| self.allocations.is_tagged(parent, job));
            if Some(id) != self.root() && !known_above {
                findings.push(format!("{name}: job {job} is missing from the parent vertices"));
            }
            let mut children = self.graph.children(id, self.dominant);
            if entry.plan.is_none() && !children.any(|(_, child)| self.allocations.is_tagged(child, job)) {
                findings.push(format!("{name}: job {job} has no allocation here or below"));
            }
        }
    }

    fn check_sums(&self, id: VertexId, account: &Account, name: &str, findings: &mut Vec<String>) {
        let Some(aggregates) = account.aggregates.as_deref() else { return };
        let below = self.subtree(id);
        let mut held: BTreeMap<(JobId, TypeId), u64> = BTreeMap::new();
        for &under in below.iter().skip(1) {
            let Some(account) = self.allocations.get(under) else { continue };
            for entry in account.entries() {
                let span = entry.plan.and_then(|(_, span)| account.plan.span(span));
                *held.entry((entry.job, self.graph.vertex(under).type_id)).or_default() +=
                    span.map_or(0, |span| span.amount);
            }
        }
        for (of, planner) in aggregates.planners() {
            let type_name = self.graph.type_name(of);
            if !planner.consistent() || planner.is_overbooked() {
                findings.push(format!("{name}: the aggregate of {type_name} is inconsistent"));
            }
            for entry in account.entries() {
                let noted = entry.aggregate.map_or(0, |span| aggregates.amount(span, of));
                let real = held.get(&(entry.job, of)).copied().unwrap_or(0);
                if noted != real {
                    let job = entry.job;
                    findings.push(format!(
                        "{name}: job {job} has {real} {type_name} below, but {noted} recorded"
                    ));
                }
            }
        }
        let owned = account.entries().iter().filter(|entry| entry.aggregate.is_some()).count();
        if owned != aggregates.span_count() {
            findings.push(format!("{name}: aggregates and jobs do not match one to one"));
        }
    }
}
