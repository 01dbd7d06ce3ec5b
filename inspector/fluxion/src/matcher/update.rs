//! Allocates the resources described by a document to a job.

use std::collections::{BTreeMap, BTreeSet};

use super::book::Booking;
use super::engine::Engine;
use super::job::{AllocationKind, JobId};
use super::operation::Failure;
use super::scratch::Mark;
use super::sink::Sink;
use crate::document::{Document, GraphDocument, NodeRecord, RankDocument, RankRecord};
use crate::errno::Errno;
use crate::formats::idset::Idset;
use crate::formats::rv1::host_number;
use crate::graph::{EdgeId, VertexId};

fn is_free_rank(free: &Idset, rank: i32) -> bool {
    u64::try_from(rank).is_ok_and(|rank| free.contains(rank))
}

fn fail<T>(message: String) -> Result<T, Failure> {
    Err(Failure::new(Errno::Einval, message))
}

/// For whom and when.
#[derive(Clone, Copy)]
struct Claim {
    job: JobId,
    start: i64,
    duration: i64,
}

/// What an update has done so far, so that it can be undone.
#[derive(Default)]
struct Progress {
    booked: Vec<VertexId>,
    /// Vertex and exclusiveness by the document's key.
    listed: BTreeMap<String, (VertexId, bool)>,
    /// How much is held of vertices of which that is not all.
    parts: BTreeMap<VertexId, u64>,
    /// Edges that shorthand adds.
    implied: Vec<EdgeId>,
}

impl Engine {
    /// Allocates the resources in a document to a job, from `start` on, and reports them to the sink unless
    /// the document does not include the root.
    ///
    /// Errors: `Einval` if the document does not match the graph or a resource is not free. Nothing is
    /// allocated in that case.
    pub fn update(
        &mut self,
        document: &Document,
        job: JobId,
        start: i64,
        duration: i64,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let claim = Claim { job, start, duration };
        self.know_types(document);
        self.scratch.start(&self.graph);
        let mut progress = Progress::default();
        let claimed = match document {
            Document::Graph(document) => self.claim_graph(document, claim, &mut progress),
            Document::Ranks(document) => self.claim_ranks(document, claim, &mut progress),
        };
        if let Err(failure) = claimed {
            self.undo(&progress, job);
            return Err(failure);
        }
        if let Document::Graph(document) = document
            && let Err(failure) = self.mark_listed(document, &progress)
        {
            if !self.quirks.half_updates {
                self.undo(&progress, job);
            }
            return Err(failure);
        }
        if !self.scratch.root_is_marked() {
            if self.quirks.half_updates {
                return Ok(());
            }
            self.undo(&progress, job);
            return fail("the document has no edge from the root of the graph: add it".to_owned());
        }
        let whole = self.policy.node_exclusive && self.quirks.unbooked_wholes;
        let exclusive_types = if whole { vec![self.node_type] } else { Vec::new() };
        let hold = Some(AllocationKind::Allocation);
        let divisible = self.is_extended();
        let booking = Booking { job, start, duration, hold, spans_exist: true, divisible, exclusive_types };
        self.book(&booking, sink)
    }

    /// Types that a document names are known from then on, whether it fits or not.
    fn know_types(&mut self, document: &Document) {
        match document {
            Document::Graph(document) => {
                for node in &document.nodes {
                    self.graph.intern_type(&node.type_name);
                }
            }
            Document::Ranks(document) => {
                for (type_name, _) in document.ranks.iter().flat_map(|rank| &rank.children) {
                    self.graph.intern_type(type_name);
                }
            }
        }
    }

    fn undo(&mut self, progress: &Progress, job: JobId) {
        for &id in &progress.booked {
            self.drop_plan(id, job);
        }
    }

