//! Identity of a span, as W3C Trace Context (`traceparent`) passes it on.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Identity of a span in its trace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SpanContext {
    pub trace: u128,
    pub span: u64,
    /// Whether the trace is recorded.
    pub sampled: bool,
}

impl SpanContext {
    /// Reads a `traceparent` header (W3C Trace Context, section 3.2); `None` if it is invalid, which counts as absent.
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let version = hex(version, 2)?;
        // Later versions may append something; there is no version 255.
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let (trace, span, flags) = (hex(trace, 32)?, hex(span, 16)?, hex(flags, 2)?);
        let span = u64::try_from(span).ok()?;
        (trace != 0 && span != 0).then_some(Self { trace, span, sampled: flags & 1 == 1 })
    }
}

impl fmt::Display for SpanContext {
    /// As a `traceparent` header.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

impl fmt::Debug for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Exactly `digits` lower-case hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != digits || !text.bytes().all(plain) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

/// Generates IDs: never zero, and different in each process.
#[derive(Debug)]
pub(super) struct Ids {
    seed: u64,
    count: AtomicU64,
}

impl Ids {
    pub(super) fn new() -> Self {
        let mut bytes = [0; 8];
        let random = rustls::crypto::ring::default_provider().secure_random;
        if random.fill(&mut bytes).is_err() {
            // Unique enough: an ID only has to differ from others.
            let now = jiff::Timestamp::now().as_nanosecond().to_le_bytes();
            bytes.copy_from_slice(&now[..8]);
        }
        Self { seed: u64::from_le_bytes(bytes), count: AtomicU64::new(1) }
    }

    /// `SplitMix64`: a different value for each number, without a pattern that sampling by ID could fall for.
    pub(super) fn next(&self) -> u64 {
        loop {
            let number = self.count.fetch_add(1, Ordering::Relaxed);
            let mut value = self.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            value ^= value >> 31;
            if value != 0 {
                return value;
            }
        }
    }

    pub(super) fn trace(&self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_as_the_recommendation_says() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = SpanContext::parse(text).unwrap();
        assert_eq!((context.span, context.sampled), (0x00f0_67aa_0ba9_02b7, true));
        assert_eq!(context.to_string(), text);
        assert!(!SpanContext::parse(&text.replace("-01", "-02")).unwrap().sampled);
        assert!(SpanContext::parse(&format!("{}-more", text.replacen("00", "cc", 1))).is_some());
        for invalid in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473\u{e9}-00f067aa0ba902b7-01",
        ] {
            assert_eq!(SpanContext::parse(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn ids_differ() {
        let ids = Ids::new();
        let many: std::collections::HashSet<u64> = (0..10_000).map(|_| ids.next()).collect();
        assert_eq!(many.len(), 10_000);
    }
}
