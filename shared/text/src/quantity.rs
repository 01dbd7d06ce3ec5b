//! Exact Kubernetes quantities: `2.56Gi`, `100m`, `1e3`, `.25`.
//!
//! An [`Amount`] counts nano-units in an `i128`, so sums over containers are exact and are rounded only once, to whole
//! milli-units (cpu) or whole bytes and units (other resources). Overflow is an error; amounts are never silently set
//! to 0 or the maximum.

use std::fmt;
use std::str::FromStr;

/// Nano-units in one unit.
const NANO: i128 = 1_000_000_000;
/// Nano-units in one milli-unit.
const NANOS_PER_MILLI: i128 = 1_000_000;
/// Maximum length of a quantity in characters; valid quantities are shorter.
const LONGEST: usize = 64;

/// An exact amount of a resource in nano-units (10⁻⁹ of a core, byte or unit); may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(i128);

/// Why a quantity is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidQuantity {
    /// Empty, or only a sign or suffix.
    #[error("invalid quantity {0:?}: no digits")]
    NoDigits(String),
    /// Unknown suffix or exponent.
    #[error(
        "invalid quantity {text:?}: unknown suffix {suffix:?} (must be n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent)"
    )]
    Suffix {
        /// The whole text.
        text: String,
        /// The unknown suffix.
        suffix: String,
    },
    /// Exceeds the largest supported amount.
    #[error("invalid quantity {0:?}: too large")]
    TooLarge(String),
    /// Too many characters.
    #[error("invalid quantity: {0} characters is too long")]
    TooLong(usize),
}

impl Amount {
    /// The saturating sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The fraction of `whole`; 0 if `whole` is zero.
    pub fn ratio(self, whole: Self) -> f64 {
        if whole.0 <= 0 { 0.0 } else { (self.0 as f64 / whole.0 as f64).clamp(0.0, 1.0) }
    }

    /// Human-readable form: bytes in the largest suitable unit (`1.5Gi`), cores and other resources in units (`15.5`).
    /// Rounded down to thousandths of a core or tenths of a unit; negative amounts are shown as 0.
    pub fn shown(self, resource: &str) -> String {
        let nanos = self.0.max(0);
        if !in_bytes(resource) {
            let milli = nanos / NANOS_PER_MILLI;
            let text = format!("{}.{:03}", milli / 1000, milli % 1000);
            return text.trim_end_matches('0').trim_end_matches('.').to_owned();
        }
        let units = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        let bytes = nanos / NANO;
        let place = (0..units.len()).rev().find(|place| bytes >> (10 * place) > 0).unwrap_or(0);
        let unit = 1_i128 << (10 * place);
        let (whole, tenths) = (bytes / unit, bytes % unit * 10 / unit);
        // Three digits tell enough.
        if tenths == 0 || whole >= 100 {
            format!("{whole}{}", units[place])
        } else {
            format!("{whole}.{tenths}{}", units[place])
        }
    }

    /// Human-readable forms of this and another amount; exact if rounding would make different amounts look equal.
    pub fn compared(self, other: Self, resource: &str) -> (String, String) {
        let both = (self.shown(resource), other.shown(resource));
        if both.0 == both.1 && self != other { (self.to_string(), other.to_string()) } else { both }
    }

    /// Zero.
    pub const ZERO: Self = Self(0);

    /// An amount in nano-units.
    pub const fn from_nanos(nanos: i128) -> Self {
        Self(nanos)
    }

    /// An amount in whole units.
    pub const fn from_units(units: u64) -> Self {
        Self(units as i128 * NANO)
    }

    /// An amount in milli-units.
    pub const fn from_milli(milli: u64) -> Self {
        Self(milli as i128 * NANOS_PER_MILLI)
    }

    /// The amount in nano-units.
    pub const fn nanos(self) -> i128 {
        self.0
    }

    /// Whether the amount is negative.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The sum, or `None` on overflow.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// Rounded up to whole milli-units, as the API server stores container quantities.
    #[must_use]
    pub fn ceil_to_milli(self) -> Self {
        Self(ceil_div(self.0, NANOS_PER_MILLI).saturating_mul(NANOS_PER_MILLI))
    }

    /// Whole milli-units, rounded up; `None` when negative or above `u64`.
    pub fn milli(self) -> Option<u64> {
        u64::try_from(ceil_div(self.0, NANOS_PER_MILLI)).ok()
    }

    /// Whole units, rounded up; `None` when negative or above `u64`.
    pub fn units(self) -> Option<u64> {
        u64::try_from(ceil_div(self.0, NANO)).ok()
    }
}

