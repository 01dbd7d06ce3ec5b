//! The Kubernetes extensions: a jobspec with one gang, whose slots are each within one node.
//!
//! A `gang` at the top level (or a single slot with `within`) is parsed here, everything else by Fluxion. Its parts
//! are those of [`Request`]: several shapes that start together, an amount of each pool, a constraint, host ports and a
//! Pod for each shape, one topology level for all, and a minimum number of slots.

use std::sync::Arc;

use fluxion::jobspec::yaml::Value;
use fluxion::jobspec::{Extra, JobspecError, Reader, number};

use super::constraint;
use super::peer;
use super::yaml::{only, refuse, text};
use crate::constraint::NodeConstraint;
use crate::request::{Request, Shape};
use crate::resources::ResourceList;

/// The type of the entry with several shapes.
const GANG: &str = "gang";
/// Keys that only exist in the extensions.
const KEYS: [&str; 7] = ["within", "constraint", "hostPorts", "pod", "level", "domain", "minimum"];
/// The only supported value of `within`.
const NODE: &str = "node";
/// Maximum number of shapes in a gang.
const MOST_SHAPES: usize = 1_000;

/// Parses a gang as a [`Request`].
#[derive(Clone, Copy, Debug)]
pub struct GangReader;

impl Reader for GangReader {
    fn read(&self, entries: &[Value], attributes: &Value) -> Option<Result<Extra, JobspecError>> {
        is_extended(entries).then(|| gang(entries, attributes).map(Extra::new))
    }
}

/// Whether any entry at the top level requires the extensions.
fn is_extended(entries: &[Value]) -> bool {
    entries.iter().any(|entry| {
        entry.get("type").and_then(Value::scalar) == Some(GANG)
            || KEYS.iter().any(|key| entry.get(key).is_some())
    })
}

/// The gang described by the top-level entries; `attributes` contains its duration.
fn gang(entries: &[Value], attributes: &Value) -> Result<Request, JobspecError> {
    let [entry] = entries else {
        return refuse("a gang, or a slot \"within\" a node, must be the only entry of \"resources\"");
    };
    let mut request = Request::default();
    let system = attributes.get("system");
    if system.and_then(|system| system.get("constraints")).is_some() {
        return refuse("the constraints of a gang belong in its slots, as \"constraint\"");
    }
    request.duration = duration(system.and_then(|system| system.get("duration")))?;
    if entry.get("type").and_then(Value::scalar) != Some(GANG) {
        request.shapes.push(shape(entry)?);
        return Ok(request);
    }
    only(entry, GANG, &["type", "count", "level", "domain", "minimum", "with"])?;
    if entry.get("count").and_then(Value::scalar).and_then(number::unsigned) != Some(1) {
        return refuse("the \"count\" of a gang must be 1");
    }
    request.level = text(entry, "level")?;
    request.domain = text(entry, "domain")?;
    if request.domain.is_some() && request.level.is_none() {
        return refuse("\"domain\" requires \"level\"");
    }
    let Some(slots) = entry.get("with").and_then(Value::sequence) else {
        return refuse("\"with\" of a gang must be a sequence of slots");
    };
    if slots.len() > MOST_SHAPES {
        return refuse(format!("a gang must not have more than {MOST_SHAPES} shapes: combine equal slots"));
    }
    request.shapes = slots.iter().map(|slot| shape(slot)).collect::<Result<_, _>>()?;
    if let Some(minimum) = entry.get("minimum") {
        let all = request.slots();
        let minimum = minimum.scalar().and_then(number::unsigned);
        request.minimum = minimum.filter(|minimum| *minimum > 0 && u64::from(*minimum) <= all);
        if request.minimum.is_none() {
            return refuse(format!(
                "the \"minimum\" of a gang must be between 1 and {all}, the number of its slots"
            ));
        }
    }
    Ok(request)
}

fn shape(entry: &Value) -> Result<Shape, JobspecError> {
    only(entry, "slot", &["type", "count", "label", "within", "constraint", "hostPorts", "pod", "with"])?;
    if entry.get("type").and_then(Value::scalar) != Some("slot") {
        return refuse("a gang consists of entries of type \"slot\"");
    }
    if text(entry, "label")?.is_none() {
        return refuse("All slots must be labeled");
    }
    if entry.get("within").and_then(Value::scalar) != Some(NODE) {
        return refuse("a slot of a gang must have \"within: node\"");
    }
    let Some(count) = entry.get("count").and_then(Value::scalar).and_then(number::unsigned) else {
        return refuse("the \"count\" of a slot within a node must be an unsigned integer");
    };
    let Some(pools) = entry.get("with").and_then(Value::sequence) else {
        return refuse("\"with\" of a slot within a node must be a sequence of pools");
    };
    let mut needs = ResourceList::new();
    for pool in pools {
        let (name, quantity) = quantity(pool)?;
        if needs.contains(&name) {
            return refuse(format!("duplicate pool \"{name}\" in a slot within a node: combine the counts"));
        }
        needs.set(name, quantity);
    }
    let constraint = match entry.get("constraint") {
        Some(value) => constraint::constraint(value)?,
        None => NodeConstraint::default(),
    };
    let peer = match entry.get("pod") {
        Some(value) => Some(Arc::new(peer::peer(value)?)),
        None => None,
    };
    let ports = match entry.get("hostPorts") {
        Some(value) => constraint::ports(value)?,
        None => Vec::new(),
    };
    Ok(Shape {
        count,
        needs: Arc::new(needs),
        constraint: Arc::new(constraint),
        ports: ports.into(),
        peer,
        preferences: None,
    })
}

/// A pool and the amount to allocate, in the pool's unit.
fn quantity(pool: &Value) -> Result<(Arc<str>, u64), JobspecError> {
    only(pool, "pool", &["type", "count", "unit"])?;
    let Some(name) = text(pool, "type")? else { return refuse("Key \"type\" missing from resource") };
    let count = pool.get("count").and_then(Value::scalar).unwrap_or_default();
    if !count.is_empty()
        && count.bytes().all(|byte| byte.is_ascii_digit())
        && let Ok(quantity) = count.parse()
    {
        return Ok((name, quantity));
    }
    refuse(format!("the \"count\" of {name} must be an integer less than 2^64, in the unit of the pool"))
}

/// Seconds; none for no limit. Fractions are rounded up, as in Fluxion.
fn duration(value: Option<&Value>) -> Result<Option<i64>, JobspecError> {
    let Some(text) = value.and_then(Value::scalar) else { return Ok(None) };
    let seconds = match text.parse::<i64>() {
        Ok(seconds) => seconds,
        Err(_) => match number::double(text).map(f64::ceil) {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "within the range of an i64, as compared here"
            )]
            Some(seconds) if (0.0..9.0e18).contains(&seconds) => seconds as i64,
            _ => -1,
        },
    };
    match seconds {
        0 => Ok(None),
        1.. => Ok(Some(seconds)),
        _ => refuse("the \"duration\" of a gang must be a number of seconds, 0 (no limit) or greater"),
    }
}
