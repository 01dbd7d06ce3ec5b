//! Random-looking names and UIDs that are the same for the same inputs.

use uuid::Uuid;

/// Namespace of the UIDs: the version 5 UUID of our domain in the DNS namespace.
const NAMESPACE: Uuid = Uuid::from_u128(0x0241_1218_ce7b_5bcb_969c_7e95_07b0_b4e6);

/// 64-bit FNV-1a: small and stable, unlike the standard library's hasher.
fn hash(parts: &[&str], sequence: u64) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    // Not FNV's offset basis but a different one, with which existing names were generated.
    let mut state: u64 = 0xcbf2_9ce4_8422_2325 ^ 1;
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

/// Five characters, like the suffix of generated names in Kubernetes (no vowels or ambiguous characters).
pub fn random_looking(parts: &[&str], sequence: u64) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut rest = hash(parts, sequence);
    (0..5)
        .map(|_| {
            let letter = LETTERS[usize::try_from(rest % 27).unwrap_or(0)];
            rest /= 27;
            char::from(letter)
        })
        .collect()
}

/// A version 5 UUID (RFC 9562, 5.5) of the parts and the number.
pub fn uid(parts: &[&str], sequence: u64) -> String {
    let mut name = Vec::new();
    for part in parts {
        name.extend_from_slice(part.as_bytes());
        // It does not occur in texts, so that adjacent parts can't be confused.
        name.push(0xff);
    }
    name.extend_from_slice(&sequence.to_be_bytes());
    Uuid::new_v5(&NAMESPACE, &name).to_string()
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
        assert_eq!(NAMESPACE, Uuid::new_v5(&Uuid::NAMESPACE_DNS, b"fluxion.flux-framework.org"));
        // Those of earlier runs are in state files; these must not change either.
        assert_eq!(uid(&["Pod", "a", "b"], 1), "0c50741c-e418-5e2d-aace-65351b2df776");
        assert_eq!(random_looking(&["Pod", "a"], 7), "q8d4k");
        let suffix = random_looking(&["Pod", "a"], 7);
        assert!(
            suffix.len() == 5 && suffix.bytes().all(|byte| b"bcdfghjklmnpqrstvwxz2456789".contains(&byte))
        );
    }
}
