//! From the engine's state to the objects that users see: pure functions.
//!
//! Everything that depends on who is asking is decided here, by a [`Viewer`]; who that is, and how the
//! objects travel, is not known here.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

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

/// The name of documents of which there is one.
pub const LIVE: &str = "live";

/// What the one who asks may see. Nodes and queues are everyone's; what runs in a namespace is not.
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

    /// Who may see these namespaces and learns nothing about others.
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

/// A state as one viewer sees it; what is needed for many objects is computed once.
pub struct Visible<'a> {
    pub state: &'a State,
    pub viewer: &'a Viewer,
    /// How long the last pass over the queues took.
    pub pass_seconds: f64,
    positions: OnceCell<BTreeMap<JobId, u32>>,
}

impl<'a> Visible<'a> {
    /// A published snapshot as this viewer sees it.
    pub fn of(published: &'a Published, viewer: &'a Viewer) -> Self {
        Self { pass_seconds: published.pass_seconds, ..Self::new(&published.state, viewer) }
    }

    /// A state of which nobody measured anything.
    pub fn new(state: &'a State, viewer: &'a Viewer) -> Self {
        Self { state, viewer, pass_seconds: 0.0, positions: OnceCell::new() }
    }

    /// 1-based place of a job among the pending ones of its queue that the viewer may see.
    pub fn position(&self, job: JobId) -> Option<u32> {
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

#[cfg(test)]
mod tests;
