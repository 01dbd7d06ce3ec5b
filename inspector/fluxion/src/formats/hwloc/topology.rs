//! Reads the XML of a topology, brings files of hwloc 1.x into the shape of 2.x (memory is a leaf
//! beside the cores it belongs to), and drops levels that add no structure.

use roxmltree::Node;

use crate::formats::error::ReadError;
use crate::formats::grug::parse_xml;

/// Nesting beyond this is no machine.
const MAX_DEPTH: usize = 128;

/// What an object is, as far as a resource graph can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Machine,
    Group,
    Numa,
    Package,
    Cache { level: u8, bytes: u64 },
    Core,
    Pu,
    OsDevice(OsKind),
    Other,
}

/// Kinds of devices that the operating system knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OsKind {
    Block,
    Gpu,
    Coprocessor,
    Other,
}

/// An object with its children, apart by kind: that is their order, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) shape: Shape,
    pub(super) name: String,
    cpus: String,
    infos: Vec<(String, String)>,
    normal: Vec<Object>,
    memory: Vec<Object>,
    io: Vec<Object>,
    misc: Vec<Object>,
}

impl Object {
    pub(super) fn all_children(&self) -> impl Iterator<Item = &Self> {
        self.normal.iter().chain(&self.memory).chain(&self.io).chain(&self.misc)
    }

    pub(super) fn info(&self, name: &str) -> Option<&str> {
        self.infos.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn of_shape(shape: Shape, cpus: String) -> Self {
        Self {
            shape,
            name: String::new(),
            cpus,
            infos: Vec::new(),
            normal: Vec::new(),
            memory: Vec::new(),
            io: Vec::new(),
            misc: Vec::new(),
        }
    }
}

/// The list an object belongs into, as a child.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Normal,
    Memory,
    Io,
    Misc,
}

pub(super) fn read(text: &[u8]) -> Result<Object, ReadError> {
    let document =
        parse_xml(text).map_err(|error| ReadError::Hwloc(format!("setting xmlbuffer ({error})")))?;
    let top = document.root_element();
    let failed = |what: &str| ReadError::Hwloc(format!("hwloc load: rank -1 ({what})"));
    if top.tag_name().name() != "topology" {
        return Err(failed("no topology"));
    }
    let first =
        top.children().find(|child| child.has_tag_name("object")).ok_or_else(|| failed("no object"))?;
    let (_, machine) = object(first, 0)?.ok_or_else(|| failed("an empty machine"))?;
    let mut machine = fold_memory(machine);
    drop_flat_levels(&mut machine);
    Ok(machine)
}

/// Reads an object and all below it; none for a kind that is left out, together with what is below.
fn object(element: Node<'_, '_>, depth: usize) -> Result<Option<(Family, Object)>, ReadError> {
    if depth > MAX_DEPTH {
        return Err(ReadError::Hwloc(format!(
            "hwloc load: rank -1 (objects nested deeper than {MAX_DEPTH})"
        )));
    }
    let attribute = |name: &str| element.attribute(name).unwrap_or_default();
    let (family, shape) = shape_of(element);
    let mut this = Object::of_shape(shape, attribute("cpuset").to_owned());
    attribute("name").clone_into(&mut this.name);
    for info in element.children().filter(|child| child.has_tag_name("info")) {
        if let (Some(name), Some(value)) = (info.attribute("name"), info.attribute("value")) {
            this.infos.push((name.to_owned(), value.to_owned()));
        }
    }
    for child in element.children().filter(|child| child.has_tag_name("object")) {
        if let Some((family, child)) = object(child, depth + 1)? {
            match family {
                Family::Normal => this.normal.push(child),
                Family::Memory => this.memory.push(child),
                Family::Io => this.io.push(child),
                Family::Misc => this.misc.push(child),
            }
        }
    }
    let direct_memory_access = attribute("type") == "OSDev" && attribute("osdev_type") == "4";
    Ok((!direct_memory_access).then_some((family, this)))
}

