//! The order of names that hold numbers.

use std::cmp::Ordering;

/// Compares names so that `n2` comes before `n10`.
pub fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        match (digits(left), digits(right)) {
            (first, second) if first > 0 && second > 0 => {
                let (x, y) = (left[..first].trim_start_matches('0'), right[..second].trim_start_matches('0'));
                match x.len().cmp(&y.len()).then_with(|| x.cmp(y)) {
                    Ordering::Equal => (left, right) = (&left[first..], &right[second..]),
                    decided => return decided,
                }
            }
            _ => {
                let (mut x, mut y) = (left.chars(), right.chars());
                match (x.next(), y.next()) {
                    (None, None) => return a.cmp(b),
                    (one, other) if one != other => return one.cmp(&other),
                    _ => (left, right) = (x.as_str(), y.as_str()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count() {
        let mut names = ["n10", "n2", "n1", "a-3-x", "a-03-y", "n", "", "n02"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["", "a-3-x", "a-03-y", "n", "n1", "n02", "n2", "n10"]);
    }
}
