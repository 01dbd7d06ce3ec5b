//! Quantities as Kubernetes writes them, compared as numbers. A reader of its own, so that the product's is
//! checked by another.

/// The amount in billionths; `None` when the text is no quantity.
pub(super) fn nanos(text: &str) -> Option<i128> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let negative = whole.starts_with('-');
    let whole = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let digits: String = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: i128 = digits.parse().ok()?;
    let shift = i32::try_from(fraction.len()).ok()?;
    let (factor, exponent) = suffix_of(suffix)?;
    let value = scale(digits.checked_mul(factor)?, exponent.checked_sub(shift)?.checked_add(9)?)?;
    Some(if negative { -value } else { value })
}

/// A factor and a power of ten.
fn suffix_of(suffix: &str) -> Option<(i128, i32)> {
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
        _ => Some((1, suffix.strip_prefix(['e', 'E'])?.parse().ok()?)),
    }
}

fn scale(value: i128, exponent: i32) -> Option<i128> {
    let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
    if exponent >= 0 {
        return value.checked_mul(power);
    }
    // Kubernetes rounds up.
    Some(value.checked_add(power - 1)?.div_euclid(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_amounts_are_equal_numbers() {
        for (left, right) in [
            ("2500m", "2.5"),
            ("1e-1", "100m"),
            (".25", "250m"),
            ("1.2Gi", "1288490188800m"),
            ("129e6", "129M"),
            ("8Gi", "8589934592"),
            ("-3", "-3000m"),
        ] {
            assert_eq!(nanos(left), nanos(right), "{left} {right}");
            assert!(nanos(left).is_some());
        }
    }

    #[test]
    fn what_is_no_quantity_is_none() {
        for wrong in ["", "x", "1x", "1.2.3", "--1", "1e", "e3"] {
            assert_eq!(nanos(wrong), None, "{wrong}");
        }
    }
}
