//! Random numbers that are the same in each run.

use serde_json::Value;

/// A fixed sequence that looks random.
pub(crate) struct Dice(u64);

impl Dice {
    /// Sequences that have nothing to do with each other (the finalizer of `SplitMix64`).
    pub(crate) fn new(seed: u64, number: usize) -> Self {
        let mut mixed = (seed ^ ((number as u64 + 1) << 20)).wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Self(mixed ^ (mixed >> 31))
    }

    /// Less than `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    /// One time in so many.
    pub(crate) fn rarely(&mut self, times: usize) -> bool {
        self.roll(times) == 0
    }

    pub(crate) fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }

    /// So many values, or fewer.
    pub(crate) fn list(&mut self, most: usize, mut one: impl FnMut(&mut Self) -> Value) -> Value {
        (0..self.roll(most + 1)).map(|_| one(self)).collect()
    }
}
