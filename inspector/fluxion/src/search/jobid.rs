//! Flux job ids as text (RFC 19): decimal, `0x` hexadecimal, dotted hexadecimal, F58 and the KVS
//! form. The words form is not supported.

const BASE58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// Parses a job id in any of these forms.
pub fn parse_jobid(text: &str) -> Option<u64> {
    if let Some(rest) = text.strip_prefix('ƒ').or_else(|| text.strip_prefix('f'))
        && let Some(id) = base58(rest)
    {
        return Some(id);
    }
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return hexadecimal(hex);
    }
    let dotted = text.strip_prefix("job.").unwrap_or(text);
    if dotted.len() == 19 && dotted.split('.').count() == 4 && dotted.split('.').all(|part| part.len() == 4) {
        return hexadecimal(&dotted.replace('.', ""));
    }
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn hexadecimal(text: &str) -> Option<u64> {
    let valid = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    valid.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

fn base58(text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.bytes().try_fold(0_u64, |sum, byte| {
        let digit = BASE58.iter().position(|known| *known == byte)?;
        sum.checked_mul(58)?.checked_add(digit as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_forms_of_rfc_19() {
        for (text, id) in [
            ("6787342413402046", Some(6_787_342_413_402_046)),
            ("0x00181d0d4d850fbe", Some(6_787_342_413_402_046)),
            ("0018.1d0d.4d85.0fbe", Some(6_787_342_413_402_046)),
            ("job.0018.1d0d.4d85.0fbe", Some(6_787_342_413_402_046)),
            ("ƒuzzybunny", Some(6_787_342_413_402_046)),
            ("fuzzybunny", Some(6_787_342_413_402_046)),
            ("0", Some(0)),
            ("18446744073709551616", None),
            ("", None),
            ("f", None),
            ("-1", None),
            ("0x", None),
            ("0x+1", None),
        ] {
            assert_eq!(parse_jobid(text), id, "{text}");
        }
    }
}
