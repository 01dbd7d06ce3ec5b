//! Why a gang on a graph does not start, with times in seconds and without names of jobs.

use std::fmt;

use fluxion::matcher::why::Verdict;
use fluxion_api::reason;

use crate::explain::{Names, WhyNot, facts};

/// A report on a gang as of second 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangReport {
    /// Whether it can start later; none if unknown, because no start can be planned.
    verdict: Option<Verdict>,
    /// When it could start, in seconds.
    earliest: Option<i64>,
    /// Why it does not start now; empty if it does.
    reason: String,
    details: Vec<String>,
}

/// Times as plain seconds.
struct Seconds;

impl Names for Seconds {
    fn job(&self, _: u32) -> Option<String> {
        None
    }

    fn holder(&self, _: &str) -> Option<String> {
        None
    }

    fn time(&self, seconds: i64) -> String {
        seconds.to_string()
    }
}

impl GangReport {
    /// Formats the result of [`super::why_gang`].
    pub fn new(why: &WhyNot, earliest: Option<i64>) -> Self {
        let verdict = match earliest {
            Some(0) => Some(Verdict::Fits),
            Some(_) => Some(Verdict::Busy),
            None => why.never.then_some(Verdict::Unsatisfiable),
        };
        let facts = if verdict == Some(Verdict::Fits) { Vec::new() } else { facts(why, &Seconds) };
        let (reason, details) = (reason::line(&facts), reason::details(&facts, &str::to_owned));
        Self { verdict, earliest, reason, details }
    }

    /// As one line of JSON.
    pub fn json(&self) -> String {
        let never = self.verdict == Some(Verdict::Unsatisfiable);
        let Self { verdict, earliest, reason, details } = self;
        serde_json::json!({"verdict": verdict, "earliest": earliest, "never": never, "reason": reason, "details": details})
            .to_string()
    }
}

impl fmt::Display for GangReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(verdict) = self.verdict {
            writeln!(f, "{}", verdict.text())?;
        }
        match (self.verdict, self.earliest) {
            (Some(Verdict::Busy), Some(at)) => writeln!(f, "it could start at {at}")?,
            (None, _) => writeln!(f, "no planned start is possible")?,
            _ => {}
        }
        if !self.reason.is_empty() {
            writeln!(f, "{}", self.reason)?;
        }
        self.details.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