impl FromStr for Amount {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        if text.len() > LONGEST {
            return Err(InvalidQuantity::TooLong(text.len()));
        }
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let too_large = || InvalidQuantity::TooLarge(text.to_owned());
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(number_end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') {
            return Err(InvalidQuantity::Suffix {
                text: text.to_owned(),
                suffix: number[whole.len() + 1 + fraction.find('.').unwrap_or(0)..].to_owned(),
            });
        }
        if whole.is_empty() && fraction.is_empty() {
            return Err(InvalidQuantity::NoDigits(text.to_owned()));
        }
        let fraction = fraction.trim_end_matches('0');
        let mut mantissa: i128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            mantissa = mantissa
                .checked_mul(10)
                .and_then(|m| m.checked_add(i128::from(digit - b'0')))
                .ok_or_else(too_large)?;
        }
        let (factor, exponent) = scale(suffix)
            .ok_or_else(|| InvalidQuantity::Suffix { text: text.to_owned(), suffix: suffix.to_owned() })?;
        if mantissa == 0 {
            return Ok(Self::ZERO);
        }
        let digits_after_point = i64::try_from(fraction.len()).map_err(|_| too_large())?;
        let power = exponent.saturating_add(9).saturating_sub(digits_after_point);
        let scaled = mantissa.checked_mul(factor).ok_or_else(too_large)?;
        let nanos = match u32::try_from(power.unsigned_abs()).ok().and_then(|p| 10_i128.checked_pow(p)) {
            Some(ten) if power >= 0 => scaled.checked_mul(ten).ok_or_else(too_large)?,
            // Finer than a nano-unit rounds away from nothing, as Kubernetes does.
            Some(ten) => ceil_div(scaled, ten),
            None if power < 0 => 1,
            None => return Err(too_large()),
        };
        Ok(Self(if negative { -nanos } else { nanos }))
    }
}

impl fmt::Display for Amount {
    /// The shortest exact form: units, milli, micro or nano.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (step, suffix) in [(NANO, ""), (NANOS_PER_MILLI, "m"), (1_000, "u")] {
            if self.0 % step == 0 {
                return write!(f, "{}{suffix}", self.0 / step);
            }
        }
        write!(f, "{}n", self.0)
    }
}

/// The factor and power of ten of a suffix or exponent.
fn scale(suffix: &str) -> Option<(i128, i64)> {
    let binary = |power: u32| Some((1_i128 << (10 * power), 0));
    match suffix {
        "" => Some((1, 0)),
        "n" => Some((1, -9)),
        "u" => Some((1, -6)),
        "m" => Some((1, -3)),
        "k" => Some((1, 3)),
        "M" => Some((1, 6)),
        "G" => Some((1, 9)),
        "T" => Some((1, 12)),
        "P" => Some((1, 15)),
        "E" => Some((1, 18)),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            // An exponent beyond i64 is as far away as the largest: the sign decides.
            let far = if exponent.starts_with('-') { i64::MIN / 4 } else { i64::MAX / 4 };
            Some((1, exponent.parse::<i64>().unwrap_or(far).clamp(i64::MIN / 4, i64::MAX / 4)))
        }
    }
}

/// Division rounding up; `by` must be positive.
fn ceil_div(value: i128, by: i128) -> i128 {
    value.div_euclid(by) + i128::from(value.rem_euclid(by) != 0)
}

/// Formats a stored quantity as Kubernetes does: cpu in milli-cores (`2500m`, `4`), others in whole units.
pub fn format(resource: &str, quantity: u64) -> String {
    if resource == "cpu" && !quantity.is_multiple_of(1000) {
        format!("{quantity}m")
    } else if resource == "cpu" {
        (quantity / 1000).to_string()
    } else {
        quantity.to_string()
    }
}

/// A stored quantity as an amount.
fn stored(resource: &str, quantity: u64) -> Amount {
    if resource == "cpu" { Amount::from_milli(quantity) } else { Amount::from_units(quantity) }
}

/// Human-readable form of a stored quantity; see [`Amount::shown`].
pub fn shown(resource: &str, quantity: u64) -> String {
    stored(resource, quantity).shown(resource)
}

/// Human-readable forms of two stored quantities to compare; see [`Amount::compared`].
pub fn compared(resource: &str, one: u64, other: u64) -> (String, String) {
    stored(resource, one).compared(stored(resource, other), resource)
}

