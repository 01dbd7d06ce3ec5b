//! Values of a YAML document, and their size limits.

use std::borrow::Cow;
use std::sync::Arc;

use thiserror::Error;

/// How many values a document may have once its aliases are written out.
const MAX_VALUES: u64 = 200_000;

/// How deep values may be nested.
const MAX_DEPTH: u32 = 300;

/// The text is not YAML, or exceeds a size limit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum YamlError {
    /// Not YAML.
    #[error("yaml: {0}")]
    Syntax(String),
    /// Too many values, usually because of nested aliases.
    #[error("yaml: more than {MAX_VALUES} values after alias expansion: use a smaller document")]
    TooLarge,
    /// Nested too deeply.
    #[error("yaml: values are nested more than {MAX_DEPTH} levels deep: flatten the document")]
    TooDeep,
}

/// Kind of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueKind<'t> {
    /// Empty, `null` or `~`.
    Null,
    /// A scalar; `quoted` if it was written in quotes or as a block.
    Scalar {
        /// The text.
        text: Cow<'t, str>,
        /// Whether it was quoted.
        quoted: bool,
    },
    /// A sequence.
    Sequence(Arc<Vec<Value<'t>>>),
    /// A mapping in document order, including duplicate keys.
    Mapping(Arc<Vec<Pair<'t>>>),
}

/// A key and its value.
pub type Pair<'t> = (Value<'t>, Value<'t>);

/// A YAML value; clones share the contents.
#[derive(Clone, Debug, PartialEq)]
pub struct Value<'t> {
    /// Its kind.
    pub kind: ValueKind<'t>,
    weight: u64,
    depth: u32,
}

impl<'t> Value<'t> {
    pub(super) fn null() -> Self {
        Self { kind: ValueKind::Null, weight: 1, depth: 1 }
    }

    pub(super) fn of_text(text: Cow<'t, str>, quoted: bool) -> Self {
        if !quoted && matches!(&*text, "" | "~" | "null" | "Null" | "NULL") {
            return Self::null();
        }
        Self { kind: ValueKind::Scalar { text, quoted }, weight: 1, depth: 1 }
    }

    pub(super) fn of_items(items: Vec<Self>) -> Result<Self, YamlError> {
        let (weight, depth) = measure(items.iter())?;
        Ok(Self { kind: ValueKind::Sequence(Arc::new(items)), weight, depth })
    }

    pub(super) fn of_pairs(pairs: Vec<Pair<'t>>) -> Result<Self, YamlError> {
        let (weight, depth) = measure(pairs.iter().flat_map(|(key, value)| [key, value]))?;
        Ok(Self { kind: ValueKind::Mapping(Arc::new(pairs)), weight, depth })
    }

    /// The text of a scalar.
    pub fn scalar(&self) -> Option<&str> {
        match &self.kind {
            ValueKind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether it is a scalar that was quoted.
    pub fn is_quoted(&self) -> bool {
        matches!(self.kind, ValueKind::Scalar { quoted: true, .. })
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        self.kind == ValueKind::Null
    }

    /// The items of a sequence.
    pub fn sequence(&self) -> Option<&[Self]> {
        match &self.kind {
            ValueKind::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The pairs of a mapping.
    pub fn mapping(&self) -> Option<&[Pair<'t>]> {
        match &self.kind {
            ValueKind::Mapping(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// The first value of a key in a mapping.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let pairs = self.mapping()?;
        pairs.iter().find(|(known, _)| known.scalar() == Some(key)).map(|(_, value)| value)
    }
}

/// Weight and depth of a collection of these.
fn measure<'v, 't: 'v>(parts: impl Iterator<Item = &'v Value<'t>>) -> Result<(u64, u32), YamlError> {
    let (weight, depth) = parts.fold((1_u64, 0), |(weight, depth), part| {
        (weight.saturating_add(part.weight), depth.max(part.depth))
    });
    match (weight, depth) {
        (weight, _) if weight > MAX_VALUES => Err(YamlError::TooLarge),
        (_, MAX_DEPTH..) => Err(YamlError::TooDeep),
        (weight, depth) => Ok((weight, depth + 1)),
    }
}
