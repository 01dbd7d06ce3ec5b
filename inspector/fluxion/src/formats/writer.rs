//! Writers for the results of matches, updates and searches.
//!
//! A [`Writer`] receives the result vertex by vertex, collects the pieces of the output, and assembles
//! them on request.

mod jgf;
mod json;
mod rlite;
mod rv1;
mod simple;

use std::str::FromStr;

use self::jgf::JgfParts;
use self::rlite::RliteParts;
use self::simple::Lines;
use crate::errno::Errno;
use crate::graph::{EdgeId, Graph, VertexId};
use crate::matcher::sink::{Emit, Sink, VertexEvent};
use crate::quirks::Quirks;

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// One indented line per vertex, the root last.
    #[default]
    Simple,
    /// The same in a more readable form, the root first.
    PrettySimple,
    /// JSON graph (JGF).
    Jgf,
    /// JGF without the vertices below an exclusive vertex.
    JgfShorthand,
    /// Ranks with their cores and GPUs.
    Rlite,
    /// R including the graph.
    Rv1,
    /// R without the graph.
    Rv1Nosched,
    /// R including the shorthand graph.
    Rv1Shorthand,
}

/// Unknown format name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown format {0}: must be simple, pretty_simple, jgf, jgf_shorthand, rlite, rv1, rv1_nosched or rv1_shorthand"
)]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Ok(match name {
            "simple" => Self::Simple,
            "pretty_simple" => Self::PrettySimple,
            "jgf" => Self::Jgf,
            "jgf_shorthand" => Self::JgfShorthand,
            "rlite" => Self::Rlite,
            "rv1" => Self::Rv1,
            "rv1_nosched" => Self::Rv1Nosched,
            "rv1_shorthand" => Self::Rv1Shorthand,
            other => return Err(UnknownFormat(other.to_owned())),
        })
    }
}

/// A whole graph as JGF, with the status of its vertices and the allocated amount of each in `used`, which JGF
/// readers ignore.
pub fn graph(graph: &Graph, used: &dyn Fn(VertexId) -> u64) -> String {
    jgf::whole(graph, used)
}

/// The parts of an answer that a format needs.
#[derive(Debug, Clone)]
enum Parts {
    Lines(Lines),
    Jgf(JgfParts),
    Rlite(RliteParts),
    R { rlite: RliteParts, graph: Option<JgfParts> },
}

/// Collects a result and writes it in one format.
#[derive(Debug, Clone)]
pub struct Writer {
    parts: Parts,
    quirks: Quirks,
    /// First second and the one after the last; zero for an answer without times.
    times: (i64, i64),
    queue: Option<String>,
}

impl Writer {
    /// Creates an empty writer.
    pub fn new(format: Format, quirks: Quirks) -> Self {
        let jgf = |shorthand| JgfParts::new(shorthand, quirks);
        let rlite = || RliteParts::new(quirks);
        let parts = match format {
            Format::Simple => Parts::Lines(Lines::simple()),
            Format::PrettySimple => Parts::Lines(Lines::pretty()),
            Format::Jgf => Parts::Jgf(jgf(false)),
            Format::JgfShorthand => Parts::Jgf(jgf(true)),
            Format::Rlite => Parts::Rlite(rlite()),
            Format::Rv1 => Parts::R { rlite: rlite(), graph: Some(jgf(false)) },
            Format::Rv1Nosched => Parts::R { rlite: rlite(), graph: None },
            Format::Rv1Shorthand => Parts::R { rlite: rlite(), graph: Some(jgf(true)) },
        };
        Self { parts, quirks, times: (0, 0), queue: None }
    }
}

impl Sink for Writer {
    fn vertex(&mut self, graph: &Graph, event: &VertexEvent<'_>) {
        match &mut self.parts {
            Parts::Lines(lines) => lines.vertex(graph, event),
            Parts::Jgf(parts) => parts.vertex(graph, event),
            Parts::Rlite(parts) => parts.vertex(graph, event),
            Parts::R { rlite, graph: parts } => {
                rlite.vertex(graph, event);
                if let Some(parts) = parts {
                    parts.vertex(graph, event);
                }
            }
        }
    }

    fn edge(&mut self, graph: &Graph, edge: EdgeId, exclusive: bool) {
        if let Parts::Jgf(parts) | Parts::R { graph: Some(parts), .. } = &mut self.parts {
            parts.edge(graph, edge, exclusive);
        }
    }

    fn times(&mut self, start: i64, end: i64) {
        self.times = (start, end);
    }

    fn queue(&mut self, queue: &str) {
        self.queue = Some(queue.to_owned());
    }
}

impl Emit for Writer {
    fn emit(&mut self, _: &Graph, out: &mut String) -> Result<(), Errno> {
        let queue = self.queue.as_deref();
        let result = match &mut self.parts {
            Parts::Lines(lines) => {
                lines.emit(out);
                Ok(())
            }
            Parts::Jgf(parts) => parts.emit_line(out),
            Parts::Rlite(parts) => parts.emit_line(out),
            Parts::R { rlite, graph } => {
                rv1::emit_line(rlite, graph.as_mut(), self.times, queue, self.quirks, out)
            }
        };
        self.times = (0, 0);
        if !self.quirks.sticky_queue {
            self.queue = None;
        }
        result
    }
}

#[cfg(test)]
mod tests;
