//! From YAML to a jobspec, in the order in which Fluxion looks at its parts.

use super::count::{Count, Operator};
use super::error::{JobspecError, refuse};
use super::extra::Reader;
use super::spec::{Jobspec, Resource};
use super::yaml::{self, Value};
use super::{number, tasks};
use crate::flux_constraint::Constraint;

type Known<'a> = &'a dyn Fn(&str) -> bool;

impl Jobspec {
    /// Parses the first YAML (or JSON) document of a text. `known` returns whether a resource type exists; a
    /// request for an unknown type is invalid rather than unsatisfiable.
    pub fn parse(text: &str, known: &dyn Fn(&str) -> bool) -> Result<Self, JobspecError> {
        jobspec(text, known, None)
    }

    /// Like [`Self::parse`], with a reader for additional resources.
    pub fn parse_with(
        text: &str,
        known: &dyn Fn(&str) -> bool,
        reader: &dyn Reader,
    ) -> Result<Self, JobspecError> {
        jobspec(text, known, Some(reader))
    }
}

fn jobspec(text: &str, known: Known, reader: Option<&dyn Reader>) -> Result<Jobspec, JobspecError> {
    let top = yaml::parse(text)?;
    let Some(pairs) = top.mapping() else { return refuse("Top level of jobspec is not a mapping") };
    let Some(version) = top.get("version") else {
        return refuse("Missing key \"version\" in top level mapping");
    };
    let Some(resources) = top.get("resources") else {
        return refuse("Missing key \"resource\" in top level mapping");
    };
    let Some(tasks) = top.get("tasks") else { return refuse("Missing key \"tasks\" in top level mapping") };
    let Some(attributes) = top.get("attributes") else {
        return refuse("Missing key \"attributes\" in top level mapping");
    };
    if pairs.len() != 4 {
        return refuse("Top mapping in jobspec must have exactly four entries");
    }
    let version = match version.scalar().and_then(number::unsigned) {
        Some(version @ 1..=9999) => version,
        Some(_) => return refuse("Only jobspec \"version\" 1-9999 is supported"),
        None => return refuse("\"version\" must be an unsigned integer"),
    };
    let mut spec = Jobspec { version, ..Jobspec::default() };
    read_attributes(attributes, &mut spec)?;
    let Some(entries) = resources.sequence() else { return refuse("\"resources\" is not a sequence") };
    match reader.and_then(|reader| reader.read(entries, attributes)) {
        Some(extra) => spec.extra = Some(extra?),
        None => {
            spec.resources = entries.iter().map(|entry| resource(entry, known)).collect::<Result<_, _>>()?;
        }
    }
    let Some(entries) = tasks.sequence() else { return refuse("\"tasks\" is not a sequence") };
    entries.iter().try_for_each(tasks::check)?;
    Ok(spec)
}

fn read_attributes(attributes: &Value, spec: &mut Jobspec) -> Result<(), JobspecError> {
    if attributes.is_null() {
        return Ok(());
    }
    let Some(pairs) = attributes.mapping() else { return refuse("\"attributes\" is not a map") };
    if pairs.iter().any(|(key, _)| !matches!(key.scalar(), Some("user" | "system"))) {
        return refuse("Unknown key in \"attributes\"");
    }
    let Some(system) = attributes.get("system") else { return Ok(()) };
    if system.sequence().is_some_and(|items| !items.is_empty()) {
        return refuse("\"system\" in \"attributes\" is not a map");
    }
    for (key, value) in system.mapping().unwrap_or_default() {
        match key.scalar() {
            Some("duration") => {
                let Some(duration) = value.scalar().and_then(number::double) else {
                    return refuse("\"duration\" must be a number of seconds");
                };
                spec.duration = duration;
            }
            Some("queue") => {
                let Some(queue) = value.scalar() else { return refuse("\"queue\" must be a string") };
                spec.queue = Some(queue.to_owned()).filter(|name| !name.is_empty());
            }
            Some("cwd") if value.scalar().is_none() => return refuse("\"cwd\" must be a string"),
            Some("environment") => {
                let pairs = value.mapping().unwrap_or_default();
                if pairs.iter().any(|(_, value)| value.scalar().is_none() && !value.is_null()) {
                    return refuse("\"environment\" must be a map of strings");
                }
            }
            Some("constraints") => {
                spec.constraint = Some(Constraint::from_yaml(value).map_err(JobspecError::Rule)?);
            }
            _ => {}
        }
    }
    Ok(())
}

