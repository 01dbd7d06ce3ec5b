//! The vertices of paths that more than one is registered under.

use std::collections::{BTreeMap, BTreeSet};

use super::ids::{PathId, VertexId};

/// Found by path, and by path and rank, without going through all of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    /// In order of registration.
    all: BTreeMap<PathId, Vec<VertexId>>,
    /// The same by rank.
    of_rank: BTreeMap<(PathId, i32), Vec<VertexId>>,
    members: BTreeSet<(PathId, VertexId)>,
}

impl Shared {
    /// The vertices of a path, in order of registration; none when no two have it.
    pub(super) fn all(&self, path: PathId) -> Option<&[VertexId]> {
        self.all.get(&path).map(Vec::as_slice)
    }

    /// Those of one rank.
    pub(super) fn of_rank(&self, path: PathId, rank: i32) -> &[VertexId] {
        self.of_rank.get(&(path, rank)).map_or(&[], Vec::as_slice)
    }

    /// Adds a vertex with its rank, unless it is there.
    pub(super) fn add(&mut self, path: PathId, vertex: VertexId, rank: i32) {
        if self.members.insert((path, vertex)) {
            self.all.entry(path).or_default().push(vertex);
            self.of_rank.entry((path, rank)).or_default().push(vertex);
        }
    }

    /// Takes a vertex away.
    pub(super) fn remove(&mut self, path: PathId, vertex: VertexId, rank: i32) {
        if !self.members.remove(&(path, vertex)) {
            return;
        }
        if let Some(all) = self.all.get_mut(&path) {
            all.retain(|other| *other != vertex);
        }
        if let Some(of_rank) = self.of_rank.get_mut(&(path, rank)) {
            of_rank.retain(|other| *other != vertex);
            if of_rank.is_empty() {
                self.of_rank.remove(&(path, rank));
            }
        }
    }

    /// Forgets a path; `rank_of` answers for its vertices.
    pub(super) fn forget(&mut self, path: PathId, rank_of: impl Fn(VertexId) -> i32) {
        for vertex in self.all.remove(&path).unwrap_or_default() {
            self.members.remove(&(path, vertex));
            self.of_rank.remove(&(path, rank_of(vertex)));
        }
    }
}
