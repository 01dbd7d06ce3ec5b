//! GRUG: a recipe for a resource graph, written as a graph in XML (`GraphML`).
//!
//! The nodes of the recipe generate vertices, and its edges specify how many of them are below each
//! parent. This module reads the recipe; `expand` creates the graph.

mod expand;
mod recipe;

use std::collections::BTreeMap;
use std::str::FromStr;

use roxmltree::{Document, Node, ParsingOptions};

use self::recipe::{Generator, Method, Recipe, Rule, bad};
use super::error::ReadError;
use super::idset::shorten;
use crate::graph::Graph;

/// Reads a recipe and adds the graph that it describes, up to the size limit of the graph.
pub fn load(graph: &mut Graph, text: &[u8]) -> Result<(), ReadError> {
    let recipe = Recipe::parse(text)?;
    expand::expand(graph, &recipe)
}

/// Reads XML that may carry a document type. Entities of its own are refused: each use of one is as long as
/// its text, so that a short document may be huge.
pub(super) fn parse_xml(text: &[u8]) -> Result<Document<'_>, String> {
    let text = std::str::from_utf8(text).map_err(|error| format!("invalid UTF-8: {error}"))?;
    if text.contains("<!ENTITY") {
        return Err("entity declarations are not supported: expand the entities".to_owned());
    }
    if text.matches("xmlns:").nth(MAX_PREFIXES).is_some() {
        return Err(format!("more than {MAX_PREFIXES} namespace prefixes"));
    }
    if crowded(text) {
        return Err(format!("more than {MAX_ATTRIBUTES} attributes on one element"));
    }
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).map_err(|error| format!("invalid XML: {error}"))
}

/// More attributes than any element has. The parser compares all of an element with each other.
const MAX_ATTRIBUTES: usize = 1_000;

/// More prefixes than any document has. The parser hands all of them down to every element.
const MAX_PREFIXES: usize = 100;

/// Whether something between angle brackets has very many equals signs, as many as attributes would have.
fn crowded(text: &str) -> bool {
    let mut signs = 0;
    let mut quote = None;
    let mut inside = false;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte == b'=' && inside && quote.is_none() {
            signs += 1;
            if signs > MAX_ATTRIBUTES {
                return true;
            }
        }
        match (byte, quote) {
            (_, Some(open)) if byte == open => quote = None,
            (b'<', None) => {
                signs = 0;
                let verbatim = [("!--", "-->"), ("![CDATA[", "]]>")];
                let verbatim = verbatim.iter().find(|(begin, _)| text[at..].starts_with(begin));
                inside = verbatim.is_none();
                if let Some((_, end)) = verbatim {
                    at += text[at..].find(end).unwrap_or(text.len() - at);
                }
            }
            (b'>', None) => inside = false,
            (b'"' | b'\'', None) if inside => quote = Some(byte),
            _ => {}
        }
    }
    false
}

/// The `<key>` declarations for one kind of element.
#[derive(Default)]
struct Keys<'a> {
    /// What an attribute is called and what it is where there is none, by the id of its key.
    by_id: BTreeMap<&'a str, (String, Option<String>)>,
    /// The values of attributes that an element does not name.
    defaults: Attributes,
}

/// The attributes of one element by their names.
type Attributes = BTreeMap<String, String>;

const NODE_ATTRIBUTES: [&str; 6] = ["root", "type", "basename", "unit", "size", "subsystem"];
const EDGE_ATTRIBUTES: [&str; 11] = [
    "e_subsystem",
    "relation",
    "rrelation",
    "gen_method",
    "id_scope",
    "id_start",
    "id_stride",
    "multi_scale",
    "as_tgt_subsystem",
    "as_tgt_uplvl",
    "as_src_uplvl",
];

