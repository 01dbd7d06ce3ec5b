//! Lists of host names in the syntax of Flux RFC 29 (`node[0-3,7],login1`).
//!
//! Ranges in brackets are expanded only on access.

use super::idset::shorten;

/// A list of hosts in the given order; duplicates are preserved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hostlist {
    runs: Vec<Run>,
}

/// `prefix<low..=high>suffix`, numbers padded to `width`; a name without number has no `numbers`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    prefix: String,
    numbers: Option<Numbers>,
    suffix: String,
}

/// First and last number of a range, and the digits they are padded to.
type Numbers = (u64, u64, usize);

/// Invalid host list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid host list `{text}`: must be names such as node[0-3,7],login1")]
pub struct HostlistError {
    text: String,
}

/// Longest number read as one, in digits; u64 holds 19 of any value.
const MAX_DIGITS: usize = 19;

impl Hostlist {
    /// Parses a list; names are separated by commas, spaces or tabs outside brackets.
    pub fn parse(text: &str) -> Result<Self, HostlistError> {
        let bad = || HostlistError { text: shorten(text) };
        let mut list = Self::default();
        let mut rest = text.trim_start_matches(is_separator);
        while !rest.is_empty() {
            let end = token_end(rest).ok_or_else(bad)?;
            list.push_token(&rest[..end]).ok_or_else(bad)?;
            rest = rest[end..].trim_start_matches(is_separator);
        }
        Ok(list)
    }

    /// Appends another list.
    pub fn append(&mut self, mut other: Self) {
        self.runs.append(&mut other.runs);
    }

    fn push_token(&mut self, token: &str) -> Option<()> {
        let Some((prefix, rest)) = token.split_once('[') else {
            if token.contains(']') {
                return None;
            }
            let run = match split_number(token) {
                Some((prefix, number, width)) => Run {
                    prefix: prefix.to_owned(),
                    numbers: Some((number, number, width)),
                    suffix: String::new(),
                },
                None => Run { prefix: token.to_owned(), numbers: None, suffix: String::new() },
            };
            self.runs.push(run);
            return Some(());
        };
        let (ranges, suffix) = rest.split_once(']')?;
        if ranges.contains('[') || suffix.contains(['[', ']']) {
            return None;
        }
        for range in ranges.split(',') {
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            let numbers = (digits(low)?, digits(high)?, low.len());
            if numbers.0 > numbers.1 {
                return None;
            }
            self.runs.push(Run {
                prefix: prefix.to_owned(),
                numbers: Some(numbers),
                suffix: suffix.to_owned(),
            });
        }
        Some(())
    }

    /// The number of hosts, including duplicates; saturates.
    pub fn len(&self) -> u64 {
        self.runs.iter().fold(0, |sum, run| sum.saturating_add(run.len()))
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The names in order.
    pub fn iter(&self) -> impl Iterator<Item = String> + '_ {
        self.runs.iter().flat_map(|run| {
            let (low, high) = run.numbers.map_or((0, 0), |(low, high, _)| (low, high));
            (low..=high).map(|number| run.name(number))
        })
    }

    /// Whether `name` is one of the hosts.
    pub fn contains(&self, name: &str) -> bool {
        self.runs.iter().any(|run| run.contains(name))
    }
}

impl Run {
    fn len(&self) -> u64 {
        self.numbers.map_or(1, |(low, high, _)| (high - low).saturating_add(1))
    }

    fn name(&self, number: u64) -> String {
        match self.numbers {
            Some((_, _, width)) => format!("{}{number:0width$}{}", self.prefix, self.suffix),
            None => self.prefix.clone(),
        }
    }

    fn contains(&self, name: &str) -> bool {
        let Some((low, high, width)) = self.numbers else { return self.prefix == name };
        let middle =
            name.strip_prefix(self.prefix.as_str()).and_then(|rest| rest.strip_suffix(self.suffix.as_str()));
        let Some((middle, number)) = middle.and_then(|text| Some((text, digits(text)?))) else {
            return false;
        };
        low <= number && number <= high && compatible(middle.len(), width, number)
    }
}

/// Whether `number` written with `written` digits is what padding it to `width` gives.
fn compatible(written: usize, width: usize, number: u64) -> bool {
    written == width.max(decimal_len(number))
}

