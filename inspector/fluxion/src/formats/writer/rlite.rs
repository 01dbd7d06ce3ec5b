//! Format rlite: which cores and gpus of which ranks.

use std::collections::BTreeMap;

use super::json;
use crate::errno::Errno;
use crate::formats::hostlist;
use crate::formats::idset::Idset;
use crate::graph::Graph;
use crate::matcher::sink::VertexEvent;
use crate::quirks::Quirks;

/// A node that was filed under what is used of it.
#[derive(Debug, Clone)]
struct Filed {
    rank: i32,
    name: String,
}

/// The nodes of an answer by what is used of them.
#[derive(Debug, Clone)]
pub(super) struct RliteParts {
    quirks: Quirks,
    cores: Vec<i64>,
    gpus: Vec<i64>,
    /// Nodes by the text of their children, whose byte order is that of the array.
    filed: BTreeMap<String, Vec<Filed>>,
    /// Ranks by property.
    properties: BTreeMap<String, Vec<i32>>,
    /// A negative number was met, which has no place in a set of ids.
    invalid: bool,
}

impl RliteParts {
    pub(super) fn new(quirks: Quirks) -> Self {
        Self {
            quirks,
            cores: Vec::new(),
            gpus: Vec::new(),
            filed: BTreeMap::new(),
            properties: BTreeMap::new(),
            invalid: false,
        }
    }

    pub(super) fn vertex(&mut self, graph: &Graph, event: &VertexEvent<'_>) {
        let vertex = graph.vertex(event.vertex);
        match graph.type_name(vertex.type_id) {
            "core" => self.cores.push(vertex.id),
            "gpu" => self.gpus.push(vertex.id),
            "node" | "storage_node" => {
                let nothing = self.cores.is_empty() && self.gpus.is_empty();
                if nothing && self.quirks.writer_keeps_leftovers {
                    return;
                }
                self.invalid |= vertex.rank < 0;
                let signature = self.take_signature();
                let name = graph.text(vertex.name).to_owned();
                self.filed.entry(signature).or_default().push(Filed { rank: vertex.rank, name });
                for (key, value) in graph.properties(event.vertex) {
                    let property = if value.is_empty() { key.to_owned() } else { format!("{key}={value}") };
                    self.properties.entry(property).or_default().push(vertex.rank);
                }
            }
            _ => {}
        }
    }

    fn take_signature(&mut self) -> String {
        let mut text = String::from("{");
        for (name, ids) in [("core", &mut self.cores), ("gpu", &mut self.gpus)] {
            if ids.is_empty() {
                continue;
            }
            self.invalid |= ids.iter().any(|id| *id < 0);
            let set = Idset::from_ids(ids.drain(..).filter_map(|id| u64::try_from(id).ok()));
            json::member(&mut text, name);
            json::string(&mut text, &set.to_string());
        }
        text.push('}');
        text
    }

    pub(super) fn is_empty(&self) -> bool {
        self.filed.is_empty()
    }

    /// Whether the content has a text.
    pub(super) fn check(&mut self) -> Result<(), Errno> {
        if self.invalid { Err(Errno::Einval) } else { Ok(()) }
    }

    /// Appends the array.
    pub(super) fn write(&self, out: &mut String) {
        out.push('[');
        for (children, nodes) in &self.filed {
            json::separate(out);
            out.push_str("{\"rank\": ");
            json::string(out, &rank_set(nodes.iter().map(|node| node.rank)));
            out.push_str(", \"children\": ");
            out.push_str(children);
            out.push('}');
        }
        out.push(']');
    }

    /// The hosts in order of their ranks.
    pub(super) fn nodelist(&self) -> String {
        let mut nodes: Vec<&Filed> = self.filed.values().flatten().collect();
        nodes.sort_by_key(|node| node.rank);
        hostlist::encode(nodes.iter().map(|node| node.name.as_str()))
    }

    /// Properties with the ranks that have them.
    pub(super) fn properties(&self) -> impl Iterator<Item = (&str, String)> {
        self.properties.iter().map(|(name, ranks)| (name.as_str(), rank_set(ranks.iter().copied())))
    }

    /// Forgets the nodes. Cores met outside any node stay for the next one where accidents are repeated.
    pub(super) fn clear(&mut self) {
        self.filed.clear();
        self.properties.clear();
        self.invalid = false;
        if !self.quirks.writer_keeps_leftovers {
            self.cores.clear();
            self.gpus.clear();
        }
    }

    pub(super) fn emit_line(&mut self, out: &mut String) -> Result<(), Errno> {
        let result = if self.is_empty() {
            if self.quirks.rlite_refuses_nothing {
                return Err(Errno::Einval);
            }
            Ok(())
        } else {
            self.check().map(|()| {
                self.write(out);
                out.push('\n');
            })
        };
        if result.is_ok() || !self.quirks.writer_keeps_leftovers {
            self.clear();
        }
        result
    }
}

fn rank_set(ranks: impl Iterator<Item = i32>) -> String {
    Idset::from_ids(ranks.filter_map(|rank| u64::try_from(rank).ok())).to_string()
}
