//! Names and uids that look random and are the same on every run of the same inputs.

/// 64-bit FNV-1a: small, and fixed for ever, unlike the standard library's hasher.
fn hash(parts: &[&str], sequence: u64, seed: u64) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut state = 0xcbf2_9ce4_8422_2325 ^ seed;
    let mut eat = |byte: u8| state = (state ^ u64::from(byte)).wrapping_mul(PRIME);
    for part in parts {
        part.bytes().for_each(&mut eat);
        eat(0xff);
    }
    sequence.to_be_bytes().into_iter().for_each(&mut eat);
    // FNV's high bits change little with the last bytes: mix once more.
    state ^= state >> 32;
    state.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (state >> 29)
}

/// Five characters, as Kubernetes appends them to generated names (no vowels, nothing to be mixed up).
pub fn random_looking(parts: &[&str], sequence: u64) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut rest = hash(parts, sequence, 1);
    (0..5)
        .map(|_| {
            let letter = LETTERS[usize::try_from(rest % 27).unwrap_or(0)];
            rest /= 27;
            char::from(letter)
        })
        .collect()
}

/// In the form of a version 8 UUID (RFC 9562: made as its maker likes).
pub fn uid(parts: &[&str], sequence: u64) -> String {
    let (high, low) = (hash(parts, sequence, 2), hash(parts, sequence, 3));
    format!(
        "{:08x}-{:04x}-8{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        0x8000 | ((low >> 48) & 0x3fff),
        low & 0xffff_ffff_ffff,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_same_is_the_same_and_all_else_differs() {
        assert_eq!(uid(&["Pod", "a", "b"], 1), uid(&["Pod", "a", "b"], 1));
        assert_ne!(uid(&["Pod", "a", "b"], 1), uid(&["Pod", "ab", ""], 1));
        let many: BTreeSet<String> = (0..10_000).map(|sequence| uid(&["Pod", "a", "b"], sequence)).collect();
        assert_eq!(many.len(), 10_000);
        let first = uid(&["Pod", "a", "b"], 1);
        assert_eq!((first.len(), &first[14..15]), (36, "8"));
        let suffix = random_looking(&["Pod", "a"], 7);
        assert!(
            suffix.len() == 5 && suffix.bytes().all(|byte| b"bcdfghjklmnpqrstvwxz2456789".contains(&byte))
        );
    }
}
