//! Why a request is not met: the report, and its words.

use std::fmt;

use serde::Serialize;

use crate::errno::Errno;

/// Paths named per type and reason, at most.
pub(super) const EXAMPLES: usize = 3;

/// Why a vertex is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is down.
    Down,
    /// It does not satisfy the constraint of the request.
    Constraint,
    /// Jobs hold it.
    Held,
    /// It is asked for alone, and jobs are there or below.
    Exclusive,
    /// There is less of it, or below it, than is asked for, whoever holds it.
    TooSmall,
    /// There is enough below it, but jobs hold too much of that.
    Aggregate,
    /// There is enough below it, but too much of that is out for reasons of its own.
    Below,
    /// The request says that it is shared, and what encloses it that it is not.
    Contradiction,
}

impl Reason {
    /// The error number that it leaves behind, by Fluxion's rules.
    pub(in crate::matcher) fn errno(self) -> Errno {
        if self == Self::Contradiction { Errno::Einval } else { Errno::Ebusy }
    }

    /// In words, after "2 vertices are".
    pub fn text(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Constraint => "excluded by the constraint",
            Self::Held => "in use",
            Self::Exclusive => "not available for exclusive use",
            Self::TooSmall => "too small",
            Self::Aggregate => "with insufficient free resources",
            Self::Below => "with insufficient suitable resources",
            Self::Contradiction => "requested as shared within an exclusive resource",
        }
    }
}

/// Whether waiting helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It can be met now.
    Fits,
    /// What it finds now is not exclusive, so that there is nothing to book.
    NothingExclusive,
    /// It can be met once jobs have ended.
    Busy,
    /// It can be met only once something comes up that is down.
    Down,
    /// It can't be met on this graph.
    Unsatisfiable,
}

/// What is missing: of a type, how much is asked for at least, and how much was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shortage {
    /// The type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// How much is asked for at least.
    pub wanted: u64,
    /// How much of it can be used.
    pub found: u64,
}

/// Vertices of one type that are out for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The reason.
    pub reason: Reason,
    /// How many there are.
    pub count: u64,
    /// How many vertices of the type the graph has.
    pub of: u64,
    /// The first time, in seconds, at which the reason is gone for one of them; none when that is not
    /// known.
    pub until: Option<i64>,
    /// Paths of some of them, in order of the graph.
    pub examples: Vec<String>,
}

/// Why a request is not met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WhyNot {
    /// Whether waiting helps.
    pub verdict: Verdict,
    /// When it could start as things are booked, in seconds; none when that is not known or never.
    pub earliest: Option<i64>,
    /// What is missing at the topmost choice that failed.
    pub missing: Vec<Shortage>,
    /// Which vertices are out, by type and reason. For an unsatisfiable request: even when all were free
    /// and up.
    pub refused: Vec<Refused>,
}

impl Verdict {
    /// In words, after "the request is".
    pub fn text(self) -> &'static str {
        match self {
            Self::Fits => "can start now",
            Self::NothingExclusive => {
                "can start now, but nothing in the request is exclusive, so nothing can be allocated: request a slot"
            }
            Self::Busy => "busy: it can start once running jobs end",
            Self::Down => "blocked: it can start once resources that are down come back up",
            Self::Unsatisfiable => "unsatisfiable: the resource graph can't satisfy the request",
        }
    }
}

impl WhyNot {
    /// As one line of JSON.
    ///
    /// # Panics
    /// Never: a report has a form in JSON whatever it says.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("a report has only texts, numbers and lists of them")
    }
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.verdict.text())?;
        match (self.verdict, self.earliest) {
            (Verdict::Busy, Some(at)) => writeln!(f, "it could start at {at}")?,
            (Verdict::Busy, None) => writeln!(f, "no start time can be planned")?,
            _ => {}
        }
        for Shortage { type_name, wanted, found } in &self.missing {
            writeln!(f, "{type_name}: {wanted} requested, {found} found")?;
        }
        for refused in &self.refused {
            let (type_name, count, of) = (&refused.type_name, refused.count, refused.of);
            write!(f, "{type_name}: {count} of {of} {}", refused.reason.text())?;
            if let Some(until) = refused.until {
                write!(f, " until {until}")?;
            }
            let more = if count > refused.examples.len() as u64 { ", ..." } else { "" };
            writeln!(f, " ({}{more})", refused.examples.join(", "))?;
        }
        Ok(())
    }
}