    /// The vertex that a record describes; every field that a job's document repeats must be the same.
    pub(super) fn find_record(&self, record: &NodeRecord) -> Result<VertexId, Failure> {
        let key = &record.key;
        let mut found = None;
        for path in record.paths.values() {
            let here = self.graph.find_path(path);
            let here = here.map_or(&[][..], |here| self.graph.at_path_of_rank(here, record.rank));
            match (here.first(), found) {
                (Some(&id), None) => found = Some(id),
                (Some(&id), Some(known)) if id == known => {}
                _ => {
                    return fail(format!(
                        "exist: inconsistent input vertex: nonexistent path ({path}) {key}.\n"
                    ));
                }
            }
        }
        let Some(id) = found else {
            return fail(format!("find_vtx: inconsistent input vertex for {key}: it has no path.\n"));
        };
        let vertex = self.graph.vertex(id);
        let text = |sym| self.graph.text(sym);
        let mut differences = Vec::new();
        let mut compare = |field: &str, ours: &str, theirs: &str| {
            if ours != theirs {
                differences.push(format!("{field}=({ours}, {theirs})"));
            }
        };
        compare("type", self.graph.type_name(vertex.type_id), &record.type_name);
        compare("basename", text(vertex.basename), &record.basename);
        if !(self.is_extended() && record.size < vertex.size) {
            compare("size", &vertex.size.to_string(), &record.size.to_string());
        }
        compare("id", &vertex.id.to_string(), &record.id.to_string());
        compare("name", text(vertex.name), &record.name);
        let same_paths = vertex.paths.len() == record.paths.len()
            && vertex.paths.iter().all(|&(subsystem, path)| {
                let theirs = record.paths.get(self.graph.subsystem_name(subsystem));
                theirs.is_some_and(|theirs| *theirs == self.graph.path_text(path))
            });
        compare("paths", if same_paths { "same" } else { "other" }, "same");
        if differences.is_empty() {
            return Ok(id);
        }
        let differences = differences.join(" ");
        fail(format!("find_vtx: inconsistent input vertex for {key}.\n{differences}.\n"))
    }

    fn claim_graph(
        &mut self,
        document: &GraphDocument,
        claim: Claim,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let mut seen = BTreeSet::new();
        for record in &document.nodes {
            if document.free_ranks.as_ref().is_some_and(|free| is_free_rank(free, record.rank)) {
                continue;
            }
            let id = self.find_record(record)?;
            if record.exclusive && record.size < self.graph.vertex(id).size {
                progress.parts.insert(id, record.size);
            }
            self.claim_listed(id, &record.key, record.exclusive, claim, &mut seen, progress)?;
            if !(document.shorthand && record.exclusive) {
                continue;
            }
            for below in self.subtree(id).into_iter().skip(1) {
                let key = self.graph.vertex(below).uniq_id.to_string();
                self.claim_listed(below, &key, true, claim, &mut seen, progress)?;
            }
            for top in self.subtree(id) {
                progress.implied.extend(self.graph.children(top, self.dominant).map(|(edge, _)| edge));
            }
        }
        Ok(())
    }

    fn claim_listed(
        &mut self,
        id: VertexId,
        key: &str,
        exclusive: bool,
        claim: Claim,
        seen: &mut BTreeSet<VertexId>,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        if !seen.insert(id) || progress.listed.insert(key.to_owned(), (id, exclusive)).is_some() {
            return fail(format!("find_vtx: found duplicate JGF node id for {key}.\n"));
        }
        if exclusive {
            return self.claim(id, claim, progress);
        }
        if self.is_free(id, claim) {
            return Ok(());
        }
        let name = self.graph.text(self.graph.vertex(id).name);
        fail(format!("update_vtx_plan: {name} is unavailable.\n"))
    }

    fn is_free(&self, id: VertexId, claim: Claim) -> bool {
        let free = self.allocations.min_free(&self.graph, id, claim.start, claim.duration);
        free.is_ok_and(|free| free >= self.graph.vertex(id).size)
    }

    /// Allocates a whole vertex, or the recorded part of it.
    fn claim(&mut self, id: VertexId, claim: Claim, progress: &mut Progress) -> Result<(), Failure> {
        let size = progress.parts.get(&id).copied().unwrap_or(self.graph.vertex(id).size);
        let account = self.allocations.open(&self.graph, id);
        let known = account.entry(claim.job).is_some_and(|entry| entry.plan.is_some());
        match account.plan.add(claim.start, claim.duration, size) {
            Ok(span) if !known || self.quirks.leaked_bookings => {
                account.hold_too(claim.job, (AllocationKind::Allocation, span));
                progress.booked.push(id);
                Ok(())
            }
            other => {
                if let Ok(span) = other {
                    account.plan.remove(span).map_err(|errno| Failure::new(errno, "undoing a span"))?;
                }
                let name = self.graph.text(self.graph.vertex(id).name);
                fail(format!("update_vtx_plan: can't add span into {name}.\n"))
            }
        }
    }

    fn mark_root(&mut self, exclusive: bool) {
        let Some(root) = self.root() else { return };
        if !self.scratch.root_is_marked() {
            let needs = self.graph.vertex(root).size;
            self.scratch.root_mark = Mark { round: self.scratch.round, needs, exclusive };
        }
    }

