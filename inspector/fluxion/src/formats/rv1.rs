//! RV1: the resources of execution ranks as JSON (Flux RFC 20), either an initial graph or the allocation of a
//! job.

use std::fmt;
use std::io::Read;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::error::ReadError;
use super::hostlist::{Hostlist, trailing_digits};
use super::idset::{Idset, shorten};
use crate::document::{RankDocument, RankRecord};
use crate::graph::{Graph, GraphError, PathId, Subsystem, VertexId, VertexSpec};

#[derive(Deserialize)]
struct RawR {
    version: i64,
    execution: RawExecution,
}

#[derive(Deserialize)]
struct RawExecution {
    #[serde(rename = "R_lite")]
    r_lite: Vec<RawElement>,
    nodelist: Vec<String>,
    properties: Option<Pairs>,
}

#[derive(Deserialize)]
struct RawElement {
    rank: String,
    children: Pairs,
}

/// An object of strings in its own order; a repeated key keeps its place and takes the last value.
#[derive(Default)]
struct Pairs(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Pairs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = std::collections::BTreeMap::new();
                let mut next = 0_usize;
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    pairs.entry(key).or_insert((next, String::new())).1 = value;
                    next += 1;
                }
                let mut ordered: Vec<_> = pairs.into_iter().collect();
                ordered.sort_by_key(|(_, (place, _))| *place);
                Ok(Pairs(ordered.into_iter().map(|(key, (_, value))| (key, value)).collect()))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// Reads a document. `limit` is the maximum total number of nodes, children and node properties.
pub fn parse(source: impl Read, limit: usize) -> Result<RankDocument, ReadError> {
    let raw: RawR = serde_json::from_reader(source)
        .map_err(|error| ReadError::rv1("unpack", format!("invalid R document: {error}")))?;
    if raw.version != 1 {
        return Err(ReadError::rv1("unpack", format!("unsupported version {}: must be 1", raw.version)));
    }
    let mut hosts = Hostlist::default();
    for text in &raw.execution.nodelist {
        let list =
            Hostlist::parse(text).map_err(|error| ReadError::rv1("unpack_nodelist", error.to_string()))?;
        hosts.append(list);
    }
    let mut elements = Vec::with_capacity(raw.execution.r_lite.len());
    let mut total = 0_u64;
    let mut all_ranks = Vec::new();
    for element in &raw.execution.r_lite {
        let ranks = idset(&element.rank)?;
        let mut children = Vec::with_capacity(element.children.0.len());
        let mut each = 1_u64;
        for (type_name, ids) in &element.children.0 {
            let ids = idset(ids)?;
            each = each.saturating_add(ids.len());
            children.push((type_name, ids));
        }
        total = total.saturating_add(ranks.len().saturating_mul(each));
        if total > limit as u64 {
            return Err(GraphError::TooLarge(limit).into());
        }
        all_ranks.extend(ranks.iter());
        elements.push((ranks, children));
    }
    all_ranks.sort_unstable();
    all_ranks.dedup();
    if hosts.len() < all_ranks.len() as u64 {
        let what = format!("{} hosts in nodelist for {} ranks", hosts.len(), all_ranks.len());
        return Err(ReadError::rv1("unpack_rlite", what));
    }
    let hosts: Vec<String> = hosts.iter().take(all_ranks.len()).collect();
    let mut document = RankDocument::default();
    for (ranks, children) in elements {
        let children: Vec<(String, Vec<i64>)> = children
            .into_iter()
            .map(|(type_name, ids)| {
                (type_name.clone(), ids.iter().filter_map(|id| id.try_into().ok()).collect())
            })
            .collect();
        for rank in ranks.iter() {
            let position = all_ranks.partition_point(|known| *known < rank);
            document.ranks.push(RankRecord {
                rank: narrow(rank)?,
                host: hosts[position].clone(),
                children: children.clone(),
            });
        }
    }
    for (name, ranks) in raw.execution.properties.unwrap_or_default().0 {
        let ranks = idset(&ranks)?;
        total = total.saturating_add(ranks.len());
        if total > limit as u64 {
            return Err(ReadError::rv1("unpack_properties", format!("more than {limit} rank properties")));
        }
        if ranks.len() > all_ranks.len() as u64
            || ranks.iter().any(|rank| all_ranks.binary_search(&rank).is_err())
        {
            let what = format!("property {} refers to ranks that are not in R_lite", shorten(&name));
            return Err(ReadError::rv1("unpack_properties", what));
        }
        let known = ranks.iter().map(narrow).collect::<Result<Vec<_>, _>>()?;
        document.properties.push((name, known));
    }
    Ok(document)
}

