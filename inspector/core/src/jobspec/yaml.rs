//! YAML as a tree that still knows what was quoted. Aliases are shared, and what they would expand to
//! is bounded, so that a small document can't ask for a large tree.

mod plain;

use std::collections::BTreeMap;
use std::sync::Arc;

use granit_parser::{Event, Parser, ScalarStyle};
use thiserror::Error;

/// How many values a document may have once its aliases are written out.
const MAX_VALUES: u64 = 200_000;
/// How deep values may be nested.
const MAX_DEPTH: u32 = 300;

/// A text is not YAML, or not a document that is reasonable to read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum YamlError {
    /// Not YAML.
    #[error("yaml: {0}")]
    Syntax(String),
    /// More values than anybody needs, usually by aliases of aliases.
    #[error("yaml: more than {MAX_VALUES} values once aliases are written out: shorten the document")]
    TooLarge,
    /// Nested too deep.
    #[error("yaml: values nested more than {MAX_DEPTH} deep: flatten the document")]
    TooDeep,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Nothing, `null` or `~`.
    Null,
    /// Text; `quoted` when it was written with quotes or as a block.
    Scalar {
        /// The text.
        text: String,
        /// Whether it was quoted.
        quoted: bool,
    },
    /// A sequence.
    Sequence(Vec<Arc<Value>>),
    /// A mapping, in order, with repeated keys kept.
    Mapping(Vec<(Arc<Value>, Arc<Value>)>),
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// What it is.
    pub kind: Kind,
    weight: u64,
    depth: u32,
}

impl Value {
    fn new(kind: Kind) -> Result<Arc<Self>, YamlError> {
        let (weight, depth) = match &kind {
            Kind::Null | Kind::Scalar { .. } => (0, 0),
            Kind::Sequence(items) => measure(items.iter()),
            Kind::Mapping(pairs) => measure(pairs.iter().flat_map(|(key, value)| [key, value])),
        };
        let (weight, depth) = (weight.saturating_add(1), depth + 1);
        if weight > MAX_VALUES {
            return Err(YamlError::TooLarge);
        }
        if depth > MAX_DEPTH {
            return Err(YamlError::TooDeep);
        }
        Ok(Arc::new(Self { kind, weight, depth }))
    }

    /// The text of a scalar.
    pub fn scalar(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether it is a scalar that was quoted.
    pub fn is_quoted(&self) -> bool {
        matches!(self.kind, Kind::Scalar { quoted: true, .. })
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        self.kind == Kind::Null
    }

    /// The items of a sequence.
    pub fn sequence(&self) -> Option<&[Arc<Value>]> {
        match &self.kind {
            Kind::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The pairs of a mapping.
    pub fn mapping(&self) -> Option<&[(Arc<Value>, Arc<Value>)]> {
        match &self.kind {
            Kind::Mapping(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// The first value of a key of a mapping.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let pairs = self.mapping()?;
        pairs.iter().find(|(known, _)| known.scalar() == Some(key)).map(|(_, value)| value.as_ref())
    }
}

fn measure<'a>(parts: impl Iterator<Item = &'a Arc<Value>>) -> (u64, u32) {
    parts
        .fold((0_u64, 0), |(weight, depth), part| (weight.saturating_add(part.weight), depth.max(part.depth)))
}

/// A collection that is being read.
struct Open {
    anchor: usize,
    mapping: bool,
    items: Vec<Arc<Value>>,
}

/// Reads the first document of a text; an empty text is null.
pub fn parse(text: &str) -> Result<Arc<Value>, YamlError> {
    plain::parse(text).map_or_else(|| parse_all(text), Ok)
}

/// The same, by the parser of all YAML.
fn parse_all(text: &str) -> Result<Arc<Value>, YamlError> {
    let mut anchors: BTreeMap<usize, Arc<Value>> = BTreeMap::new();
    let mut open: Vec<Open> = Vec::new();
    for next in Parser::new_from_str(text) {
        let (event, _) = next.map_err(|error| YamlError::Syntax(error.to_string()))?;
        let (value, anchor) = match event {
            Event::SequenceStart(_, anchor, ..) => {
                open.push(Open { anchor, mapping: false, items: Vec::new() });
                continue;
            }
            Event::MappingStart(_, anchor, ..) => {
                open.push(Open { anchor, mapping: true, items: Vec::new() });
                continue;
            }
            Event::Scalar(text, style, anchor, _) => (scalar(text.into_owned(), style)?, anchor),
            Event::Alias(anchor) => {
                let known = anchors.get(&anchor).cloned();
                (known.ok_or_else(|| YamlError::Syntax("an alias refers to itself".to_owned()))?, 0)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(done) = open.pop() else { continue };
                (collection(done.items, done.mapping)?, done.anchor)
            }
            _ => continue,
        };
        if anchor > 0 {
            anchors.insert(anchor, Arc::clone(&value));
        }
        match open.last_mut() {
            Some(parent) => parent.items.push(value),
            None => return Ok(value),
        }
    }
    Value::new(Kind::Null)
}

fn scalar(text: String, style: ScalarStyle) -> Result<Arc<Value>, YamlError> {
    let quoted = style != ScalarStyle::Plain;
    let null = !quoted && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL");
    Value::new(if null { Kind::Null } else { Kind::Scalar { text, quoted } })
}

fn collection(items: Vec<Arc<Value>>, mapping: bool) -> Result<Arc<Value>, YamlError> {
    if !mapping {
        return Value::new(Kind::Sequence(items));
    }
    let mut pairs = Vec::with_capacity(items.len() / 2);
    let mut items = items.into_iter();
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        pairs.push((key, value));
    }
    Value::new(Kind::Mapping(pairs))
}
