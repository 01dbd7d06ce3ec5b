//! Numbers as C++ streams print them.

/// A number with six significant digits, without trailing zeros, as `%g` prints it.
pub(crate) fn general(value: f64) -> String {
    const DIGITS: usize = 6;
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string().to_lowercase() };
    }
    let scientific = format!("{value:.*e}", DIGITS - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        return trim(&format!("{value:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
}

fn trim(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_like_a_stream() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.000_123_456_789, "0.000123457"),
            (0.000_012_3, "1.23e-05"),
            (123_456.7, "123457"),
            (1_234_567.0, "1.23457e+06"),
            (f64::MAX, "1.79769e+308"),
            (0.25, "0.25"),
            (999_999.96, "1e+06"),
        ] {
            assert_eq!(general(value), text);
        }
    }
}