    fn mark_listed(&mut self, document: &GraphDocument, progress: &Progress) -> Result<(), Failure> {
        for record in &document.edges {
            let (source, target) = (progress.listed.get(&record.source), progress.listed.get(&record.target));
            let (Some(&source), Some(&target)) = (source, target) else {
                if document.free_ranks.is_some() {
                    continue;
                }
                let (source, target) = (&record.source, &record.target);
                return fail(format!(
                    "unpack_edge: source and/or target vertex not found{source} -> {target}.\n"
                ));
            };
            let edge = self.graph.find_edge(source.0, target.0).filter(|&edge| {
                self.graph.subsystem_name(self.graph.edge(edge).subsystem) == record.subsystem
            });
            let Some(edge) = edge else {
                let name = |id| self.graph.text(self.graph.vertex(id).name);
                let (source, target) = (name(source.0), name(target.0));
                return fail(format!(
                    "update_tgt_edge: JGF edge from {source} to {target} not found in resource graph.\n"
                ));
            };
            self.mark_edge(edge, source, target, progress);
        }
        let by_id: BTreeMap<VertexId, bool> = progress.listed.values().copied().collect();
        for &edge in &progress.implied {
            let between = self.graph.edge(edge);
            if let (Some(&source), Some(&target)) = (by_id.get(&between.source), by_id.get(&between.target)) {
                self.mark_edge(edge, (between.source, source), (between.target, target), progress);
            }
        }
        Ok(())
    }

    fn mark_edge(
        &mut self,
        edge: EdgeId,
        source: (VertexId, bool),
        target: (VertexId, bool),
        progress: &Progress,
    ) {
        let needs = progress.parts.get(&target.0).copied().unwrap_or(self.graph.vertex(target.0).size);
        self.scratch.mark(&self.graph, edge, needs, target.1);
        if Some(source.0) == self.root() {
            self.mark_root(source.1);
        }
    }

    fn claim_ranks(
        &mut self,
        document: &RankDocument,
        claim: Claim,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let mut updated: BTreeMap<i32, usize> = BTreeMap::new();
        for record in &document.ranks {
            self.claim_rank(record, claim, &mut updated, progress)?;
        }
        Ok(())
    }

    /// The one child of a vertex with this name, rank, number and type, of which there is one piece.
    fn named_child(
        &self,
        of: VertexId,
        name: &str,
        rank: i32,
        number: i64,
        type_name: &str,
    ) -> Result<(EdgeId, VertexId), Failure> {
        let found = self.graph.children(of, self.dominant).find(|&(_, child)| {
            let vertex = self.graph.vertex(child);
            vertex.rank == rank
                && vertex.id == number
                && vertex.size == 1
                && self.graph.text(vertex.name) == name
                && self.graph.type_name(vertex.type_id) == type_name
        });
        match found {
            Some(found) => Ok(found),
            None => fail(format!("add_or_update: couldn't find vertex in graph for {name}.\n")),
        }
    }

    fn claim_rank(
        &mut self,
        record: &RankRecord,
        claim: Claim,
        updated: &mut BTreeMap<i32, usize>,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let Some(root) = self.root() else { return fail("the graph has no root".to_owned()) };
        let number =
            host_number(&record.host).map_err(|error| Failure::new(Errno::Einval, error.to_string()))?;
        let (edge, node) = self.named_child(root, &record.host, record.rank, number, "node")?;
        let unavailable = |name: &str| fail(format!("update_vertex: {name} is unavailable.\n"));
        if !self.is_free(node, claim) {
            return unavailable(&record.host);
        }
        self.mark_root(false);
        self.scratch.mark(&self.graph, edge, 1, true);
        for (type_name, ids) in &record.children {
            for &child in ids {
                let name = format!("{type_name}{child}");
                let (edge, id) = self.named_child(node, &name, record.rank, child, type_name)?;
                if !self.is_free(id, claim) {
                    return unavailable(&name);
                }
                self.claim(id, claim, progress)?;
                self.scratch.mark(&self.graph, edge, 1, true);
                *updated.entry(record.rank).or_default() += 1;
            }
        }
        let count = updated.get(&record.rank).copied().unwrap_or(0);
        if count + 1 == self.graph.of_rank(record.rank).len() {
            self.claim(node, claim, progress)?;
        }
        Ok(())
    }
}