fn shape_of(element: Node<'_, '_>) -> (Family, Shape) {
    let attribute = |name: &str| element.attribute(name).unwrap_or_default();
    let kind = attribute("type");
    match kind {
        "Machine" | "System" => (Family::Normal, Shape::Machine),
        "Group" => (Family::Normal, Shape::Group),
        // A memory node of hwloc 1.x has children: it is folded later.
        "NUMANode" if element.children().any(|child| child.has_tag_name("object")) => {
            (Family::Normal, Shape::Numa)
        }
        "NUMANode" => (Family::Memory, Shape::Numa),
        "MemCache" => (Family::Memory, Shape::Other),
        "Package" | "Socket" => (Family::Normal, Shape::Package),
        "Core" => (Family::Normal, Shape::Core),
        "PU" => (Family::Normal, Shape::Pu),
        "Bridge" | "PCIDev" => (Family::Io, Shape::Other),
        "Misc" => (Family::Misc, Shape::Other),
        "OSDev" => {
            let kind = match attribute("osdev_type") {
                "0" => OsKind::Block,
                "1" => OsKind::Gpu,
                "5" => OsKind::Coprocessor,
                _ => OsKind::Other,
            };
            (Family::Io, Shape::OsDevice(kind))
        }
        _ if kind == "Cache" || kind.ends_with("Cache") => {
            let level = attribute("depth").parse().unwrap_or(0);
            let instructions = attribute("cache_type") == "2";
            let bytes = attribute("cache_size").parse().unwrap_or(0);
            let known = !instructions && (1..=3).contains(&level);
            (Family::Normal, if known { Shape::Cache { level, bytes } } else { Shape::Other })
        }
        _ => (Family::Normal, Shape::Other),
    }
}

/// Turns memory nodes that contain cores into leaves beside them.
fn fold_memory(mut object: Object) -> Object {
    let mut normal = Vec::new();
    for child in std::mem::take(&mut object.normal) {
        let mut child = fold_memory(child);
        if child.shape != Shape::Numa {
            normal.push(child);
            continue;
        }
        let mut inside = std::mem::take(&mut child.normal);
        let mut beside = std::mem::take(&mut child.io);
        let mut misc = std::mem::take(&mut child.misc);
        let only_holder = match inside.as_mut_slice() {
            [only] if only.cpus == child.cpus && matches!(only.shape, Shape::Package | Shape::Group) => {
                Some(only)
            }
            _ => None,
        };
        if let Some(holder) = only_holder {
            holder.memory.push(child);
            holder.io.append(&mut beside);
            holder.misc.append(&mut misc);
            normal.append(&mut inside);
        } else if inside.is_empty() || object.cpus == child.cpus {
            object.memory.push(child);
            object.io.append(&mut beside);
            object.misc.append(&mut misc);
            normal.append(&mut inside);
        } else {
            let mut group = Object::of_shape(Shape::Group, child.cpus.clone());
            group.normal = inside;
            group.memory.push(child);
            group.io = beside;
            group.misc = misc;
            normal.push(group);
        }
    }
    object.normal = normal;
    object
}

/// A level that is kept only where it adds structure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Group,
    Cache(u8),
}

impl Level {
    fn has(self, object: &Object) -> bool {
        match (self, object.shape) {
            (Self::Group, Shape::Group) => true,
            (Self::Cache(wanted), Shape::Cache { level, .. }) => wanted == level,
            _ => false,
        }
    }
}

/// Makes each level of groups or caches transparent that is one-to-one with the level above or below.
fn drop_flat_levels(machine: &mut Object) {
    for level in [Level::Cache(1), Level::Cache(2), Level::Cache(3), Level::Group] {
        drop_if_flat(machine, level);
    }
}

fn drop_if_flat(machine: &mut Object, level: Level) {
    let (mut single_child, mut only_child) = (true, true);
    examine(machine, level, &mut single_child, &mut only_child);
    if single_child || only_child {
        unwrap_level(machine, level);
    }
}

fn examine(object: &Object, level: Level, single_child: &mut bool, only_child: &mut bool) {
    for child in &object.normal {
        if level.has(child) {
            *single_child &= visible_children(child) == 1;
            *only_child &= visible_children(object) == 1;
        }
        examine(child, level, single_child, only_child);
    }
}

/// Children, with those of transparent ones in their place.
fn visible_children(object: &Object) -> usize {
    object
        .normal
        .iter()
        .map(|child| if child.shape == Shape::Other { visible_children(child) } else { 1 })
        .sum()
}

fn unwrap_level(object: &mut Object, level: Level) {
    for child in &mut object.normal {
        if level.has(child) {
            child.shape = Shape::Other;
        }
        unwrap_level(child, level);
    }
}
