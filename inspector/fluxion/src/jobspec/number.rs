//! Numbers as C++ streams read them from a YAML scalar.

/// Parses an unsigned 32-bit integer; the prefix selects the base (`0x` for 16, `0` for 8, otherwise 10), and
/// surrounding whitespace is allowed.
pub fn unsigned(text: &str) -> Option<u32> {
    let digits = text.trim_matches([' ', '\t', '\n', '\r']);
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    let (digits, base) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    u32::from_str_radix(digits, base).ok()
}

/// Parses a floating-point number, including YAML's names for infinity and NaN.
pub fn double(text: &str) -> Option<f64> {
    let body = text.trim_matches([' ', '\t', '\n', '\r']);
    let plain = body.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    if plain && let Ok(value) = body.parse() {
        return Some(value);
    }
    match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        _ => None,
    }
}
