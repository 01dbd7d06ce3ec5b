//! Startup: loads the graph, and creates the engine and the writer.

use std::fs::File;
use std::io::{BufReader, Read};

use fluxion::formats::hwloc::{self, Allowlist};
use fluxion::formats::writer::Writer;
use fluxion::formats::{grug, jgf, rv1};
use fluxion::graph::Graph;
use fluxion::matcher::filter::FilterError;
use fluxion::matcher::{Engine, EngineError, Options as EngineOptions, Policy, Quirks};
use fluxion_scheduler::extension::{Shares, plug_in};

use crate::options::{LoadFormat, Options};
use crate::session::FILE_MAX;

/// Combinations of subsystems by their names; the first one dominates.
const SUBSYSTEMS: [(&str, &[&str]); 14] = [
    ("CA", &["containment"]),
    ("IBA", &["ibnet"]),
    ("IBBA", &["ibnetbw"]),
    ("PFS1BA", &["pfs1bw"]),
    ("PA", &["power"]),
    ("VA", &["virtual1"]),
    ("C+IBA", &["containment", "ibnet"]),
    ("C+IBBA", &["containment", "ibnetbw"]),
    ("C+PA", &["containment", "power"]),
    ("C+PFS1BA", &["containment", "pfs1bw"]),
    ("IB+IBBA", &["ibnet", "ibnetbw"]),
    ("C+P+IBA", &["containment", "power", "ibnet"]),
    ("V+PFS1BA", &["virtual1", "pfs1bw"]),
    ("ALL", &["containment", "ibnet", "ibnetbw", "pfs1bw", "power"]),
];

/// Startup errors, with messages that scripts rely on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The match policy is not known.
    #[error("resource_query_t: ERROR: can't create matcher: unknown policy {0} (see --help)\n")]
    Policy(String),
    /// The graph can't be loaded.
    #[error("resource_query_t: ERROR: {0}\nERROR: error generating resources\n")]
    Load(String),
    /// The traverser is not known.
    #[error(
        "resource_query_t: ERROR: can't create traverser: unknown traverser {0} (must be simple or flexible)\n"
    )]
    Traverser(String),
    /// The combination of subsystems is not known.
    #[error("resource_query_t: ERROR: unknown subsystems {0} (see --help)\n")]
    Subsystems(String),
    /// The pruning filters are malformed.
    #[error("initialize_matchers_and_traversers: ERROR: can't set pruning filters: {0}\n")]
    Filters(EngineError),
    /// A subsystem has no root, or can't be summed up.
    #[error("initialize_matchers_and_traversers: ERROR: can't initialize traverser: {0}\n")]
    Traverse(EngineError),
}

impl From<EngineError> for StartError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Filter(FilterError::Malformed(_)) => Self::Filters(error),
            EngineError::NoSubsystem(_) | EngineError::Filter(_) => Self::Traverse(error),
        }
    }
}

/// Loads the graph and makes the matcher and the writer that answers.
pub(crate) fn start(options: &Options) -> Result<(Engine, Writer), StartError> {
    let policy = Policy::parse(&options.match_policy)
        .ok_or_else(|| StartError::Policy(options.match_policy.clone()))?;
    let flexible = match options.traverser_policy.as_str() {
        "simple" => false,
        "flexible" => true,
        other => return Err(StartError::Traverser(other.to_owned())),
    };
    let subsystems = subsystems(&options.match_subsystems)
        .ok_or_else(|| StartError::Subsystems(options.match_subsystems.clone()))?;
    let mut graph = load(options)?;
    let shares = if options.kubernetes { Shares::take(&mut graph) } else { Shares::default() };
    let mut quirks = if options.kubernetes { Quirks::default() } else { Quirks::flux_sched() };
    quirks.introsort_ties &= !options.stable_ties;
    let engine = EngineOptions {
        policy,
        subsystems: subsystems.iter().map(ToString::to_string).collect(),
        flexible,
        filters: options.prune_filters.clone().unwrap_or_default(),
        quirks,
    };
    let mut engine = Engine::new(graph, &engine)?;
    if options.kubernetes {
        plug_in(&mut engine, shares).map_err(|failure| StartError::Load(failure.to_string()))?;
    }
    Ok((engine, Writer::new(options.match_format, quirks)))
}

fn subsystems(name: &str) -> Option<&'static [&'static str]> {
    SUBSYSTEMS.iter().find(|(known, _)| *known == name || known.to_lowercase() == name).map(|(_, list)| *list)
}

fn load(options: &Options) -> Result<Graph, StartError> {
    let mut graph = Graph::new();
    graph.set_limit(options.max_vertices);
    graph.reserve(options.reserve);
    let file = File::open(&options.load_file).map_err(|error| {
        let name = options.load_file.display();
        StartError::Load(format!(
            "can't read the graph file {name}: {error}; use --load-file to specify a graph file"
        ))
    });
    let loaded = match options.load_format {
        LoadFormat::Jgf => jgf::load(&mut graph, BufReader::with_capacity(1 << 16, file?)),
        LoadFormat::Rv1 => rv1::parse(BufReader::with_capacity(1 << 16, file?), options.max_vertices)
            .and_then(|document| rv1::load(&mut graph, &document)),
        LoadFormat::Grug => grug::load(&mut graph, &contents(file?)?),
        LoadFormat::Hwloc => {
            // Without a file the graph is empty, as with an empty one.
            let text = file.map_or_else(|_| Ok(Vec::new()), contents)?;
            let allowed = options.load_allowlist.as_deref().map_or_else(Allowlist::all, Allowlist::parse);
            hwloc::load(&mut graph, &text, &allowed)
        }
    };
    loaded.map_err(|error| StartError::Load(error.to_string()))?;
    Ok(graph)
}

/// The bytes of a file.
fn contents(file: impl Read) -> Result<Vec<u8>, StartError> {
    let mut bytes = Vec::new();
    let wrong = |what: String| Err(StartError::Load(format!("can't read the graph file: {what}")));
    match file.take(FILE_MAX + 1).read_to_end(&mut bytes) {
        Ok(length) if length as u64 <= FILE_MAX => Ok(bytes),
        Ok(_) => wrong(format!("the file is larger than {} MiB", FILE_MAX >> 20)),
        Err(error) => wrong(error.to_string()),
    }
}
