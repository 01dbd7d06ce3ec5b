//! Label and field selectors in Kubernetes syntax.

use std::collections::BTreeMap;

use super::refusal::Refusal;

/// Maximum length of a selector.
const MAX_BYTES: usize = 16 * 1024;
/// Maximum number of terms.
const MAX_TERMS: usize = 256;

/// A requirement on the value of a label or field.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Demand {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

/// All terms must match; the empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selector {
    terms: Vec<(String, Demand)>,
}

impl Selector {
    pub(super) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether any term is about this key.
    pub(super) fn looks_at(&self, key: &str) -> bool {
        self.terms.iter().any(|(about, _)| about == key)
    }

    /// The terms on these keys, and the others.
    pub(super) fn split(self, keys: &[&str]) -> (Self, Self) {
        let (these, others) = self.terms.into_iter().partition(|(key, _)| keys.contains(&key.as_str()));
        (Self { terms: these }, Self { terms: others })
    }

    /// Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
    pub(super) fn labels(text: &str) -> Result<Self, Refusal> {
        let bad = |term: &str| {
            Refusal::BadRequest(format!(
                "labelSelector: unable to parse '{}': must be a comma-separated list of KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY or !KEY",
                shortened(term)
            ))
        };
        let mut terms = Vec::new();
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        for term in split(text, "labelSelector")? {
            let (key, demand) = label_term(term).ok_or_else(|| bad(term))?;
            if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c)) {
                return Err(bad(term));
            }
            if let Demand::In(values) | Demand::NotIn(values) = &demand
                && let Some(value) = values.iter().find(|value| !is_label_value(value))
            {
                return Err(Refusal::BadRequest(format!(
                    "labelSelector: invalid label value '{}': must consist of at most 63 letters, digits, '-', '_' or '.', and start and end with a letter or digit",
                    shortened(value)
                )));
            }
            terms.push((key.to_owned(), demand));
        }
        Ok(Self { terms })
    }

    /// Parses `a=b,c!=d`; only the fields in `known` are supported.
    pub(super) fn fields(text: &str, known: &[&str]) -> Result<Self, Refusal> {
        let mut terms = Vec::new();
        // Unlike in label selectors, empty terms are ignored, as in kube-apiserver.
        for term in split(text, "fieldSelector")?.into_iter().filter(|term| !term.is_empty()) {
            let (key, value, negative) = equation(term).ok_or_else(|| {
                Refusal::BadRequest(format!(
                    "fieldSelector: unable to parse '{}': must be a comma-separated list of FIELD=VALUE or FIELD!=VALUE",
                    shortened(term)
                ))
            })?;
            if !known.contains(&key) {
                return Err(Refusal::BadRequest(format!(
                    "fieldSelector: unknown field '{}': supported fields are {}",
                    shortened(key),
                    known.join(", ")
                )));
            }
            let values = vec![value.to_owned()];
            terms.push((key.to_owned(), if negative { Demand::NotIn(values) } else { Demand::In(values) }));
        }
        Ok(Self { terms })
    }

    /// Whether labels match.
    pub(super) fn accepts_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        self.accepts(|key| labels.get(key).map(String::as_str).into_iter().collect())
    }

    /// Whether an object with these field values matches; a field may have several (the nodes of a job).
    pub(super) fn accepts<'a>(&self, values: impl Fn(&str) -> Vec<&'a str>) -> bool {
        self.terms.iter().all(|(key, demand)| {
            let have = values(key);
            let meets = |wanted: &[String]| have.iter().any(|value| wanted.iter().any(|one| one == value));
            match demand {
                Demand::In(wanted) => meets(wanted),
                Demand::NotIn(wanted) => !meets(wanted),
                Demand::Exists => !have.is_empty(),
                Demand::Absent => have.is_empty(),
            }
        })
    }
}

fn shortened(text: &str) -> String {
    fluxion_text::clean(&fluxion_text::shorten(text, 80)).into_owned()
}

/// Whether it is a valid label value.
fn is_label_value(text: &str) -> bool {
    let ends = |byte: Option<u8>| byte.is_none_or(|byte| byte.is_ascii_alphanumeric());
    text.len() <= 63
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && ends(text.bytes().next())
        && ends(text.bytes().next_back())
}

