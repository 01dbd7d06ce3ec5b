//! Converts the engine's state to the objects that users see: pure functions.
//!
//! Everything that depends on the user is decided here, by a [`Viewer`]; authentication and transport are handled
//! elsewhere.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fluxion_scheduler::model::SharedStr;
use fluxion_scheduler::state::{JobId, State};

use crate::engine::Published;

pub mod audit;
pub mod cancel;
pub mod explain;
pub mod graph;
pub mod job;
pub mod name;
pub mod node;
pub mod queue;
pub mod redact;
pub mod text;
pub mod timeline;
pub mod words;

/// The name of singleton documents.
pub const LIVE: &str = "live";

/// What a user may see. Nodes and queues are visible to everyone; the content of a namespace is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Viewer {
    /// `None`: all.
    namespaces: Option<BTreeSet<SharedStr>>,
    nodes: bool,
}

impl Viewer {
    /// The administrator.
    pub fn everything() -> Self {
        Self { namespaces: None, nodes: true }
    }

    /// A user who may see these namespaces and gets no information about others.
    pub fn namespaces(namespaces: impl IntoIterator<Item = SharedStr>) -> Self {
        Self { namespaces: Some(namespaces.into_iter().collect()), nodes: false }
    }

    /// Who may, or may not, see the labels of nodes.
    #[must_use]
    pub fn with_nodes(self, nodes: bool) -> Self {
        Self { nodes, ..self }
    }

    /// Whether the labels of nodes may be seen.
    pub fn sees_nodes(&self) -> bool {
        self.nodes
    }

    pub fn sees(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|namespaces| namespaces.contains(namespace))
    }

    pub fn sees_everything(&self) -> bool {
        self.namespaces.is_none()
    }
}

/// A state as visible to one viewer; data needed for many objects is computed once.
pub struct Visible<'a> {
    pub state: &'a State,
    pub viewer: &'a Viewer,
    /// Duration of the last pass over the queues.
    pub pass_seconds: f64,
    places: OnceCell<Arc<Places>>,
    positions: OnceCell<BTreeMap<JobId, u32>>,
}

impl<'a> Visible<'a> {
    /// A published snapshot as visible to this viewer.
    pub fn of(published: &'a Published, viewer: &'a Viewer) -> Self {
        Self { pass_seconds: published.pass_seconds, ..Self::new(&published.state, viewer) }
    }

    /// The same, where the places of that snapshot are known already.
    pub fn with_places(published: &'a Published, viewer: &'a Viewer, places: &Arc<Places>) -> Self {
        Self { places: OnceCell::from(Arc::clone(places)), ..Self::of(published, viewer) }
    }

    /// A state of which nobody measured anything.
    pub fn new(state: &'a State, viewer: &'a Viewer) -> Self {
        Self { state, viewer, pass_seconds: 0.0, places: OnceCell::new(), positions: OnceCell::new() }
    }

    /// 1-based position of a job among the pending jobs of its queue that are visible to the viewer.
    pub fn position(&self, job: JobId) -> Option<u32> {
        let places = self.places.get_or_init(|| Arc::new(Places::of(self.state)));
        let place = places.0.get(&job)?;
        let Some(seen) = &self.viewer.namespaces else { return Some(place.of_all) };
        if !self.viewer.sees(&self.state.job(job)?.key.namespace) {
            return None;
        }
        if seen.len() == 1 {
            return Some(place.of_namespace);
        }
        let positions = self.positions.get_or_init(|| {
            let mut positions = BTreeMap::new();
            for queue in self.state.queues() {
                let seen = self.state.pending(&queue.name).into_iter();
                let seen = seen.filter(|job| self.viewer.sees(&job.key.namespace));
                positions.extend(seen.map(|job| job.id).zip(1..));
            }
            positions
        });
        positions.get(&job).copied()
    }
}

/// Where a job stands among the pending ones of its queue; 1-based.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    of_all: u32,
    of_namespace: u32,
}

/// The places of all pending jobs of a state.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Places(BTreeMap<JobId, Place>);

impl Places {
    pub fn of(state: &State) -> Self {
        let mut places = Vec::new();
        for queue in state.queues() {
            let mut namespaces: BTreeMap<&str, u32> = BTreeMap::new();
            for (job, of_all) in state.pending(&queue.name).into_iter().zip(1..) {
                let of_namespace = namespaces.entry(&job.key.namespace).or_default();
                *of_namespace += 1;
                places.push((job.id, Place { of_all, of_namespace: *of_namespace }));
            }
        }
        Self(places.into_iter().collect())
    }
}

#[cfg(test)]
mod tests;