impl Recipe {
    fn parse(text: &[u8]) -> Result<Self, ReadError> {
        let document = parse_xml(text).map_err(bad)?;
        let top = document.root_element();
        if top.tag_name().name() != "graphml" {
            return Err(bad(format!("expected <graphml>, found <{}>", shorten(top.tag_name().name()))));
        }
        let mut keys: [Keys<'_>; 2] = [Keys::default(), Keys::default()];
        for element in elements(top, "key") {
            let name = element.attribute("attr.name").or_else(|| element.attribute("id")).unwrap_or_default();
            let default = elements(element, "default").next().map(text_of);
            let id = element.attribute("id").ok_or_else(|| bad("<key> has no id"))?;
            let kinds: &[usize] = match element.attribute("for") {
                Some("node") => &[0],
                Some("edge") => &[1],
                Some("all") | None => &[0, 1],
                Some(_) => &[],
            };
            for &kind in kinds {
                keys[kind].by_id.insert(id, (name.to_owned(), default.clone()));
            }
        }
        for Keys { by_id, defaults } in &mut keys {
            let known = by_id.values().filter_map(|(name, default)| Some((name.clone(), default.clone()?)));
            defaults.extend(known);
        }
        let mut recipe = Self::default();
        let mut index: BTreeMap<&str, usize> = BTreeMap::new();
        let body = elements(top, "graph").next().ok_or_else(|| bad("missing <graph>"))?;
        for element in elements(body, "node") {
            let id = element.attribute("id").ok_or_else(|| bad("<node> has no id"))?;
            let attributes = read_attributes(element, &keys[0], &NODE_ATTRIBUTES)?;
            if index.insert(id, recipe.generators.len()).is_some() {
                return Err(bad(format!("duplicate node id {}", shorten(id))));
            }
            recipe.generators.push(generator(&attributes)?);
        }
        for element in elements(body, "edge") {
            let end = |name: &str| {
                let id = element.attribute(name).unwrap_or_default();
                index.get(id).copied().ok_or_else(|| {
                    bad(format!("unknown node {} in attribute {name} of an edge", shorten(id)))
                })
            };
            let (source, target) = (end("source")?, end("target")?);
            let attributes = read_attributes(element, &keys[1], &EDGE_ATTRIBUTES)?;
            recipe.rules.push(rule(source, target, &attributes)?);
        }
        Ok(recipe)
    }
}

fn elements<'a, 'input>(of: Node<'a, 'input>, name: &'static str) -> impl Iterator<Item = Node<'a, 'input>> {
    of.children().filter(move |child| child.is_element() && child.tag_name().name() == name)
}

fn text_of(element: Node<'_, '_>) -> String {
    element.children().filter_map(|child| child.text()).collect()
}

fn read_attributes(element: Node<'_, '_>, keys: &Keys<'_>, known: &[&str]) -> Result<Attributes, ReadError> {
    let mut attributes = keys.defaults.clone();
    for data in elements(element, "data") {
        let id = data.attribute("key").unwrap_or_default();
        let key =
            keys.by_id.get(id).ok_or_else(|| bad(format!("unknown <key> {} in <data>", shorten(id))))?;
        attributes.insert(key.0.clone(), text_of(data));
    }
    match attributes.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(bad(format!("unknown attribute {}", shorten(name)))),
        None => Ok(attributes),
    }
}

fn text(attributes: &Attributes, name: &str) -> String {
    attributes.get(name).cloned().unwrap_or_default()
}

fn number<T: FromStr + Default>(attributes: &Attributes, name: &str) -> Result<T, ReadError> {
    let Some(value) = attributes.get(name) else { return Ok(T::default()) };
    value
        .trim()
        .parse()
        .map_err(|_| bad(format!("{name} is not a number or is out of range: {}", shorten(value))))
}

fn generator(attributes: &Attributes) -> Result<Generator, ReadError> {
    let size: i64 = number(attributes, "size")?;
    Ok(Generator {
        root: number::<i32>(attributes, "root")? == 1,
        type_name: text(attributes, "type"),
        basename: text(attributes, "basename"),
        unit: text(attributes, "unit"),
        size: u64::from(
            u32::try_from(size)
                .map_err(|_| bad(format!("size {size} is out of range: must be 0 to 2^32-1")))?,
        ),
        subsystem: text(attributes, "subsystem"),
    })
}

fn rule(source: usize, target: usize, attributes: &Attributes) -> Result<Rule, ReadError> {
    let int = |name| number::<i32>(attributes, name).map(i64::from);
    Ok(Rule {
        source,
        target,
        subsystem: text(attributes, "e_subsystem"),
        method: match attributes.get("gen_method").map(String::as_str) {
            Some("MULTIPLY") => Method::Multiply,
            Some("ASSOCIATE_IN") => Method::AssociateIn,
            Some("ASSOCIATE_BY_PATH_IN") => Method::AssociateByPathIn,
            _ => Method::Nothing,
        },
        id_scope: int("id_scope")?,
        id_start: int("id_start")?,
        id_stride: int("id_stride")?,
        multi_scale: int("multi_scale")?,
        target_subsystem: text(attributes, "as_tgt_subsystem"),
        target_up: int("as_tgt_uplvl")?,
        source_up: int("as_src_uplvl")?,
    })
}

#[cfg(test)]
mod tests;
