//! Fluxion in Rust: a resource graph, a planner that tracks free resources over time, jobspecs, and a matcher that finds
//! and allocates resources. Results are compatible with flux-sched, and the crate `resource-query` provides its tool of
//! that name.
//!
//! Load a graph, match a jobspec, find allocated vertices, and cancel:
//!
//! ```
//! use fluxion::formats::rv1;
//! use fluxion::formats::writer::{Format, Writer};
//! use fluxion::graph::Graph;
//! use fluxion::jobspec::Jobspec;
//! use fluxion::matcher::sink::Emit;
//! use fluxion::matcher::{Engine, Operation, Options, Quirks};
//! use fluxion::search::Expression;
//!
//! // Four nodes with eight cores each.
//! let r = r#"{"version": 1, "execution": {"starttime": 0, "expiration": 0, "nodelist": ["node[0-3]"],
//!     "R_lite": [{"rank": "0-3", "children": {"core": "0-7"}}]}}"#;
//! let mut graph = Graph::new();
//! rv1::load(&mut graph, &rv1::parse(r.as_bytes(), 1_000)?)?;
//! let mut engine = Engine::new(graph, &Options::default())?;
//!
//! let spec = "{version: 9999, tasks: [], attributes: {system: {duration: 3600}},
//!     resources: [{type: slot, count: 2, label: task, with: [{type: core, count: 4}]}]}";
//! let spec = Jobspec::parse(spec, &|name| engine.graph().find_type(name).is_some())?;
//! let mut writer = Writer::new(Format::Simple, Quirks::default());
//! let found = engine.match_job(Operation::Allocate, &spec, 1, 0, &mut writer)?;
//! assert_eq!((found.at, found.duration), (0, 3600));
//!
//! let mut text = String::new();
//! writer.emit(engine.graph(), &mut text)?;
//! assert_eq!(text.matches("core").count(), 8);
//!
//! engine.find(&Expression::parse("sched-now=allocated")?, 0, &mut writer);
//! engine.cancel(1)?;
//! assert!(engine.is_as_new());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The modules, bottom up: [`graph`], and [`formats`] to read and write it; [`planner`]; [`jobspec`]; and the
//! [`matcher`], which can be extended with another matcher for requests that a canonical jobspec can't express
//! ([`matcher::extension`]). [`quirks`] lists quirks of flux-sched that can be reproduced individually.
//!
//! The crate uses no clock, randomness, network or files: time is an argument, in seconds.

pub mod document;
pub mod errno;
pub mod flux_constraint;
pub mod formats;
pub mod graph;
pub mod jobspec;
pub mod matcher;
pub mod planner;
pub mod quirks;
pub mod search;
