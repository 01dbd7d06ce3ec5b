//! Search expressions: `status=down or (sched-now=allocated and names=node[0-3])`.
//!
//! `and` and `or` bind equally and go from left to right; two terms side by side are joined by `and`.

use crate::formats::hostlist::Hostlist;

use super::jobid::parse_jobid;

/// One property of a vertex to search for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Criterion {
    /// It, or a vertex above it, is down; or neither is.
    Down(bool),
    /// It, or a vertex above it, is allocated; or neither is.
    Allocated(bool),
    /// It, or a vertex above it, is reserved; or neither is.
    Reserved(bool),
    /// A job holds it now.
    AllocatedTo(u64),
    /// A job is to hold it later.
    ReservedFor(u64),
    /// A job has a part in its aggregates.
    InAggregatesOf(u64),
    /// A job uses it or something below it.
    TouchedBy(u64),
    /// Always true or always false; asks for the aggregates to be shown.
    ShowAggregates(bool),
    /// Its name is in a list.
    Names(Hostlist),
    /// It has a property of this name.
    Property(String),
}

/// How a term is joined to what stands left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    /// Both.
    And,
    /// Either.
    Or,
}

/// An expression; nested no deeper than [`MAX_DEPTH`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// One criterion.
    Leaf(Criterion),
    /// Terms from left to right.
    Chain(Box<Expression>, Vec<(Joint, Expression)>),
}

/// A text is not an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid criteria: {0}.")]
pub struct InvalidCriteria(String);

/// Parentheses beyond this are refused.
const MAX_DEPTH: usize = 100;

impl Expression {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, InvalidCriteria> {
        chain(text, 0).ok_or_else(|| InvalidCriteria(text.to_owned()))
    }

    /// Whether it holds, given whether each criterion does.
    pub fn holds(&self, criterion: &mut impl FnMut(&Criterion) -> bool) -> bool {
        match self {
            Self::Leaf(leaf) => criterion(leaf),
            Self::Chain(first, rest) => {
                let mut value = first.holds(criterion);
                for (joint, term) in rest {
                    value = match joint {
                        Joint::And => value && term.holds(criterion),
                        Joint::Or => value || term.holds(criterion),
                    };
                }
                value
            }
        }
    }

    /// All criteria from left to right.
    pub fn criteria(&self) -> Vec<&Criterion> {
        match self {
            Self::Leaf(leaf) => vec![leaf],
            Self::Chain(first, rest) => {
                let mut all = first.criteria();
                all.extend(rest.iter().flat_map(|(_, term)| term.criteria()));
                all
            }
        }
    }
}

fn chain(text: &str, depth: usize) -> Option<Expression> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut rest = text.trim_matches(is_blank);
    let (first, after) = term(rest, depth)?;
    let mut terms = Vec::new();
    rest = after;
    while !rest.is_empty() {
        let (word, after) = rest.split_once(is_blank).unwrap_or((rest, ""));
        let joint = match word {
            "and" => Some(Joint::And),
            "or" => Some(Joint::Or),
            _ => None,
        };
        if joint.is_some() {
            rest = after.trim_start_matches(is_blank);
        }
        let (next, after) = term(rest, depth)?;
        terms.push((joint.unwrap_or(Joint::And), next));
        rest = after;
    }
    Some(if terms.is_empty() { first } else { Expression::Chain(Box::new(first), terms) })
}

/// Reads a term; answers what follows the blanks after it.
fn term(text: &str, depth: usize) -> Option<(Expression, &str)> {
    let (term, rest) = if text.starts_with('(') {
        let end = closing(text)?;
        (chain(&text[1..end], depth + 1)?, &text[end + 1..])
    } else {
        let end = text.find(is_blank).unwrap_or(text.len());
        (Expression::Leaf(leaf(&text[..end])?), &text[end..])
    };
    if !rest.is_empty() && !rest.starts_with(is_blank) {
        return None;
    }
    Some((term, rest.trim_start_matches(is_blank)))
}

/// Where the parenthesis closes that a text opens with.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => open += 1,
            ')' if open == 1 => return Some(at),
            ')' => open -= 1,
            _ => {}
        }
    }
    None
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

fn leaf(text: &str) -> Option<Criterion> {
    let (key, value) = text.split_once('=')?;
    let lower = value.to_lowercase();
    let either = |yes: &str, no: &str| match lower.as_str() {
        word if word == yes => Some(true),
        word if word == no => Some(false),
        _ => None,
    };
    match key {
        "status" => either("down", "up").map(Criterion::Down),
        "sched-now" => either("allocated", "free").map(Criterion::Allocated),
        "sched-future" => either("reserved", "free").map(Criterion::Reserved),
        "jobid-alloc" => parse_jobid(value).map(Criterion::AllocatedTo),
        "jobid-reserved" => parse_jobid(value).map(Criterion::ReservedFor),
        "jobid-span" => parse_jobid(value).map(Criterion::InAggregatesOf),
        "jobid-tag" => parse_jobid(value).map(Criterion::TouchedBy),
        "agfilter" => match lower.as_str() {
            "true" | "t" => Some(Criterion::ShowAggregates(true)),
            "false" | "f" => Some(Criterion::ShowAggregates(false)),
            _ => None,
        },
        "names" => Hostlist::parse(&lower).ok().map(Criterion::Names),
        "property" if !lower.is_empty() => Some(Criterion::Property(lower)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of an expression when exactly the criteria on `true` hold.
    fn value(text: &str) -> bool {
        let expression = Expression::parse(text).unwrap();
        expression.holds(&mut |criterion| matches!(criterion, Criterion::ShowAggregates(true)))
    }

    #[test]
    fn goes_from_left_to_right() {
        assert!(value("agfilter=t"));
        assert!(!value("agfilter=t agfilter=f"));
        assert!(!value("agfilter=t or agfilter=f and agfilter=f"));
        assert!(value("agfilter=t or (agfilter=f and agfilter=f)"));
        assert!(value("(agfilter=f agfilter=f) or agfilter=TRUE"));
        assert!(value("((agfilter=t))"));
    }

    #[test]
    fn reads_every_key() {
        for (text, criterion) in [
            ("status=UP", Criterion::Down(false)),
            ("sched-now=Allocated", Criterion::Allocated(true)),
            ("sched-future=free", Criterion::Reserved(false)),
            ("jobid-alloc=0x10", Criterion::AllocatedTo(16)),
            ("jobid-reserved=7", Criterion::ReservedFor(7)),
            ("jobid-span=7", Criterion::InAggregatesOf(7)),
            ("jobid-tag=7", Criterion::TouchedBy(7)),
            ("property=A=b", Criterion::Property("a=b".to_owned())),
        ] {
            assert_eq!(Expression::parse(text), Ok(Expression::Leaf(criterion)), "{text}");
        }
    }

    #[test]
    fn refuses_the_rest() {
        let deep = format!("{}status=up{}", "(".repeat(1000), ")".repeat(1000));
        for text in [
            "",
            " ",
            "status",
            "status=",
            "status=up)",
            "(status=up",
            "()",
            "(status=up)status=up",
            "status=up and",
            "and status=up",
            "status=up or or status=up",
            "Status=up",
            "names=a[",
            "names=socket[af[]",
            "property=",
            "jobid-tag=x",
            "agfilter=maybe",
            &deep,
        ] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
    }
}
