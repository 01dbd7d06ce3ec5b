//! Many names in little room: `node-[0-2,5]` for `node-0,node-1,node-2,node-5`.

use super::natural::natural;

/// The names in natural order, runs of numbers at their ends folded. At most `most` parts are written, and
/// how many names are left; `-` for none.
pub fn hostlist(names: &[String], most: usize) -> String {
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_by(|a, b| natural(a, b));
    sorted.dedup();
    let mut families: Vec<Family<'_>> = Vec::new();
    for name in sorted {
        let (prefix, number) = split(name);
        match (families.last_mut(), number) {
            (Some(family), Some(number)) if family.prefix == prefix && !family.runs.is_empty() => {
                family.add(number);
            }
            _ => families
                .push(Family { prefix, runs: number.map(|number| (number, number)).into_iter().collect() }),
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

/// Names that differ by the number at their end only; without runs it is a name without a number.
struct Family<'a> {
    prefix: &'a str,
    runs: Vec<(u64, u64)>,
}

impl Family<'_> {
    fn add(&mut self, number: u64) {
        match self.runs.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(number) => *end = number,
            _ => self.runs.push((number, number)),
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
            [(one, other)] if one == other => put!(text, "{one}"),
            runs => {
                let parts: Vec<String> = runs
                    .iter()
                    .take(shown)
                    .map(
                        |(start, end)| {
                            if start == end { start.to_string() } else { format!("{start}-{end}") }
                        },
                    )
                    .collect();
                put!(text, "[{}]", parts.join(","));
            }
        }
        count(self.runs.get(shown..).unwrap_or_default())
    }
}

fn count(runs: &[(u64, u64)]) -> u64 {
    runs.iter().map(|(start, end)| (end - start).saturating_add(1)).fold(0, u64::saturating_add)
}

/// The name before the number at its end, and that number. One with leading zeros, or too large for counting,
/// is no number but part of the name.
fn split(name: &str) -> (&str, Option<u64>) {
    let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &name[prefix.len()..];
    if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
        return (name, None);
    }
    digits.parse().map_or((name, None), |number| (prefix, Some(number)))
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
            ("a01,a02,a1", 9, "a01,a1,a02"),
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