fn scalar_of<'a>(entry: &'a Value, key: &str) -> Result<Option<&'a str>, JobspecError> {
    match entry.get(key) {
        None => Ok(None),
        Some(value) => match value.scalar() {
            Some(text) => Ok(Some(text)),
            None => refuse(format!("Value of \"{key}\" must be a scalar")),
        },
    }
}

fn resource(entry: &Value, known: Known) -> Result<Resource, JobspecError> {
    let Some(pairs) = entry.mapping() else { return refuse("resource is not a mapping") };
    if entry.get("type").is_none() {
        return refuse("Key \"type\" missing from resource");
    }
    let type_name = scalar_of(entry, "type")?.unwrap_or_default().to_owned();
    if !known(&type_name) {
        return refuse("Value of \"type\" must be a resource type known to fluxion");
    }
    let Some(count) = entry.get("count") else { return refuse("Key \"count\" missing from resource") };
    let count = read_count(count)?;
    scalar_of(entry, "unit")?;
    let exclusive = match scalar_of(entry, "exclusive")? {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => return refuse("Value of \"exclusive\" must be either \"true\" or \"false\""),
    };
    let with = match entry.get("with") {
        None => Vec::new(),
        Some(with) => match with.sequence() {
            Some(items) => items.iter().map(|item| resource(item, known)).collect::<Result<_, _>>()?,
            None => return refuse("\"with\" is not a sequence"),
        },
    };
    let label = scalar_of(entry, "label")?.map(str::to_owned);
    if type_name == "slot" && label.is_none() {
        return refuse("All slots must be labeled");
    }
    scalar_of(entry, "id")?;
    let keys = ["type", "count", "unit", "exclusive", "with", "label", "id"];
    let used = keys.iter().filter(|key| entry.get(key).is_some()).count();
    if used != pairs.len() {
        return refuse("Unrecognized key in resource mapping");
    }
    Ok(Resource { type_name, count, exclusive, label, with })
}

fn read_count(value: &Value) -> Result<Count, JobspecError> {
    if let Some(text) = value.scalar() {
        let Some(count) = number::unsigned(text) else {
            return refuse(format!("count is not an unsigned integer: {text}"));
        };
        return Ok(Count::exactly(count));
    }
    if value.mapping().is_none() {
        return refuse("count is not a mapping");
    }
    let number_of = |key: &str| -> Result<Option<u32>, JobspecError> {
        let Some(text) = scalar_of(value, key)? else { return Ok(None) };
        match number::unsigned(text) {
            Some(number) => Ok(Some(number)),
            None => refuse(format!("\"{key}\" is not an unsigned integer: {text}")),
        }
    };
    if value.get("min").is_none() {
        return refuse("Key \"min\" missing from count");
    }
    let min = number_of("min")?.unwrap_or_default();
    let given = ["max", "operator", "operand"].iter().filter(|key| value.get(key).is_some()).count();
    if given != 0 && given != 3 {
        return refuse("All or none of \"max\", \"operator\", and \"operand\" must be specified");
    }
    let mut count = Count::at_least(min);
    if given == 3 {
        count.max = number_of("max")?.unwrap_or_default();
        let operator = scalar_of(value, "operator")?.unwrap_or_default().to_owned();
        count.operand = number_of("operand")?.unwrap_or_default();
        count.operator = match operator.as_str() {
            "+" => Operator::Add,
            "*" => Operator::Multiply,
            "^" => Operator::Power,
            _ => return refuse("Invalid count operator"),
        };
    }
    validate(&count)?;
    Ok(count)
}

fn validate(count: &Count) -> Result<(), JobspecError> {
    if count.min < 1 {
        return refuse("\"min\" must be greater than zero");
    }
    if count.max < count.min {
        return refuse("\"max\" must be greater than or equal to \"min\"");
    }
    match count.operator {
        Operator::Add if count.operand < 1 => {
            refuse("\"operand\" must be greater than zero for addition '+'")
        }
        Operator::Multiply if count.operand < 2 => {
            refuse("\"operand\" must be greater than one for multiplication '*'")
        }
        Operator::Power if count.operand < 2 => {
            refuse("\"operand\" must be greater than one for exponentiation '^'")
        }
        Operator::Power if count.min < 2 => refuse("\"min\" must be greater than one for exponentiation '^'"),
        _ => Ok(()),
    }
}
