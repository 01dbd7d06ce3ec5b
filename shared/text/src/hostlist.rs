//! Compact lists of names: `node-[0-2,5]` for `node-0,node-1,node-2,node-5`, and `cpu-[01-12]` for zero-padded
//! numbers.

use std::fmt::Write as _;

use crate::natural_order;

/// Lists the names in natural order, with trailing numbers combined into ranges. At most `most` parts are listed,
/// followed by the number of remaining names; `-` if there are none.
pub fn hostlist(names: &[String], most: usize) -> String {
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_by(|a, b| natural_order(a, b));
    sorted.dedup();
    let mut families: Vec<Family<'_>> = Vec::new();
    for name in sorted {
        let (prefix, run) = split(name);
        match (families.last_mut(), run) {
            (Some(family), Some(run)) if family.prefix == prefix && !family.runs.is_empty() => {
                family.add(run);
            }
            _ => families.push(Family { prefix, runs: run.into_iter().collect() }),
        }
    }
    let mut text = String::new();
    let (mut parts, mut left) = (0, 0);
    for family in &families {
        if parts >= most {
            left += family.len();
            continue;
        }
        if parts > 0 {
            text.push(',');
        }
        let shown = family.runs.len().min(most - parts).max(1);
        parts += shown;
        left += family.write(&mut text, shown);
    }
    match (text.is_empty(), left) {
        (true, _) => "-".to_owned(),
        (_, 0) => text,
        _ => format!("{text},+{left}"),
    }
}

/// Names that differ only in their trailing number; without runs, a name without a number.
struct Family<'a> {
    prefix: &'a str,
    runs: Vec<Run>,
}

/// A range of consecutive numbers.
#[derive(Clone, Copy)]
struct Run {
    start: u64,
    end: u64,
    /// Digits of each, zeros in front included; 0 where there are no such zeros.
    width: usize,
}

impl Run {
    /// Whether a name with this number, and no other form of it, comes next.
    fn goes_on_with(&self, next: &Self) -> bool {
        // 09 and 10 are of one width, 9 and 10 of none; 010 is neither.
        let same = self.width == next.width || next.width == 0 && digits(next.start) == self.width;
        self.end.checked_add(1) == Some(next.start) && same
    }

    fn write(&self, text: &mut String) {
        let Self { start, end, width } = self;
        let _ = write!(text, "{start:0width$}");
        if start != end {
            let _ = write!(text, "-{end:0width$}");
        }
    }
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

impl Family<'_> {
    fn add(&mut self, next: Run) {
        match self.runs.last_mut() {
            Some(run) if run.goes_on_with(&next) => run.end = next.end,
            _ => self.runs.push(next),
        }
    }

    fn len(&self) -> u64 {
        count(&self.runs).max(1)
    }

    /// Writes the first `shown` runs; how many names are left comes back.
    fn write(&self, text: &mut String, shown: usize) -> u64 {
        text.push_str(self.prefix);
        match self.runs.as_slice() {
            [] => return 0,
            [run] if run.start == run.end => run.write(text),
            runs => {
                for (at, run) in runs.iter().take(shown).enumerate() {
                    text.push(if at == 0 { '[' } else { ',' });
                    run.write(text);
                }
                text.push(']');
            }
        }
        count(self.runs.get(shown..).unwrap_or_default())
    }
}

fn count(runs: &[Run]) -> u64 {
    runs.iter().map(|run| (run.end - run.start).saturating_add(1)).fold(0, u64::saturating_add)
}

/// Splits a name into prefix and trailing number; a number that is too large is part of the prefix.
fn split(name: &str) -> (&str, Option<Run>) {
    let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = &name[prefix.len()..];
    let width = if number.len() > 1 && number.starts_with('0') { number.len() } else { 0 };
    number.parse().map_or((name, None), |start| (prefix, Some(Run { start, end: start, width })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folded() {
        for (names, most, folded) in [
            ("", 9, "-"),
            ("n1", 9, "n1"),
            ("n2,n1", 9, "n[1-2]"),
            ("node-0,node-1,node-10,node-2,node-5", 9, "node-[0-2,5,10]"),
            ("a1,b1,b2,login", 9, "a1,b[1-2],login"),
            ("a01,a02,a1", 9, "a[01,1,02]"),
            ("cpu-01,cpu-02,cpu-03,cpu-09,cpu-10,cpu-11,cpu-12", 9, "cpu-[01-03,09-12]"),
            ("c8,c9,c10,c099,c100", 9, "c[8-10,099-100]"),
            ("c99,c100,c0100", 9, "c[99,0100,100]"),
            ("n1,n3,n5,n7,m,z", 3, "m,n[1,3],+3"),
            ("ip-10-0-0-7.internal,ip-10-0-0-8.internal", 9, "ip-10-0-0-7.internal,ip-10-0-0-8.internal"),
            (
                "n18446744073709551615,n18446744073709551614,n99999999999999999999999",
                9,
                "n[18446744073709551614-18446744073709551615],n99999999999999999999999",
            ),
            ("a,a,b,c", 1, "a,+2"),
        ] {
            let list: Vec<String> =
                names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
            assert_eq!(hostlist(&list, most), folded, "{names}");
        }
    }
}
