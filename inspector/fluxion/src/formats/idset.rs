//! Sets of small non-negative integers in the syntax of Flux RFC 22 (`0-3,7`, `[0-3,7]`).
//!
//! Ranges are not expanded, so the size of a set is proportional to the length of its text.

use std::fmt;

/// A set of ids, stored as disjoint inclusive ranges in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Idset {
    ranges: Vec<(u64, u64)>,
}

/// Invalid idset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid idset `{text}`: must be comma-separated numbers and ranges such as 0-3,7")]
pub struct IdsetError {
    text: String,
}

/// Exclusive upper bound of ids (2^32 - 1), as in Flux.
const LIMIT: u64 = u32::MAX as u64;

impl Idset {
    /// Parses an idset; the empty string and `[]` are the empty set, duplicate ids are merged.
    pub fn parse(text: &str) -> Result<Self, IdsetError> {
        let bad = || IdsetError { text: shorten(text) };
        let inner = match text.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').ok_or_else(bad)?,
            None => text,
        };
        let mut set = Self::default();
        if inner.is_empty() {
            return Ok(set);
        }
        for part in inner.split(',') {
            let (low, high) = match part.split_once('-') {
                Some((low, high)) => (number(low), number(high)),
                None => (number(part), number(part)),
            };
            match (low, high) {
                (Some(low), Some(high)) if low <= high => set.ranges.push((low, high)),
                _ => return Err(bad()),
            }
        }
        set.normalise();
        Ok(set)
    }

    /// Creates a set from ids in any order; duplicates are merged.
    pub fn from_ids(ids: impl IntoIterator<Item = u64>) -> Self {
        let mut set = Self { ranges: ids.into_iter().map(|id| (id, id)).collect() };
        set.normalise();
        set
    }

    fn normalise(&mut self) {
        self.ranges.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for &(low, high) in &self.ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        self.ranges = merged;
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The number of ids.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|(low, high)| high - low + 1).sum()
    }

    /// Whether `id` is in the set.
    pub fn contains(&self, id: u64) -> bool {
        let at = self.ranges.partition_point(|range| range.1 < id);
        self.ranges.get(at).is_some_and(|range| range.0 <= id)
    }

    /// The ids in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.ranges.iter().flat_map(|&(low, high)| low..=high)
    }
}

/// Ascending, with ranges as `a-b`, separated by commas, without brackets.
impl fmt::Display for Idset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, &(low, high)) in self.ranges.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            if low == high {
                write!(f, "{low}")?;
            } else {
                write!(f, "{low}-{high}")?;
            }
        }
        Ok(())
    }
}

fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|id| *id < LIMIT)
}

/// Quotes at most 80 characters of a text in an error.
pub(crate) fn shorten(text: &str) -> String {
    fluxion_text::shorten(text, 80).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_read_in_canonical_form() {
        for (text, printed) in [
            ("0-3,7", "0-3,7"),
            ("[7,0-3]", "0-3,7"),
            ("1,2", "1-2"),
            ("3,3", "3"),
            ("", ""),
            ("[]", ""),
            ("5-9,0-6", "0-9"),
        ] {
            assert_eq!(Idset::parse(text).unwrap().to_string(), printed, "{text}");
        }
    }

    #[test]
    fn refuses_other_texts() {
        for text in
            ["0^2", "a", "1-", "-1", "3-1", "1,,2", "[1", "1]", " 1", "1 ", "4294967295", "1-2-3", ","]
        {
            assert!(Idset::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_huge_range_costs_nothing() {
        let set = Idset::parse("0-4294967294").unwrap();
        assert_eq!(set.len(), 4_294_967_295);
        assert!(set.contains(4_000_000_000));
    }
}
