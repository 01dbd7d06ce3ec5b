//! Validation errors of an object, field by field, in the words of kube-apiserver.
//!
//! Paths are borrowed and only become text if there is an error.

use std::collections::BTreeMap;
use std::fmt;

/// Maximum number of errors listed per object.
const SPELLED_OUT_MAX: usize = 8;
/// Longer values are truncated.
const SHOWN_MAX: usize = 64;

/// Path of a field: `spec.containers[0].resources.limits[nvidia.com/gpu]`.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    part: Part<'a>,
}

#[derive(Clone, Copy)]
enum Part<'a> {
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    pub(super) const fn root(name: &'a str) -> Self {
        Self { parent: None, part: Part::Field(name) }
    }

    /// A field of this value.
    pub(super) const fn field(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), part: Part::Field(name) }
    }

    /// An item of this list.
    pub(super) const fn item(&'a self, index: usize) -> Self {
        Self { parent: Some(self), part: Part::Index(index) }
    }

    /// An entry of this map.
    pub(super) const fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), part: Part::Key(key) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.part {
            Part::Field(name) if self.parent.is_none() => f.write_str(name),
            Part::Field(name) => write!(f, ".{}", shown(name)),
            Part::Index(index) => write!(f, "[{index}]"),
            Part::Key(key) => write!(f, "[{}]", shown(key)),
        }
    }
}

/// A field and its error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub field: String,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// All errors of an object; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    pub problems: Vec<Problem>,
    /// Number of errors not listed.
    more: usize,
}

impl fmt::Display for Refused {
    /// Formatted like in kube-apiserver: `A: …`, or `[A: …, B: …]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let ([one], 0) = (self.problems.as_slice(), self.more) {
            return one.fmt(f);
        }
        f.write_str("[")?;
        for (index, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if index == 0 { "" } else { ", " })?;
        }
        if self.more > 0 {
            write!(f, ", and {} more", self.more)?;
        }
        f.write_str("]")
    }
}

/// The errors found so far.
#[derive(Debug, Default)]
pub(super) struct Problems {
    problems: Vec<Problem>,
    more: usize,
}

impl Problems {
    /// The errors, if there are any.
    pub(super) fn finish(self) -> Result<(), Refused> {
        if self.problems.is_empty() {
            Ok(())
        } else {
            Err(Refused { problems: self.problems, more: self.more })
        }
    }

    pub(super) fn invalid<'v>(&mut self, path: &Path<'_>, value: impl Into<Value<'v>>, why: &str) {
        let value = value.into();
        self.add(path, || format!("Invalid value: {value}: {why}"));
    }

    /// One error per rule violated by `text`.
    pub(super) fn names(&mut self, path: &Path<'_>, text: &str, broken: Vec<String>) {
        for why in broken {
            self.invalid(path, text, &why);
        }
    }

    pub(super) fn required(&mut self, path: &Path<'_>, why: &str) {
        let colon = if why.is_empty() { "" } else { ": " };
        self.add(path, || format!("Required value{colon}{why}"));
    }

    /// `text` is not one of the supported values.
    pub(super) fn unsupported(&mut self, path: &Path<'_>, text: &str, values: &[&str]) {
        let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        let text = Value::from(text);
        self.add(path, || format!("Unsupported value: {text}: supported values: {}", values.join(", ")));
    }

    pub(super) fn duplicate(&mut self, path: &Path<'_>, text: &str) {
        let text = Value::from(text);
        self.add(path, || format!("Duplicate value: {text}"));
    }

    /// A duplicate, with this reason.
    pub(super) fn clashes(&mut self, path: &Path<'_>, text: &str, why: &str) {
        let text = Value::from(text);
        self.add(path, || format!("Duplicate value: {text}: {why}"));
    }

    pub(super) fn not_found(&mut self, path: &Path<'_>, text: &str) {
        let text = Value::from(text);
        self.add(path, || format!("Not found: {text}"));
    }

    pub(super) fn forbidden(&mut self, path: &Path<'_>, why: &str) {
        self.add(path, || format!("Forbidden: {why}"));
    }

    pub(super) fn too_long(&mut self, path: &Path<'_>, most: usize) {
        self.add(path, || format!("Too long: may not be more than {most} bytes"));
    }

    pub(super) fn too_many(&mut self, path: &Path<'_>, number: usize, most: usize) {
        self.add(path, || format!("Too many: {number}: must have at most {most} items"));
    }

    /// Like the validation of a CRD schema.
    pub(super) fn wrong_type(&mut self, path: &Path<'_>, wanted: &str, found: &serde_json::Value) {
        let kind = match found {
            serde_json::Value::Null => "null",
            serde_json::Value::Bool(_) => "boolean",
            serde_json::Value::Number(_) => "number",
            serde_json::Value::String(_) => "string",
            serde_json::Value::Array(_) => "array",
            serde_json::Value::Object(_) => "object",
        };
        let why = format!("{path} in body must be of type {wanted}: \"{kind}\"");
        self.invalid(path, kind, &why);
    }

    /// A number that is optional but must not be negative.
    pub(super) fn not_negative(&mut self, path: &Path<'_>, number: Option<impl Into<i64>>) {
        if let Some(number) = number.map(Into::into).filter(|number| *number < 0) {
            self.invalid(path, number, NEGATIVE);
        }
    }

    fn add(&mut self, path: &Path<'_>, message: impl FnOnce() -> String) {
        if self.problems.len() < SPELLED_OUT_MAX {
            self.problems.push(Problem { field: path.to_string(), message: message() });
        } else {
            self.more += 1;
        }
    }
}

