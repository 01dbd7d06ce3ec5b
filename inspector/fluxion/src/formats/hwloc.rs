//! hwloc: the topology of one machine as XML, from hwloc 1.x or later.
//!
//! `topology` converts a file to the in-memory structure of hwloc 2; this module creates the vertices of the
//! resource graph from its objects.

mod topology;

use self::topology::{Object, OsKind, Shape};
use super::error::ReadError;
use super::rv1::{add_cluster, host_basename, host_number};
use crate::graph::{Graph, PathId, Subsystem, VertexId, VertexSpec};

/// Kinds of objects that become vertices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowlist(Option<Vec<String>>);

impl Allowlist {
    /// All kinds.
    pub fn all() -> Self {
        Self(None)
    }

    /// The given kinds, such as `node,socket,core`.
    pub fn parse(list: &str) -> Self {
        Self(Some(list.split(',').map(|word| word.trim().to_owned()).collect()))
    }

    fn allows(&self, word: &str) -> bool {
        self.0.as_ref().is_none_or(|words| words.iter().any(|known| known == word))
    }
}

/// Reads a topology and adds its vertices below a cluster. Empty input adds only the cluster.
pub fn load(graph: &mut Graph, text: &[u8], allowed: &Allowlist) -> Result<(), ReadError> {
    let (cluster, path) = add_cluster(graph)?;
    if text.iter().all(u8::is_ascii_whitespace) {
        return Ok(());
    }
    let machine = topology::read(text)?;
    let mut walk = Walk { graph, allowed, counts: Counts::default() };
    walk.visit(&machine, Place { vertex: cluster, path })
}

/// Objects seen so far, for logical indices.
#[derive(Default)]
struct Counts {
    group: i64,
    numa: i64,
    package: i64,
    caches: [i64; 3],
    core: i64,
    pu: i64,
    os_device: i64,
}

/// The vertex that the next ones hang below.
#[derive(Clone, Copy)]
struct Place {
    vertex: VertexId,
    path: PathId,
}

struct Walk<'a> {
    graph: &'a mut Graph,
    allowed: &'a Allowlist,
    counts: Counts,
}

/// What an object becomes.
struct Mapped {
    word: String,
    type_name: &'static str,
    basename: String,
    name: Option<String>,
    id: i64,
    rank: i32,
    size: u64,
    device: Option<String>,
}

impl Mapped {
    fn plain(type_name: &'static str, id: i64) -> Self {
        Self {
            word: type_name.to_owned(),
            type_name,
            basename: type_name.to_owned(),
            name: None,
            id,
            rank: -1,
            size: 1,
            device: None,
        }
    }
}

fn next(count: &mut i64) -> i64 {
    *count += 1;
    *count - 1
}

impl Walk<'_> {
    /// The depth of a topology is bounded when it is read.
    fn visit(&mut self, object: &Object, above: Place) -> Result<(), ReadError> {
        let place = match self.map(object)? {
            Some(mapped) => self.add(&mapped, above)?,
            None => above,
        };
        for child in object.all_children() {
            self.visit(child, place)?;
        }
        Ok(())
    }

    /// Counts an object and says what it becomes; none for one that is transparent.
    fn map(&mut self, object: &Object) -> Result<Option<Mapped>, ReadError> {
        let counts = &mut self.counts;
        let mapped = match &object.shape {
            Shape::Machine => match object.info("HostName") {
                Some(host) => Mapped {
                    basename: host_basename(host).to_owned(),
                    name: Some(host.to_owned()),
                    rank: 0,
                    ..Mapped::plain("node", host_number(host)?)
                },
                None => return Ok(None),
            },
            Shape::Group => Mapped::plain("group", next(&mut counts.group)),
            Shape::Numa => Mapped::plain("numanode", next(&mut counts.numa)),
            Shape::Package => Mapped::plain("socket", next(&mut counts.package)),
            Shape::Core => Mapped::plain("core", next(&mut counts.core)),
            Shape::Pu => Mapped::plain("pu", next(&mut counts.pu)),
            Shape::Cache { level, bytes } => {
                let Some(count) = counts.caches.get_mut(usize::from(*level).wrapping_sub(1)) else {
                    return Ok(None);
                };
                let basename = format!("L{level}cache");
                Mapped {
                    word: basename.clone(),
                    basename,
                    size: bytes / 1024,
                    ..Mapped::plain("cache", next(count))
                }
            }
            Shape::OsDevice(kind) => {
                let index = next(&mut counts.os_device);
                return self.os_device(object, *kind, index);
            }
            Shape::Other => return Ok(None),
        };
        Ok(self.allowed.allows(&mapped.word).then_some(mapped))
    }

    fn os_device(&self, object: &Object, kind: OsKind, index: i64) -> Result<Option<Mapped>, ReadError> {
        match kind {
            OsKind::Coprocessor if self.allowed.allows("gpu") => {
                Ok(Some(Mapped::plain("gpu", device_number(&object.name).unwrap_or(index))))
            }
            OsKind::Gpu if object.name.starts_with("rsmi") && self.allowed.allows("gpu") => {
                Ok(Some(Mapped::plain("gpu", device_number(&object.name).unwrap_or(index))))
            }
            OsKind::Block if self.allowed.allows("storage") => {
                let text = object
                    .info("Size")
                    .ok_or_else(|| ReadError::Hwloc("getting the size of block storage device".to_owned()))?;
                let kilobytes: u64 = text.trim().parse().unwrap_or(0);
                if kilobytes == 0 {
                    return Err(ReadError::Hwloc("parsing the size of block storage device".to_owned()));
                }
                Ok(Some(Mapped {
                    size: kilobytes / 1_000_000,
                    device: Some(object.info("LinuxDeviceID").unwrap_or("-1").to_owned()),
                    ..Mapped::plain("storage", index)
                }))
            }
            _ => Ok(None),
        }
    }

    fn add(&mut self, mapped: &Mapped, above: Place) -> Result<Place, ReadError> {
        let name = mapped.name.clone().unwrap_or_else(|| format!("{}{}", mapped.basename, mapped.id));
        let properties: Vec<(&str, &str)> =
            mapped.device.iter().map(|device| ("LinuxDeviceID", device.as_str())).collect();
        let path = self.graph.join_path(above.path, &name);
        let vertex = self.graph.add_vertex(&VertexSpec {
            type_name: mapped.type_name,
            basename: &mapped.basename,
            name: &name,
            id: mapped.id,
            rank: mapped.rank,
            size: mapped.size,
            properties: &properties,
            ..VertexSpec::default()
        })?;
        self.graph.set_path(vertex, Subsystem::CONTAINMENT, path);
        self.graph.add_edge(above.vertex, vertex, Subsystem::CONTAINMENT)?;
        Ok(Place { vertex, path })
    }
}

/// The number in the name of a device such as `cuda1` or `opencl0d1` (the last one).
fn device_number(name: &str) -> Option<i64> {
    if let Some(rest) = name.strip_prefix("cuda").or_else(|| name.strip_prefix("rsmi")) {
        return rest.parse().ok();
    }
    let (_, device) = name.strip_prefix("opencl")?.split_once('d')?;
    device.parse().ok()
}

#[cfg(test)]
mod tests;
