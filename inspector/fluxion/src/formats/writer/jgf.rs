//! Formats jgf and `jgf_shorthand`: a graph in JSON.

use super::json;
use crate::errno::Errno;
use crate::graph::{EdgeId, Graph, Status, Subsystem, VertexId};
use crate::matcher::sink::VertexEvent;
use crate::quirks::Quirks;

/// The two arrays of an answer, as text.
#[derive(Debug, Clone)]
pub(super) struct JgfParts {
    shorthand: bool,
    quirks: Quirks,
    nodes: String,
    edges: String,
    /// Whether something was left out because what it belongs to is exclusive.
    shortened: bool,
}

impl JgfParts {
    pub(super) fn new(shorthand: bool, quirks: Quirks) -> Self {
        Self { shorthand, quirks, nodes: String::new(), edges: String::new(), shortened: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.edges.is_empty()
    }

    pub(super) fn vertex(&mut self, graph: &Graph, event: &VertexEvent<'_>) {
        if self.shorthand && event.parent_exclusive {
            self.shortened = true;
            return;
        }
        let out = &mut self.nodes;
        json::separate(out);
        write_vertex(out, graph, event, None);
    }

    pub(super) fn edge(&mut self, graph: &Graph, edge: EdgeId, exclusive: bool) {
        if self.shorthand && exclusive {
            self.shortened = true;
            return;
        }
        let edge = graph.edge(edge);
        let uniq_id = |vertex| graph.vertex(vertex).uniq_id;
        let out = &mut self.edges;
        json::separate(out);
        let (source, target) = (uniq_id(edge.source), uniq_id(edge.target));
        json::number(out, format_args!("{{\"source\": \"{source}\", \"target\": \"{target}\""));
        if edge.subsystem != Subsystem::CONTAINMENT {
            json::member(out, "metadata");
            object(out, std::iter::once(("subsystem", graph.subsystem_name(edge.subsystem))));
        }
        out.push('}');
    }

    /// Whether the content has a text; nodes without edges have none where accidents are repeated.
    pub(super) fn check(&mut self) -> Result<(), Errno> {
        if self.edges.is_empty() && !self.nodes.is_empty() && self.quirks.writer_keeps_leftovers {
            return Err(Errno::Enoent);
        }
        Ok(())
    }

    /// Appends the object and forgets it.
    pub(super) fn emit(&mut self, out: &mut String) {
        out.push_str("{\"graph\": {\"nodes\": [");
        out.push_str(&self.nodes);
        out.push_str("], \"edges\": [");
        out.push_str(&self.edges);
        out.push_str("]}");
        if self.shortened {
            out.push_str(", \"writer\": \"fluxion:jgf_shorthand\"");
        }
        out.push('}');
        self.clear();
    }

    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.edges.clear();
        if !self.quirks.sticky_shorthand_mark {
            self.shortened = false;
        }
    }

    pub(super) fn emit_line(&mut self, out: &mut String) -> Result<(), Errno> {
        if self.is_empty() {
            return Ok(());
        }
        self.check()?;
        self.emit(out);
        out.push('\n');
        Ok(())
    }
}

/// A graph as it is, and how much of each vertex is held now.
pub(super) fn whole(graph: &Graph, used: &dyn Fn(VertexId) -> u64) -> String {
    let mut parts = JgfParts::new(false, Quirks::default());
    for id in graph.vertex_ids() {
        let event = VertexEvent {
            depth: 1,
            vertex: id,
            needs: graph.vertex(id).size,
            exclusive: false,
            parent_exclusive: false,
            label: None,
            aggregates: None,
        };
        json::separate(&mut parts.nodes);
        write_vertex(&mut parts.nodes, graph, &event, Some(&Facts { used: used(id) }));
        for edge in &graph.vertex(id).out_edges {
            parts.edge(graph, *edge, false);
        }
    }
    let mut out = String::with_capacity(parts.nodes.len() + parts.edges.len() + 64);
    parts.emit(&mut out);
    out
}

/// What the graph itself says of a vertex, and no answer does.
struct Facts {
    /// How much of it is held now.
    used: u64,
}

fn write_vertex(out: &mut String, graph: &Graph, event: &VertexEvent<'_>, facts: Option<&Facts>) {
    let vertex = graph.vertex(event.vertex);
    json::number(out, format_args!("{{\"id\": \"{}\", \"metadata\": {{", vertex.uniq_id));
    let type_name = graph.type_name(vertex.type_id);
    let (basename, name) = (graph.text(vertex.basename), graph.text(vertex.name));
    json::member(out, "type");
    json::string(out, type_name);
    if basename != type_name {
        json::member(out, "basename");
        json::string(out, basename);
    }
    if !is_default_name(name, basename, vertex.id) {
        json::member(out, "name");
        json::string(out, name);
    }
    json::member(out, "id");
    json::number(out, vertex.id);
    if facts.is_some() {
        json::member(out, "uniq_id");
        json::number(out, vertex.uniq_id);
    }
    json::member(out, "rank");
    json::number(out, vertex.rank);
    if facts.is_some() && vertex.status == Status::Down {
        json::member(out, "status");
        out.push('1');
    }
    let properties = graph.properties(event.vertex);
    if !properties.is_empty() {
        json::member(out, "properties");
        object(out, properties.into_iter());
    }
    let unit = graph.text(vertex.unit);
    if !unit.is_empty() {
        json::member(out, "unit");
        json::string(out, unit);
    }
    if event.exclusive {
        json::member(out, "exclusive");
        out.push_str("true");
    }
    if event.needs != 1 {
        json::member(out, "size");
        json::number(out, event.needs);
    }
    if let Some(Facts { used: used @ 1.. }) = facts {
        json::member(out, "used");
        json::number(out, used);
    }
    if !vertex.paths.is_empty() {
        json::member(out, "paths");
        out.push('{');
        let mut paths = vertex.paths.clone();
        paths.sort_unstable();
        for (subsystem, path) in paths {
            json::member(out, graph.subsystem_name(subsystem));
            json::string(out, &graph.path_text(path));
        }
        out.push('}');
    }
    if let Some(label) = event.label {
        json::member(out, "ephemeral");
        object(out, std::iter::once(("label", label)));
    }
    if let Some(aggregates) = event.aggregates {
        json::member(out, "agfilter");
        out.push('{');
        for aggregate in aggregates {
            json::member(out, graph.type_name(aggregate.type_id));
            json::number(out, format_args!("\"used:{}, total:{}\"", aggregate.used, aggregate.total));
        }
        out.push('}');
    }
    out.push_str("}}");
}

/// Whether the name is what basename and number give, without putting it together.
fn is_default_name(name: &str, basename: &str, id: i64) -> bool {
    let Some(rest) = name.strip_prefix(basename) else { return false };
    rest.parse() == Ok(id) && (rest == "0" || !rest.trim_start_matches('-').starts_with(['0', '+']))
}

fn object<'a>(out: &mut String, members: impl Iterator<Item = (&'a str, &'a str)>) {
    out.push('{');
    for (name, value) in members {
        json::member(out, name);
        json::string(out, value);
    }
    out.push('}');
}
