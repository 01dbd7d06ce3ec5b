//! Parts of the measurements at scale (`--bin scale`): many Pods, bindings a second, questions, readers.

pub mod ask;
pub mod bindings;
pub mod pods;
pub mod readers;

use std::time::Duration;

/// The middle one of some durations, the one below which 99 % are, and the longest, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spread {
    pub median: f64,
    pub p99: f64,
    pub longest: f64,
}

impl Spread {
    /// All zero where there are none.
    pub fn of(durations: impl IntoIterator<Item = Duration>) -> Self {
        let mut sorted: Vec<f64> = durations.into_iter().map(|one| one.as_secs_f64() * 1e3).collect();
        sorted.sort_by(f64::total_cmp);
        let at =
            |percent: usize| sorted.get((sorted.len() * percent / 100).min(sorted.len().wrapping_sub(1)));
        let at = |percent: usize| at(percent).copied().unwrap_or_default();
        Self { median: at(50), p99: at(99), longest: at(100) }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "median {:.2} ms, 99 % within {:.2} ms, longest {:.2} ms",
            self.median, self.p99, self.longest
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_longest_are_found() {
        let spread = Spread::of((1..=100).rev().map(Duration::from_millis));
        assert_eq!((spread.median, spread.p99, spread.longest), (51.0, 100.0, 100.0));
        assert!(Spread::of([]).longest.abs() < f64::EPSILON);
    }
}
