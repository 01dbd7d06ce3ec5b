//! The order in which people number nodes: n2 before n10.

use std::cmp::Ordering;

/// Compares names with runs of digits as numbers, and as text where that leaves them equal.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.as_bytes(), b.as_bytes());
    loop {
        let (Some(&l), Some(&r)) = (left.first(), right.first()) else {
            return left.len().cmp(&right.len()).then_with(|| a.cmp(b));
        };
        if l.is_ascii_digit() && r.is_ascii_digit() {
            let (l_run, l_rest) = digits(left);
            let (r_run, r_rest) = digits(right);
            match l_run.len().cmp(&r_run.len()).then_with(|| l_run.cmp(r_run)) {
                Ordering::Equal => (left, right) = (l_rest, r_rest),
                unequal => return unequal,
            }
        } else if l == r {
            (left, right) = (&left[1..], &right[1..]);
        } else {
            return l.cmp(&r);
        }
    }
}

/// The leading run of digits without its zeros in front, and what follows.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let start = text[..end].iter().position(|b| *b != b'0').unwrap_or(end);
    (&text[start..end], &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_as_numbers_and_the_order_is_total() {
        let mut names =
            ["n10", "n2", "n02", "n1-b10", "n1-b9", "n", "m99999999999999999999999", "", "n1", "10", "9"];
        names.sort_by(|a, b| natural_order(a, b));
        assert_eq!(
            names,
            ["", "9", "10", "m99999999999999999999999", "n", "n1", "n1-b9", "n1-b10", "n02", "n2", "n10"]
        );
        assert_ne!(natural_order("n2", "n02"), Ordering::Equal);
    }
}
