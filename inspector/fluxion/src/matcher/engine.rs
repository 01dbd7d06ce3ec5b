//! The match engine: a graph, its allocations and match options.

use thiserror::Error;

use super::allocations::Allocations;
use super::extension::Extension;
use super::filter::{FilterError, Filters};
use super::memo::Memo;
use super::policy::Policy;
use super::scratch::Scratch;
use super::shorts::Shorts;
use crate::graph::{Graph, Status, Subsystem, TypeId, VertexId};
use crate::quirks::Quirks;

/// Match options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Match policy.
    pub policy: Policy,
    /// Names of subsystems; the first one is dominant: it is traversed, allocated and printed.
    pub subsystems: Vec<String>,
    /// Whether multiple slots in one list are alternatives.
    pub flexible: bool,
    /// Pruning filters, `HIGH:LOW,...`; empty for the default.
    pub filters: String,
    /// Quirks to reproduce.
    pub quirks: Quirks,
}

/// Lowest ids first, on the containment subsystem, without quirks.
impl Default for Options {
    fn default() -> Self {
        Self {
            policy: Policy::LOW,
            subsystems: vec!["containment".to_owned()],
            flexible: false,
            filters: String::new(),
            quirks: Quirks::default(),
        }
    }
}

/// Why an engine can't be created.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EngineError {
    /// No subsystem was specified, or the graph does not have it.
    #[error("the graph has no subsystem {0}")]
    NoSubsystem(String),
    /// The pruning filters can't be set up.
    #[error(transparent)]
    Filter(#[from] FilterError),
}

/// The match engine.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(super) graph: Graph,
    pub(super) allocations: Allocations,
    pub(super) filters: Filters,
    pub(super) policy: Policy,
    pub(super) flexible: bool,
    pub(super) quirks: Quirks,
    pub(super) dominant: Subsystem,
    pub(super) auxiliary: Vec<Subsystem>,
    pub(super) scratch: Scratch,
    pub(super) memo: Memo,
    pub(super) extension: Option<Box<dyn Extension>>,
    /// Whether every vertex is visited every time.
    pub(super) exact_only: bool,
    /// Nodes that are up.
    pub(super) nodes_really_up: i64,
    /// Usable nodes, as Fluxion counts them.
    pub(super) nodes_up: i64,
    pub(super) node_type: TypeId,
    pub(super) storage_node_type: TypeId,
}

impl Engine {
    /// Creates an engine for a graph without allocations.
    pub fn new(mut graph: Graph, options: &Options) -> Result<Self, EngineError> {
        let find =
            |name: &String| graph.find_subsystem(name).ok_or_else(|| EngineError::NoSubsystem(name.clone()));
        let mut subsystems = options.subsystems.iter().map(find).collect::<Result<Vec<_>, _>>()?.into_iter();
        let dominant = subsystems.next().ok_or_else(|| EngineError::NoSubsystem(String::new()))?;
        let text = match options.filters.trim() {
            "" => Filters::DEFAULT,
            text => text,
        };
        let filters = Filters::parse(text, &mut graph)?;
        let node_type = graph.intern_type("node");
        let storage_node_type = graph.intern_type("storage_node");
        let nodes_up = graph
            .of_type(node_type)
            .iter()
            .map(|&id| if graph.vertex(id).status == Status::Up { 1 } else { -1 })
            .sum();
        let mut engine = Self {
            graph,
            allocations: Allocations::default(),
            filters,
            policy: options.policy,
            flexible: options.flexible,
            quirks: options.quirks,
            dominant,
            auxiliary: subsystems.collect(),
            scratch: Scratch::default(),
            memo: Memo::default(),
            extension: None,
            exact_only: false,
            nodes_really_up: 0,
            nodes_up,
            node_type,
            storage_node_type,
        };
        for &subsystem in &engine.auxiliary {
            if engine.graph.root(subsystem).is_none() {
                let name = engine.graph.subsystem_name(subsystem).to_owned();
                return Err(FilterError::NoRoot(name).into());
            }
        }
        engine.prime()?;
        Ok(engine)
    }

    /// Sets up the sums after the graph has changed.
    pub(super) fn prime(&mut self) -> Result<(), FilterError> {
        let known = self.filters.tracked().clone();
        self.filters.prime(&self.graph, &mut self.allocations, self.dominant, self.quirks)?;
        let new: Vec<TypeId> = self.filters.tracked().difference(&known).copied().collect();
        if !new.is_empty() && !self.quirks.halfway_tracking {
            self.enter_held(&new);
        }
        self.memo.reset(&self.graph, &mut self.allocations, self.dominant, self.node_type);
        self.scratch.make_room(&self.graph);
        self.scratch.shorts = Shorts::new(self.memo.units.by_vertex(), self.memo.units.len());
        self.forget_extension();
        let up = |id: &&VertexId| self.graph.vertex(**id).status == Status::Up;
        let count = self.graph.of_type(self.node_type).iter().filter(up).count();
        self.nodes_really_up = i64::try_from(count).unwrap_or(i64::MAX);
        Ok(())
    }

    /// Forgets what follows from states and properties of vertices.
    pub(super) fn forget_visits(&mut self) {
        self.memo.forget();
        self.forget_extension();
    }

    fn forget_extension(&mut self) {
        if let Some(extension) = &mut self.extension {
            extension.forget();
        }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The allocations.
    pub fn allocations(&self) -> &Allocations {
        &self.allocations
    }

    /// The dominant subsystem, which is traversed, allocated and printed.
    pub fn dominant(&self) -> Subsystem {
        self.dominant
    }

    /// Quirks to reproduce.
    pub fn quirks(&self) -> Quirks {
        self.quirks
    }

    /// Whether to visit every vertex every time, without reusing information from earlier matches.
    /// The results are the same.
    pub fn set_exact(&mut self, exact: bool) {
        self.exact_only = exact;
    }

    /// Preorder and postorder visit counts of the last operation.
    pub fn visits(&self) -> (u64, u64) {
        (self.scratch.preorder, self.scratch.postorder)
    }

    pub(super) fn root(&self) -> Option<VertexId> {
        self.graph.root(self.dominant)
    }

    /// Number of usable nodes.
    pub(super) fn usable_nodes(&self) -> i64 {
        if self.quirks.drifting_node_count {
            return self.nodes_up;
        }
        self.nodes_really_up
    }

    /// The vertex and its descendants in the dominant subsystem, in depth-first order.
    pub(super) fn subtree(&self, top: VertexId) -> Vec<VertexId> {
        let mut seen = std::collections::BTreeSet::new();
        let mut open = vec![top];
        let mut all = Vec::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            all.push(id);
            let from = open.len();
            open.extend(self.graph.children(id, self.dominant).map(|(_, child)| child));
            open[from..].reverse();
        }
        all
    }
}
