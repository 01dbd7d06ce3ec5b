//! Search expressions: `status=down or (sched-now=allocated and names=node[0-3])`.
//!
//! `and` and `or` bind equally and go from left to right; two terms side by side are joined by `and`.

use crate::formats::hostlist::Hostlist;

use super::jobid::parse_jobid;

/// A search criterion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Criterion {
    /// Whether the vertex or one of its ancestors is down.
    Down(bool),
    /// Whether the vertex or one of its ancestors is allocated.
    Allocated(bool),
    /// Whether the vertex or one of its ancestors is reserved.
    Reserved(bool),
    /// The vertex is allocated to a job.
    AllocatedTo(u64),
    /// The vertex is reserved for a job.
    ReservedFor(u64),
    /// A job has a span in the aggregates of the vertex.
    InAggregatesOf(u64),
    /// A job uses the vertex or one of its descendants.
    TouchedBy(u64),
    /// Always true or always false; includes the aggregates in the output.
    ShowAggregates(bool),
    /// The name of the vertex is in a list.
    Names(Hostlist),
    /// The vertex has a property with this name.
    Property(String),
}

/// Operator that joins a term to the terms on its left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    /// Logical and.
    And,
    /// Logical or.
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

/// Invalid expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid criteria: {0}.")]
pub struct InvalidCriteria(String);

/// Maximum nesting depth of parentheses.
const MAX_DEPTH: usize = 100;

impl Expression {
    /// Parses an expression.
    pub fn parse(text: &str) -> Result<Self, InvalidCriteria> {
        Parser::new(text).chain(0, text.len(), 0).ok_or_else(|| InvalidCriteria(text.to_owned()))
    }

    /// Evaluates the expression, given the value of each criterion.
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

/// A text with the places where its parentheses close, so that nesting costs no second look.
struct Parser<'a> {
    text: &'a str,
    closing: Vec<usize>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        let mut closing = vec![usize::MAX; text.len()];
        let mut open = Vec::new();
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                b'(' => open.push(at),
                b')' => {
                    if let Some(start) = open.pop() {
                        closing[start] = at;
                    }
                }
                _ => {}
            }
        }
        Self { text, closing }
    }

    /// Where the blanks end that a stretch begins with.
    fn skip(&self, from: usize, to: usize) -> usize {
        let stretch = &self.text[from..to];
        to - stretch.trim_start_matches(is_blank).len()
    }

    fn chain(&self, from: usize, to: usize, depth: usize) -> Option<Expression> {
        if depth > MAX_DEPTH {
            return None;
        }
        let (first, mut at) = self.term(self.skip(from, to), to, depth)?;
        let mut terms = Vec::new();
        while at < to {
            let rest = &self.text[at..to];
            let word = rest.find(is_blank).map_or(rest, |end| &rest[..end]);
            let joint = match word {
                "and" => Some(Joint::And),
                "or" => Some(Joint::Or),
                _ => None,
            };
            if joint.is_some() {
                at = self.skip(at + word.len(), to);
            }
            let (next, after) = self.term(at, to, depth)?;
            terms.push((joint.unwrap_or(Joint::And), next));
            at = after;
        }
        Some(if terms.is_empty() { first } else { Expression::Chain(Box::new(first), terms) })
    }

    /// Reads a term; answers where the blanks after it end.
    fn term(&self, from: usize, to: usize, depth: usize) -> Option<(Expression, usize)> {
        let text = &self.text[from..to];
        let (term, end) = if text.starts_with('(') {
            let end = *self.closing.get(from).filter(|end| **end < to)?;
            (self.chain(from + 1, end, depth + 1)?, end + 1)
        } else {
            let len = text.find(is_blank).unwrap_or(text.len());
            (Expression::Leaf(leaf(&text[..len])?), from + len)
        };
        let next = self.skip(end, to);
        (next > end || end == to).then_some((term, next))
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

fn leaf(text: &str) -> Option<Criterion> {
    let (key, value) = text.split_once('=')?;
    let lower = value.to_ascii_lowercase();
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
