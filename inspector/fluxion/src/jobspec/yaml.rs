//! YAML as a tree that preserves which scalars were quoted. Aliases are shared, and their expanded size is
//! limited, so that a small document can't expand to a large tree.

mod plain;
mod value;

use std::collections::BTreeMap;

use granit_parser::{Event, Parser, ScalarStyle};

pub use value::{Pair, Value, ValueKind, YamlError};

/// A collection that is being read.
struct Open<'t> {
    anchor: usize,
    mapping: bool,
    items: Vec<Value<'t>>,
}

/// Parses the first document of a text; an empty text is null.
pub fn parse(text: &str) -> Result<Value<'_>, YamlError> {
    plain::parse(text).map_or_else(|| parse_fully(text), Ok)
}

/// The same, by the parser of all YAML alone: the oracle for what reads plain documents without it.
pub fn parse_fully(text: &str) -> Result<Value<'_>, YamlError> {
    let mut anchors: BTreeMap<usize, Value<'_>> = BTreeMap::new();
    let mut open: Vec<Open<'_>> = Vec::new();
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
            Event::Scalar(text, style, anchor, _) => {
                (Value::of_text(text, style != ScalarStyle::Plain), anchor)
            }
            Event::Alias(anchor) => {
                let known = anchors.get(&anchor).cloned();
                (known.ok_or_else(|| YamlError::Syntax("an alias refers to itself".to_owned()))?, 0)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(done) = open.pop() else { continue };
                (
                    if done.mapping {
                        Value::of_pairs(pairs(done.items))
                    } else {
                        Value::of_items(done.items)
                    }?,
                    done.anchor,
                )
            }
            _ => continue,
        };
        if anchor > 0 {
            anchors.insert(anchor, value.clone());
        }
        match open.last_mut() {
            Some(parent) => parent.items.push(value),
            None => return Ok(value),
        }
    }
    Ok(Value::null())
}

fn pairs(items: Vec<Value<'_>>) -> Vec<Pair<'_>> {
    let mut pairs = Vec::with_capacity(items.len() / 2);
    let mut items = items.into_iter();
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        pairs.push((key, value));
    }
    pairs
}