fn idset(text: &str) -> Result<Idset, ReadError> {
    Idset::parse(text).map_err(|error| ReadError::rv1("unpack_rlite", error.to_string()))
}

fn narrow(rank: u64) -> Result<i32, ReadError> {
    i32::try_from(rank).map_err(|_| ReadError::rv1("unpack_rlite", format!("rank {rank} is too large")))
}

/// The number of a host: the value of its trailing digits, -1 without any.
pub fn host_number(host: &str) -> Result<i64, ReadError> {
    match trailing_digits(host) {
        "" => Ok(-1),
        digits => digits.parse().map_err(|_| {
            ReadError::rv1("unpack_rank", format!("error splitting hostname={}; ", shorten(host)))
        }),
    }
}

/// The name of a host without its trailing digits; all of it when there is nothing else.
pub fn host_basename(host: &str) -> &str {
    let basename = host.trim_end_matches(|c: char| c.is_ascii_digit());
    if basename.is_empty() { host } else { basename }
}

/// Adds the root vertex for documents that do not have one.
pub(super) fn add_cluster(graph: &mut Graph) -> Result<(VertexId, PathId), ReadError> {
    let containment = Subsystem::CONTAINMENT;
    let cluster = graph.add_vertex(&VertexSpec {
        type_name: "cluster",
        basename: "cluster",
        name: "cluster0",
        id: 0,
        paths: &[(containment, "/cluster0")],
        ..VertexSpec::default()
    })?;
    graph.set_root(containment, cluster)?;
    Ok((cluster, graph.intern_path("/cluster0")))
}

/// Adds the graph of a document: a cluster, the nodes below it, and their children.
pub fn load(graph: &mut Graph, document: &RankDocument) -> Result<(), ReadError> {
    let containment = Subsystem::CONTAINMENT;
    let (cluster, top) = add_cluster(graph)?;
    for record in &document.ranks {
        let id = host_number(&record.host)?;
        let path = graph.join_path(top, &record.host);
        let spec = VertexSpec {
            type_name: "node",
            basename: host_basename(&record.host),
            name: &record.host,
            id,
            rank: record.rank,
            ..VertexSpec::default()
        };
        let node = add_once(graph, &spec, path)?;
        graph.add_edge(cluster, node, containment)?;
        for (type_name, ids) in &record.children {
            for &id in ids {
                let name = format!("{type_name}{id}");
                let below = graph.join_path(path, &name);
                let spec = VertexSpec {
                    type_name,
                    basename: type_name,
                    name: &name,
                    id,
                    rank: record.rank,
                    ..VertexSpec::default()
                };
                let child = add_once(graph, &spec, below)?;
                graph.add_edge(node, child, containment)?;
            }
        }
    }
    for (property, ranks) in &document.properties {
        for &rank in ranks {
            let of_rank: Vec<VertexId> = graph.of_rank(rank).to_vec();
            for vertex in of_rank {
                if graph.type_name(graph.vertex(vertex).type_id) == "node" {
                    graph.set_property(vertex, property, "");
                }
            }
        }
    }
    graph.shrink_to_fit();
    Ok(())
}

fn add_once(graph: &mut Graph, spec: &VertexSpec<'_>, path: PathId) -> Result<VertexId, ReadError> {
    let twice = graph.at_path_of_rank(path, spec.rank).iter().any(|&other| {
        let other = graph.vertex(other);
        other.id == spec.id && other.size == spec.size && graph.type_name(other.type_id) == spec.type_name
    });
    if twice {
        let what = format!("found duplicate vertex in graph for {}", shorten(spec.name));
        return Err(ReadError::rv1("add_or_update", what));
    }
    let vertex = graph.add_vertex(spec)?;
    graph.set_path(vertex, Subsystem::CONTAINMENT, path);
    Ok(vertex)
}

#[cfg(test)]
mod tests;
