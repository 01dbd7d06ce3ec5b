//! Formats simple and `pretty_simple`: an indented line for each vertex.

use std::fmt::Write;

use fluxion_text::{Syntax, escape};

use crate::graph::Graph;
use crate::matcher::sink::VertexEvent;

/// The lines of an answer.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    pretty: bool,
    text: String,
    /// Where each line begins.
    starts: Vec<usize>,
}

impl Lines {
    pub(super) fn simple() -> Self {
        Self { pretty: false, text: String::new(), starts: Vec::new() }
    }

    pub(super) fn pretty() -> Self {
        Self { pretty: true, ..Self::simple() }
    }

    pub(super) fn vertex(&mut self, graph: &Graph, event: &VertexEvent<'_>) {
        let mode = match (self.pretty, event.exclusive) {
            (false, true) => "x",
            (false, false) => "s",
            (true, true) => "exclusive",
            (true, false) => "shared",
        };
        self.starts.push(self.text.len());
        self.text.push_str("      ");
        for _ in 0..event.depth {
            self.text.push_str("---");
        }
        // A line is a vertex, whatever it is called.
        let name = escape(graph.text(graph.vertex(event.vertex).name), &[], Syntax::Json);
        writeln!(self.text, "{name}[{}:{mode}]", event.needs).expect("writing to a string does not fail");
    }

    pub(super) fn emit(&mut self, out: &mut String) {
        if self.pretty {
            let mut end = self.text.len();
            for start in self.starts.drain(..).rev() {
                out.push_str(&self.text[start..end]);
                end = start;
            }
        } else {
            out.push_str(&self.text);
            self.starts.clear();
        }
        self.text.clear();
    }
}
