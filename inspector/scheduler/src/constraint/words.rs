//! Constraints as text, in the syntax of selectors on kubectl's command line.

use std::fmt::{self, Write as _};

use super::{Expression, Operator, Term};

/// Maximum number of values, expressions and terms listed.
const LISTED: usize = 5;

/// The terms of a required node affinity, one of which must match.
pub fn affinity(terms: &[Term]) -> String {
    if terms.is_empty() {
        return "no terms, which matches no node".to_owned();
    }
    listed(terms, " or ", |term| {
        let all: Vec<&Expression> = term.labels.iter().chain(&term.fields).collect();
        if all.is_empty() {
            "an empty term, which matches no node".to_owned()
        } else {
            listed(&all, ", ", ToString::to_string)
        }
    })
}

fn listed<T>(items: &[T], between: &str, say: impl Fn(&T) -> String) -> String {
    let mut text = items.iter().take(LISTED).map(say).collect::<Vec<_>>().join(between);
    if items.len() > LISTED {
        let _ = write!(text, "{between}{} more", items.len() - LISTED);
    }
    text
}

/// A label of a selector; an empty value is pointed out.
pub fn pair(key: &str, value: &str) -> String {
    if value.is_empty() { format!("{key}= (an empty value)") } else { format!("{key}={value}") }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let values = || listed(&self.values, ", ", ToString::to_string);
        match (self.operator, self.values.as_slice()) {
            (Operator::In, [value]) => f.write_str(&pair(key, value)),
            (Operator::In, _) => write!(f, "{key} in ({})", values()),
            (Operator::NotIn, [value]) => write!(f, "{key}!={value}"),
            (Operator::NotIn, _) => write!(f, "{key} notin ({})", values()),
            (Operator::Exists, _) => f.write_str(key),
            (Operator::DoesNotExist, _) => write!(f, "!{key}"),
            (Operator::Gt, _) => write!(f, "{key}>{}", values()),
            (Operator::Lt, _) => write!(f, "{key}<{}", values()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_wanted() {
        let expression = |key: &str, operator, values: &[&str]| Expression {
            key: key.into(),
            operator,
            values: values.iter().map(|value| (*value).into()).collect(),
        };
        let term = |labels: Vec<Expression>| Term { labels, fields: Vec::new() };
        let terms = [
            term(vec![
                expression("pool", Operator::In, &["a", "b"]),
                expression("gpu", Operator::Exists, &[]),
            ]),
            term(vec![
                expression("zone", Operator::NotIn, &["z"]),
                expression("old", Operator::DoesNotExist, &[]),
            ]),
            term(vec![expression("cores", Operator::Gt, &["16"]), expression("empty", Operator::In, &[""])]),
            term(Vec::new()),
        ];
        assert_eq!(
            affinity(&terms),
            "pool in (a, b), gpu or zone!=z, !old or cores>16, empty= (an empty value) or an empty term, which matches no node"
        );
        assert_eq!(affinity(&[]), "no terms, which matches no node");
        let many: Vec<String> = (0..1000).map(|at| at.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let term = term(vec![expression("n", Operator::In, &many)]);
        assert_eq!(affinity(&[term]), "n in (0, 1, 2, 3, 4, 995 more)");
    }
}
