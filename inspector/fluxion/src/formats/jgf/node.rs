//! A vertex as it stands in a JGF document, and the defaults for what it leaves out.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::receiver::about;
use crate::document::NodeRecord;
use crate::formats::error::ReadError;
use crate::formats::hostlist::trailing_digits;
use crate::graph::Status;

/// A vertex with nothing filled in.
#[derive(Deserialize)]
pub(super) struct RawNode {
    #[serde(default, deserialize_with = "present")]
    id: Option<String>,
    #[serde(default, deserialize_with = "present")]
    metadata: Option<RawMetadata>,
}

#[derive(Deserialize)]
struct RawMetadata {
    #[serde(rename = "type")]
    type_name: String,
    paths: Paths,
    #[serde(default, deserialize_with = "present")]
    basename: Option<String>,
    #[serde(default, deserialize_with = "present")]
    uniq_id: Option<i64>,
    #[serde(default, deserialize_with = "present")]
    id: Option<i64>,
    #[serde(default, deserialize_with = "present")]
    name: Option<String>,
    #[serde(default, deserialize_with = "present")]
    rank: Option<i32>,
    #[serde(default, deserialize_with = "present")]
    size: Option<u64>,
    #[serde(default, deserialize_with = "present")]
    status: Option<u8>,
    #[serde(default, deserialize_with = "present")]
    unit: Option<String>,
    #[serde(default, deserialize_with = "present")]
    exclusive: Option<bool>,
    #[serde(default)]
    properties: Properties,
}

/// A key that is there must have its type; `null` is none.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl RawNode {
    /// The vertex with the defaults of the format.
    pub(super) fn complete(self) -> Result<NodeRecord, ReadError> {
        let key = self
            .id
            .ok_or_else(|| ReadError::jgf("fill_fetcher", "JGF vertex id key is not found in a node"))?;
        let fail = |what: &str| ReadError::jgf("fill_fetcher", format!("{what} for {}", about(&key)));
        let metadata = self.metadata.ok_or_else(|| fail("key (metadata) is not found in an JGF node"))?;
        let status = match metadata.status {
            None | Some(0) => Status::Up,
            Some(1) => Status::Down,
            Some(_) => return Err(fail("malformed metadata in an JGF node (status is 0 or 1)")),
        };
        let Properties(Some(properties)) = metadata.properties else {
            return Err(fail("key (properties) must be an object or null"));
        };
        let uniq_id = match metadata.uniq_id {
            Some(uniq_id) => uniq_id,
            None => integer_prefix(&key).ok_or_else(|| {
                let what = format!(
                    "value for key (uniq_id) could not be inferred from outer 'id' field {}",
                    about(&key)
                );
                ReadError::jgf("apply_defaults", what)
            })?,
        };
        let basename = metadata.basename.unwrap_or_else(|| metadata.type_name.clone());
        let id = match (metadata.id, &metadata.name) {
            (Some(id), _) => id,
            (None, Some(name)) if metadata.type_name == "node" && !trailing_digits(name).is_empty() => {
                trailing_digits(name).parse().map_err(|_| fail("the number in the name is too large"))?
            }
            _ => uniq_id,
        };
        let name = metadata.name.unwrap_or_else(|| format!("{basename}{id}"));
        Ok(NodeRecord {
            key,
            type_name: metadata.type_name,
            basename,
            name,
            id,
            uniq_id,
            rank: metadata.rank.unwrap_or(-1),
            size: metadata.size.unwrap_or(1),
            unit: metadata.unit.unwrap_or_default(),
            status,
            exclusive: metadata.exclusive.unwrap_or(false),
            paths: metadata.paths.0,
            properties,
        })
    }
}

/// The number a text begins with, as C's strtol finds it.
fn integer_prefix(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let sign = usize::from(text.starts_with(['-', '+']));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    text[..sign + digits].parse().ok()
}

/// Strings by name; a value of another kind than an object counts as none at all.
#[derive(Default)]
struct Paths(BTreeMap<String, String>);

/// Strings by name; `None` for a value of another kind than an object.
struct Properties(Option<BTreeMap<String, String>>);

impl Default for Properties {
    fn default() -> Self {
        Self(Some(BTreeMap::new()))
    }
}

impl<'de> Deserialize<'de> for Paths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(deserializer.deserialize_any(Strings)?.unwrap_or_default()))
    }
}

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Strings).map(Self)
    }
}

/// Reads an object of strings; answers none for anything but an object.
struct Strings;

impl<'de> Visitor<'de> for Strings {
    type Value = Option<BTreeMap<String, String>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut strings = BTreeMap::new();
        while let Some((key, value)) = map.next_entry()? {
            strings.insert(key, value);
        }
        Ok(Some(strings))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
}
