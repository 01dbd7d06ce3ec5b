//! The report on why a request can't be satisfied.

use std::fmt;

use serde::Serialize;

use crate::errno::Errno;

/// Maximum number of paths listed per type and reason.
pub(super) const EXAMPLES: usize = 3;

/// Why a vertex was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is down.
    Down,
    /// It does not satisfy the constraint of the request.
    Constraint,
    /// It is allocated to jobs.
    Held,
    /// It is requested exclusively, but jobs use it or its descendants.
    Exclusive,
    /// Its size, or the resources below it, are less than requested, regardless of usage.
    TooSmall,
    /// There is enough below it, but too much of it is allocated.
    Aggregate,
    /// There is enough below it, but too much of it was rejected for other reasons.
    Below,
    /// It is requested as shared within an exclusive resource.
    Contradiction,
}

impl Reason {
    /// The resulting error number, by Fluxion's rules.
    pub(in crate::matcher) fn errno(self) -> Errno {
        if self == Self::Contradiction { Errno::Einval } else { Errno::Ebusy }
    }

    /// Human-readable description, to follow "2 of 3".
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
    /// It can be satisfied now.
    Fits,
    /// It matches now, but without exclusive resources, so that there is nothing to allocate.
    NothingExclusive,
    /// It can be satisfied once jobs have ended.
    Busy,
    /// It can be satisfied only once resources that are down come up.
    Down,
    /// It can't be satisfied by this graph.
    Unsatisfiable,
}

/// A shortage of resources of one type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shortage {
    /// The type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The minimum requested amount.
    pub wanted: u64,
    /// The usable amount.
    pub found: u64,
}

/// Vertices of one type that were rejected for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The reason.
    pub reason: Reason,
    /// Number of rejected vertices.
    pub count: u64,
    /// Number of vertices of the type in the graph.
    pub of: u64,
    /// Earliest time in seconds at which the reason no longer applies to one of them; none if
    /// unknown.
    pub until: Option<i64>,
    /// Paths of some of them, in graph order.
    pub examples: Vec<String>,
}

/// Why a request can't be satisfied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WhyNot {
    /// Whether waiting helps.
    pub verdict: Verdict,
    /// Earliest start time in seconds, given the current allocations; none if unknown or never.
    pub earliest: Option<i64>,
    /// Shortages at the topmost selection that failed.
    pub missing: Vec<Shortage>,
    /// Rejected vertices by type and reason. For an unsatisfiable request, these apply even if all vertices are
    /// free and up.
    pub refused: Vec<Refused>,
}

impl Verdict {
    /// Human-readable description.
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
    /// The report as one line of JSON.
    ///
    /// # Panics
    /// Never: every report can be serialized.
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