/// The message for negative numbers.
pub(super) const NEGATIVE: &str = "must be greater than or equal to 0";

/// A value as shown in an error.
pub(super) enum Value<'a> {
    Text(&'a str),
    Number(i64),
    /// Labels, as JSON.
    Labels(&'a BTreeMap<String, String>),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<i32> for Value<'_> {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}

impl<'a> From<&'a BTreeMap<String, String>> for Value<'a> {
    fn from(labels: &'a BTreeMap<String, String>) -> Self {
        Self::Labels(labels)
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "\"{}\"", shown(text)),
            Self::Number(number) => number.fmt(f),
            Self::Labels(labels) => {
                f.write_str("{")?;
                for (index, (key, value)) in labels.iter().take(SPELLED_OUT_MAX).enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}\"{}\":\"{}\"", shown(key), shown(value))?;
                }
                f.write_str("}")
            }
        }
    }
}

/// Untrusted text: truncated, and without control characters.
fn shown(text: &str) -> String {
    let mut characters = text.chars();
    let mut short: String = characters.by_ref().take(SHOWN_MAX).flat_map(escaped).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

fn escaped(character: char) -> impl Iterator<Item = char> {
    // An apostrophe needs no escape between double quotes.
    let plain = character == '\'';
    let escape = (!plain).then(|| character.escape_debug());
    plain.then_some(character).into_iter().chain(escape.into_iter().flatten())
}

/// Calls `refuse` with a given value that is not one of `values`.
pub(super) fn one_of(text: Option<&str>, values: &[&str], refuse: impl FnOnce(&str, &[&str])) {
    if let Some(text) = text.filter(|text| !values.contains(text)) {
        refuse(text, values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_joined_and_bounded() {
        let spec = Path::root("spec");
        let mut problems = Problems::default();
        problems.not_negative(&spec.field("replicas"), Some(-1_i32));
        assert_eq!(
            problems.finish().unwrap_err().to_string(),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0"
        );
        let mut problems = Problems::default();
        for index in 0..100_000 {
            problems.required(&spec.field("list").item(index), "");
        }
        let text = problems.finish().unwrap_err().to_string();
        assert!(text.starts_with("[spec.list[0]: Required value, spec.list[1]: Required value, "), "{text}");
        assert!(text.ends_with(", and 99992 more]"), "{text}");
    }

    #[test]
    fn what_others_wrote_is_cut_and_cannot_steer_a_terminal() {
        let labels = Path::root("labels");
        let long = "x".repeat(1000);
        let mut problems = Problems::default();
        problems.invalid(&labels.key("a\u{202e}b\n"), "it's \"\u{1b}[2J", "is odd");
        problems.duplicate(&labels, &long);
        let text = problems.finish().unwrap_err().to_string();
        let cut = "x".repeat(64);
        assert_eq!(
            text,
            format!(
                r#"[labels[a\u{{202e}}b\n]: Invalid value: "it's \"\u{{1b}}[2J": is odd, labels: Duplicate value: "{cut}…"]"#
            )
        );
    }
}
