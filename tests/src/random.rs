//! Random numbers that are the same in each run, and what random tests make of them.

use std::str::FromStr;

use serde_json::{Value, json};

/// A fixed sequence that looks random.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Sequences that have nothing to do with each other (the finalizer of `SplitMix64`).
    pub fn new(seed: u64, number: usize) -> Self {
        let mut mixed = (seed ^ ((number as u64 + 1) << 20)).wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Self(mixed ^ (mixed >> 31))
    }

    /// Less than `sides`.
    #[allow(clippy::cast_possible_truncation, reason = "31 bits")]
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    /// One time in so many.
    pub fn rarely(&mut self, times: usize) -> bool {
        self.roll(times) == 0
    }

    /// One of these.
    pub fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }

    /// So many values, or fewer.
    pub fn list(&mut self, most: usize, mut one: impl FnMut(&mut Self) -> Value) -> Value {
        (0..self.roll(most + 1)).map(|_| one(self)).collect()
    }

    /// A hard topology spread constraint over one of these keys, with this selector of labels `app` and `tier`.
    pub fn spread(&mut self, keys: &[&str], selector: Value) -> Value {
        // kube-apiserver rejects a key that is in both.
        let free = !selector.to_string().contains("tier");
        let mut spread = json!({"topologyKey": self.one(keys), "labelSelector": selector,
            "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1 + self.roll(2)});
        for (field, value) in [
            ("minDomains", json!(1 + self.roll(3))),
            ("nodeAffinityPolicy", json!(self.one(&["Honor", "Ignore"]))),
            ("nodeTaintsPolicy", json!(self.one(&["Honor", "Ignore"]))),
            ("matchLabelKeys", json!(["tier"])),
        ] {
            if self.rarely(3) && (free || field != "matchLabelKeys") {
                spread[field] = value;
            }
        }
        spread
    }
}

/// The number in an environment variable, which makes a test longer, or another one.
///
/// # Panics
/// If it contains something else.
pub fn number<T: FromStr>(variable: &str, otherwise: T) -> T {
    let Ok(text) = std::env::var(variable) else { return otherwise };
    text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, not '{text}'"))
}