fn decimal_len(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

fn is_separator(c: char) -> bool {
    matches!(c, ',' | ' ' | '\t')
}

/// The end of the first name of `text`; `None` if its brackets are not balanced.
fn token_end(text: &str) -> Option<usize> {
    let mut inside = false;
    for (at, c) in text.char_indices() {
        match c {
            '[' if inside => return None,
            '[' => inside = true,
            ']' if !inside => return None,
            ']' => inside = false,
            c if is_separator(c) && !inside => return Some(at),
            _ => {}
        }
    }
    (!inside).then_some(text.len())
}

fn digits(text: &str) -> Option<u64> {
    let valid =
        !text.is_empty() && text.len() <= MAX_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
    valid.then(|| text.parse().ok()).flatten()
}

/// The trailing digits of a name.
pub fn trailing_digits(name: &str) -> &str {
    let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
    &name[prefix.len()..]
}

/// Splits trailing digits off a name: the rest, the value and the number of digits.
///
/// `None` without trailing digits, or with more than fit into a number.
pub fn split_number(name: &str) -> Option<(&str, u64, usize)> {
    let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = digits(&name[prefix.len()..])?;
    Some((prefix, number, name.len() - prefix.len()))
}

/// Formats hosts compactly in the given order: consecutive numbers become ranges, and adjacent ranges
/// with the same prefix share brackets.
pub fn encode<'a>(hosts: impl IntoIterator<Item = &'a str>) -> String {
    let mut groups: Vec<(&str, Vec<Option<Numbers>>)> = Vec::new();
    for host in hosts {
        let Some((prefix, number, width)) = split_number(host) else {
            groups.push((host, vec![None]));
            continue;
        };
        match groups.last_mut() {
            Some((last, ranges)) if *last == prefix && ranges.last().is_some_and(Option::is_some) => {
                match ranges.last_mut() {
                    Some(Some(range)) if follows(*range, number, width) => range.1 = number,
                    _ => ranges.push(Some((number, number, width))),
                }
            }
            _ => groups.push((prefix, vec![Some((number, number, width))])),
        }
    }
    let texts: Vec<String> = groups.iter().map(|(prefix, ranges)| encode_group(prefix, ranges)).collect();
    texts.join(",")
}

fn follows(range: Numbers, number: u64, width: usize) -> bool {
    let (_, high, padded) = range;
    high.checked_add(1) == Some(number) && compatible(width, padded, number)
}

fn encode_group(prefix: &str, ranges: &[Option<Numbers>]) -> String {
    let texts: Vec<String> = ranges
        .iter()
        .flatten()
        .map(
            |&(low, high, width)| {
                if low == high { format!("{low:0width$}") } else { format!("{low:0width$}-{high:0width$}") }
            },
        )
        .collect();
    match ranges {
        [Some((low, high, _))] if low == high => format!("{prefix}{}", texts.concat()),
        [None] => prefix.to_owned(),
        _ => format!("{prefix}[{}]", texts.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> Vec<String> {
        Hostlist::parse(text).unwrap().iter().collect()
    }

    #[test]
    fn expands_brackets_left_to_right() {
        assert_eq!(hosts("node[3,0-1],login"), ["node3", "node0", "node1", "login"]);
        assert_eq!(hosts("n[08-10]-ib a\tb"), ["n08-ib", "n09-ib", "n10-ib", "a", "b"]);
        assert_eq!(hosts("x,x"), ["x", "x"]);
        assert_eq!(hosts(""), [""; 0]);
    }

    #[test]
    fn refuses_unbalanced_or_empty_brackets() {
        for text in ["a[1", "a]1", "a[2-1]", "a[]", "a[x]", "a[1][2]", "a[1[2]]", "a[99999999999999999999]"] {
            assert!(Hostlist::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn encodes_in_the_order_given() {
        for (list, text) in [
            (
                vec!["fluke85", "fluke86", "fluke94", "fluke95", "fluke100", "fluke102"],
                "fluke[85-86,94-95,100,102]",
            ),
            (vec!["node3", "node0", "node1", "node2"], "node[3,0-2]"),
            (vec!["n9", "n10"], "n[9-10]"),
            (vec!["n09", "n10"], "n[09-10]"),
            (vec!["n9", "n010"], "n[9,010]"),
            (vec!["foo", "bar"], "foo,bar"),
            (vec!["fluke", "fluke"], "fluke,fluke"),
            (vec!["a7"], "a7"),
            (vec!["a7", "b7"], "a7,b7"),
        ] {
            assert_eq!(encode(list), text);
        }
    }

    #[test]
    fn membership_minds_the_width() {
        let list = Hostlist::parse("node[08-12],login").unwrap();
        for (name, inside) in [
            ("node08", true),
            ("node8", false),
            ("node12", true),
            ("node13", false),
            ("login", true),
            ("node", false),
        ] {
            assert_eq!(list.contains(name), inside, "{name}");
        }
        assert!(Hostlist::parse("node[8-12]").unwrap().contains("node10"));
        assert!(!Hostlist::parse("node[8-12]").unwrap().contains("node010"));
    }

    #[test]
    fn a_huge_range_costs_nothing() {
        let list = Hostlist::parse("node[0-4000000000]").unwrap();
        assert_eq!(list.len(), 4_000_000_001);
        assert_eq!(list.iter().nth(2).as_deref(), Some("node2"));
    }
}