fn in_bytes(resource: &str) -> bool {
    matches!(resource, "memory" | "ephemeral-storage" | "storage") || resource.starts_with("hugepages-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(text: &str) -> i128 {
        text.parse::<Amount>().unwrap().nanos()
    }

    #[test]
    fn every_suffix_and_exponent_is_exact() {
        let gi = 1_i128 << 30;
        for (text, want) in [
            ("0", 0),
            ("4", 4 * NANO),
            ("+4", 4 * NANO),
            ("-1", -NANO),
            ("100m", NANO / 10),
            (".25", NANO / 4),
            ("5.", 5 * NANO),
            ("0.5Ki", 512 * NANO),
            ("1Mi", (1 << 20) * NANO),
            ("2.56Gi", gi * NANO / 100 * 256),
            ("1Ti", gi * 1024 * NANO),
            ("1Pi", gi * 1024 * 1024 * NANO),
            ("8Ei", 8 * gi * gi * NANO),
            ("1k", 1000 * NANO),
            ("3M", 3_000_000 * NANO),
            ("3G", 3_000_000_000 * NANO),
            ("3T", 3_000_000_000_000 * NANO),
            ("3P", 3_000_000_000_000_000 * NANO),
            ("1E", 1_000_000_000_000_000_000 * NANO),
            ("1E3", 1000 * NANO),
            ("129e6", 129_000_000 * NANO),
            ("1e-1", NANO / 10),
            ("1.5e+2", 150 * NANO),
            ("7u", 7_000),
            ("7n", 7),
            ("0.1n", 1),
            ("1e-99999999999999999999", 1),
            ("0e99999999999999999999", 0),
            ("3731881984500m", 3_731_881_984_500_000_000),
            ("1288490188800m", 1_288_490_188_800_000_000),
            ("1.000000000000000000000000000000000000000000000000", NANO),
        ] {
            assert_eq!(nanos(text), want, "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_says_why() {
        for (text, part) in [
            ("", "no digits"),
            (".", "no digits"),
            ("-", "no digits"),
            ("Gi", "no digits"),
            ("three", "no digits"),
            ("1.2.3", "\".3\""),
            ("4 Gi", "\" Gi\""),
            ("1gi", "\"gi\""),
            ("1e", "\"e\""),
            ("1e+", "\"e+\""),
            ("0x10", "\"x10\""),
            ("1e40", "too large"),
            ("1e99999999999999999999", "too large"),
            ("9999999999999999999999999999999999999999999", "too large"),
        ] {
            let error = text.parse::<Amount>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!("1".repeat(65).parse::<Amount>().unwrap_err().to_string().contains("65 characters"));
    }

    #[test]
    fn rounding_goes_up_once() {
        assert_eq!("1.2Gi".parse::<Amount>().unwrap().units(), Some(1_288_490_189));
        assert_eq!("0.0005".parse::<Amount>().unwrap().milli(), Some(1));
        assert_eq!("0.0005".parse::<Amount>().unwrap().ceil_to_milli(), Amount::from_milli(1));
        assert_eq!("-1".parse::<Amount>().unwrap().units(), None);
        assert_eq!("20E".parse::<Amount>().unwrap().units(), None);
    }

    #[test]
    fn amounts_and_stored_quantities_print_as_kubernetes_writes_them() {
        for (text, want) in [("2.5", "2500m"), ("4000m", "4"), ("1e-6", "1u"), ("1n", "1n"), ("1Ki", "1024")]
        {
            assert_eq!(text.parse::<Amount>().unwrap().to_string(), want);
        }
        assert_eq!(format("cpu", 2500), "2500m");
        assert_eq!(format("cpu", 4000), "4");
        assert_eq!(format("memory", 4000), "4000");
    }

    #[test]
    fn a_person_reads_amounts_in_units_that_fit() {
        for (resource, quantity, want) in [
            ("cpu", 15_500, "15.5"),
            ("cpu", 28_000, "28"),
            ("cpu", 1, "0.001"),
            ("cpu", 0, "0"),
            ("cpu", 10_000, "10"),
            ("memory", 0, "0"),
            ("memory", 1023, "1023"),
            ("memory", 3 << 29, "1.5Gi"),
            ("memory", (16 << 30) - 1, "15.9Gi"),
            ("memory", 128_849_018_880, "120Gi"),
            ("ephemeral-storage", 1 << 40, "1Ti"),
            ("hugepages-2Mi", 4 << 20, "4Mi"),
            ("memory", u64::MAX, "15.9Ei"),
            ("nvidia.com/gpu", 2048, "2048"),
        ] {
            assert_eq!(shown(resource, quantity), want, "{quantity} of {resource}");
        }
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(compared("cpu", 15_500, 28_000), pair("15.5", "28"));
        assert_eq!(compared("memory", 1 << 30, (1 << 30) + 1), pair("1073741824", "1073741825"));
        assert_eq!(compared("memory", 1 << 30, 1 << 30), pair("1Gi", "1Gi"));
    }
}
