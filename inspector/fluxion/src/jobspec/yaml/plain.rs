//! YAML as most jobspecs are written, read in one go: block mappings and sequences, collections in brackets
//! that end on their line, and unquoted words. What it reads it reads as the parser of all YAML does; at
//! the first sign of anything else it gives up and leaves the text to that one, errors included.

use std::borrow::Cow;

use super::value::Value;

/// Deeper nesting is left to the other parser.
const MAX_DEPTH: usize = 32;
/// Longer words are left to the other parser, which limits keys.
const MAX_WORD: usize = 256;

/// One line: how far it is indented, and what follows.
#[derive(Clone, Copy)]
struct Line<'t> {
    indent: usize,
    text: &'t str,
}

/// Reads a whole text; none when it is not all plain.
pub(super) fn parse(text: &str) -> Option<Value<'_>> {
    if text.contains("---") || text.contains("...") {
        return None;
    }
    let mut lines = Vec::with_capacity(32);
    for line in text.split('\n').filter(|line| !line.is_empty()) {
        let text = line.trim_start_matches(' ');
        if text.is_empty() || text.ends_with(' ') {
            return None;
        }
        lines.push(Line { indent: line.len() - text.len(), text });
    }
    let mut reader = Reader { lines, at: 0 };
    let first = reader.peek()?;
    if first.text.starts_with('-') {
        return None;
    }
    let top = reader.mapping(first.indent, 0)?;
    (reader.at == reader.lines.len()).then_some(top)
}

struct Reader<'t> {
    lines: Vec<Line<'t>>,
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<Line<'t>> {
        self.lines.get(self.at).copied()
    }

    /// A mapping whose keys stand at one indentation; an earlier line may have been cut so that its rest
    /// is the first pair.
    fn mapping(&mut self, indent: usize, depth: usize) -> Option<Value<'t>> {
        let mut pairs = Vec::with_capacity(4);
        while let Some(line) = self.peek().filter(|line| line.indent >= indent) {
            if line.indent > indent || line.text.starts_with('-') {
                return None;
            }
            let (key, rest) = word(line.text)?;
            let rest = rest.strip_prefix(':')?;
            self.at += 1;
            let value = match rest {
                "" => self.below(indent, depth)?,
                rest => inline(rest.strip_prefix(' ')?, depth)?,
            };
            pairs.push((key, value));
        }
        Value::of_pairs(pairs).ok()
    }

    /// What belongs to a key that ends its line.
    fn below(&mut self, indent: usize, depth: usize) -> Option<Value<'t>> {
        let next = self.peek().filter(|_| depth < MAX_DEPTH)?;
        if next.text.starts_with('-') && next.indent >= indent {
            return self.sequence(next.indent, depth + 1);
        }
        if next.indent > indent { self.mapping(next.indent, depth + 1) } else { None }
    }

    fn sequence(&mut self, indent: usize, depth: usize) -> Option<Value<'t>> {
        let mut items = Vec::with_capacity(1);
        while let Some(line) = self.peek().filter(|line| line.indent >= indent) {
            if line.indent > indent {
                return None;
            }
            let Some(rest) = line.text.strip_prefix('-') else { break };
            let text = rest.trim_start_matches(' ');
            if text.len() == rest.len() || depth >= MAX_DEPTH {
                return None;
            }
            let pair = word(text).is_some_and(|(_, rest)| rest.starts_with(':'));
            if pair {
                let inner = indent + line.text.len() - text.len();
                self.lines[self.at] = Line { indent: inner, text };
                items.push(self.mapping(inner, depth + 1)?);
            } else {
                self.at += 1;
                items.push(inline(text, depth)?);
            }
        }
        Value::of_items(items).ok()
    }
}

/// A word, and what follows it.
fn word(text: &str) -> Option<(Value<'_>, &str)> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./+-".contains(byte);
    let length = text.as_bytes().iter().take_while(|byte| plain(byte)).count();
    if length == 0 || length > MAX_WORD || text.starts_with('-') {
        return None;
    }
    let (word, rest) = text.split_at(length);
    Some((Value::of_text(Cow::Borrowed(word), false), rest))
}

/// A value that ends with its line.
fn inline(text: &str, depth: usize) -> Option<Value<'_>> {
    let (value, rest) = flow(text.trim_start_matches(' '), depth)?;
    rest.is_empty().then_some(value)
}

/// A word or a collection in brackets, and what follows it.
fn flow(text: &str, depth: usize) -> Option<(Value<'_>, &str)> {
    let mapping = text.starts_with('{');
    if !mapping && !text.starts_with('[') {
        return word(text);
    }
    if depth >= MAX_DEPTH {
        return None;
    }
    let rest = text[1..].trim_start_matches(' ');
    if mapping {
        let (pairs, rest) = flow_items(rest, '}', |text| {
            let (key, rest) = word(text)?;
            let (value, rest) = flow(rest.strip_prefix(": ")?.trim_start_matches(' '), depth + 1)?;
            Some(((key, value), rest))
        })?;
        Some((Value::of_pairs(pairs).ok()?, rest))
    } else {
        let (items, rest) = flow_items(rest, ']', |text| flow(text, depth + 1))?;
        Some((Value::of_items(items).ok()?, rest))
    }
}

/// Items with commas between them, up to a bracket, and what follows that.
fn flow_items<'t, T>(
    mut rest: &'t str,
    close: char,
    item: impl Fn(&'t str) -> Option<(T, &'t str)>,
) -> Option<(Vec<T>, &'t str)> {
    let mut items = Vec::new();
    if let Some(rest) = rest.strip_prefix(close) {
        return Some((items, rest));
    }
    loop {
        let (next, behind) = item(rest)?;
        items.push(next);
        rest = behind.trim_start_matches(' ');
        if let Some(rest) = rest.strip_prefix(close) {
            return Some((items, rest));
        }
        rest = rest.strip_prefix(',')?.trim_start_matches(' ');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::parse_fully;
    use super::*;

    #[test]
    fn reads_jobspecs_as_they_are_mostly_written() {
        let text = "version: 9999\nresources:\n  - type: node\n    count: {min: 1, max: 0x4}\n\n    with:\n    - type: slot\n      label: default\n      with:\n        - {type: core, count: 64, unit: null}\n        -   [a, [], { b: {} }]\nattributes: {system: {duration: 3600.5}}\ntasks: [{command: [app], slot: default}]\n";
        assert_eq!(parse(text), parse_fully(text).ok());
        assert!(parse(text).is_some());
    }

    #[test]
    fn leaves_the_rest_to_others() {
        for text in
            ["", "a", "a: b c", "a: 'b'", "a:b: c", "a: b # c", "- a", "a:\n", "a: b\n  c", "a: [b,\nc]"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn reads_nothing_differently(parts in prop::collection::vec(prop::sample::select(vec![
            "a", "key", "0.5", "null", "x-", "-", "- ", "-  ", ": ", ":", "a: ", "b:", "c: d", "\n", "\n", "\n", "\n  ",
            "\n  ", "\n    ", "\n- ", "\n  - ", " ", "[", "]", "{", "}", ", ", ",", "[]", "{}", "[a, b]", "{a: b}", ".", "/",
        ]), 1..24)) {
            let text = parts.concat();
            if let Some(value) = parse(&text) {
                prop_assert_eq!(Ok(value), parse_fully(&text), "{:?}", text);
            }
        }
    }
}
