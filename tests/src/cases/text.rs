//! Whether a text mentions something, whatever its wording.

/// Words that say the same; the first is what cases write.
const SYNONYMS: [(&str, &[&str]); 4] = [
    ("not found", &["does not exist", "doesn't exist", "no such", "missing", "unknown"]),
    ("not ready", &["notready", "down"]),
    ("cordoned", &["unschedulable"]),
    ("no time limit", &["without a time limit", "no duration", "has no limit"]),
];

/// What of `wanted` the text does not mention. A phrase is mentioned when it stands there, or a synonym of it,
/// or when all its words do; a number only counts as a number of its own.
pub(super) fn missing(text: &str, wanted: &[String]) -> Vec<String> {
    let text = text.to_lowercase();
    wanted.iter().filter(|phrase| !mentions(&text, &phrase.to_lowercase())).cloned().collect()
}

fn mentions(text: &str, phrase: &str) -> bool {
    let synonyms = SYNONYMS.iter().find(|(word, _)| phrase.contains(word));
    let variants = synonyms
        .into_iter()
        .flat_map(|(word, others)| others.iter().map(move |other| phrase.replace(word, other)));
    std::iter::once(phrase.to_owned()).chain(variants).any(|variant| {
        let whole = if is_number(&variant) { has_number(text, &variant) } else { text.contains(&variant) };
        whole || variant.split_whitespace().all(|word| has_word(text, word))
    })
}

fn has_word(text: &str, word: &str) -> bool {
    if is_number(word) { has_number(text, word) } else { text.contains(word.trim_end_matches('s')) }
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'-')
}

/// `3` is in "3/5 members" and in "needs 3", not in "13" or "0.3".
fn has_number(text: &str, number: &str) -> bool {
    text.match_indices(number).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + number.len()..].chars();
        let next = after.next();
        let decimal = next == Some('.') && after.next().is_some_and(|c| c.is_ascii_digit());
        !before.is_some_and(|c| c.is_ascii_digit() || c == '.')
            && !next.is_some_and(|c| c.is_ascii_digit())
            && !decimal
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(text: &str, phrase: &str) -> bool {
        missing(text, &[phrase.to_owned()]).is_empty()
    }

    #[test]
    fn numbers_stand_alone() {
        assert!(has("needs 3 together, best rack has 2", "3"));
        assert!(has("2/5 members", "5"));
        assert!(has("no node has 20 cpu.", "20"));
        assert!(has("group-size '-2' is no size", "-2"));
        assert!(!has("needs 13", "3"));
        assert!(!has("1.5 cpu", "1"));
    }

    #[test]
    fn wording_is_free() {
        assert!(has("2 nodes: 1 not ready, 1 cordoned", "1 node not ready"));
        assert!(has("PodGroup train does not exist", "not found"));
        assert!(has("no start time estimate: job pod/p-none has no time limit", "no time limit"));
        assert!(has("insufficient nvidia.com/gpu", "nvidia.com/gpu"));
        assert!(!has("2 nodes are full", "cordoned"));
    }
}