/// The terms between commas that are not inside parentheses.
fn split<'a>(text: &'a str, what: &str) -> Result<Vec<&'a str>, Refusal> {
    if text.len() > MAX_BYTES {
        return Err(Refusal::BadRequest(format!("{what}: must not be longer than {MAX_BYTES} bytes")));
    }
    let mut terms = Vec::new();
    let (mut start, mut open) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '(' => open = true,
            ')' => open = false,
            ',' if !open => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    let terms: Vec<&str> = terms.into_iter().map(str::trim).collect();
    if terms.len() > MAX_TERMS {
        return Err(Refusal::BadRequest(format!("{what}: must not have more than {MAX_TERMS} terms")));
    }
    Ok(terms)
}

/// Key, value and whether it is `!=`.
fn equation(term: &str) -> Option<(&str, &str, bool)> {
    if let Some((key, value)) = term.split_once("!=") {
        return Some((key.trim(), value.trim(), true));
    }
    let (key, value) = term.split_once("==").or_else(|| term.split_once('='))?;
    Some((key.trim(), value.trim(), false))
}

fn label_term(term: &str) -> Option<(&str, Demand)> {
    if let Some((head, rest)) = term.split_once('(') {
        let values = rest.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
        let (key, operator) = head.trim().rsplit_once(char::is_whitespace)?;
        return match operator {
            "in" => Some((key.trim(), Demand::In(values))),
            "notin" => Some((key.trim(), Demand::NotIn(values))),
            _ => None,
        };
    }
    if let Some((key, value, negative)) = equation(term) {
        let values = vec![value.to_owned()];
        return Some((key, if negative { Demand::NotIn(values) } else { Demand::In(values) }));
    }
    match term.strip_prefix('!') {
        Some(key) => Some((key.trim(), Demand::Absent)),
        None => Some((term, Demand::Exists)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn label_selectors_select_as_in_kubernetes() {
        let have = labels(&[("app", "sim"), ("tier", "gold")]);
        for (text, expected) in [
            ("", true),
            ("app=sim", true),
            ("app==sim", true),
            ("app = sim , tier=gold", true),
            ("app!=sim", false),
            ("none!=sim", true),
            ("app in (a, sim)", true),
            ("app notin (a,b)", true),
            ("none notin (a)", true),
            ("app", true),
            ("!app", false),
            ("!none", true),
            ("app=sim,tier=iron", false),
            ("app in (a,b),tier", false),
            ("app in (,sim)", true),
            ("app=", false),
        ] {
            assert_eq!(Selector::labels(text).unwrap().accepts_labels(&have), expected, "{text}");
        }
    }

    #[test]
    fn unreadable_selectors_are_refused() {
        for bad in [
            "a in b",
            "a in (b",
            "=",
            "===",
            "a b",
            "a like (x)",
            "k;=v",
            "in (a)",
            "a=b=c",
            "a===b",
            "a=b c",
            ",",
            "a=b,",
            "a,,b",
            "!",
            "!=x",
            "a=-b",
            "a in (b c)",
        ] {
            assert!(matches!(Selector::labels(bad), Err(Refusal::BadRequest(_))), "{bad}");
        }
        let huge = "a=b,".repeat(100_000);
        assert!(matches!(Selector::labels(&huge), Err(Refusal::BadRequest(_))));
        let many = "a,".repeat(300);
        assert!(matches!(Selector::labels(&many), Err(Refusal::BadRequest(_))));
    }

    #[test]
    fn unknown_fields_are_refused_with_those_that_exist() {
        assert!(Selector::fields(" ,node=n1,", &["node"]).unwrap().accepts(|_| vec!["n1"]));
        let refusal = Selector::fields("spec.color=red", &["metadata.name", "node"]).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "fieldSelector: unknown field 'spec.color': supported fields are metadata.name, node"
        );
    }

    #[test]
    fn a_field_with_several_values_meets_any() {
        let on = |text: &str| Selector::fields(text, &["node"]).unwrap().accepts(|_| vec!["n1", "n2"]);
        assert!(on("node=n2"));
        assert!(!on("node=n3"));
        assert!(!on("node!=n1"));
    }
}
