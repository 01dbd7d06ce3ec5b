//! What came of the checks, as rows and as a table.

use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It held.
    Passed,
    /// It did not; what was there instead.
    Failed(String),
    /// It did not, and no scheduler could make it: what the API server itself says against it.
    Impossible(String),
}

/// One check.
#[derive(Clone, Debug)]
pub struct Row {
    /// The case.
    pub case: String,
    /// The check.
    pub check: String,
    /// How it ended.
    pub verdict: Verdict,
}

/// All checks.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// In the order in which they were looked at.
    pub rows: Vec<Row>,
}

impl Report {
    /// Adds a row.
    pub fn add(&mut self, case: &str, check: impl Into<String>, verdict: Verdict) {
        self.rows.push(Row { case: case.to_owned(), check: check.into(), verdict });
    }

    /// Those of several, in the order of their names.
    pub fn joined(reports: BTreeMap<String, Self>) -> Self {
        Self { rows: reports.into_values().flat_map(|report| report.rows).collect() }
    }

    /// How a program that shows it ends.
    pub fn exit_code(&self) -> ExitCode {
        if self.counts().1 == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Passed, failed, impossible.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count =
            |wanted: fn(&Verdict) -> bool| self.rows.iter().filter(|row| wanted(&row.verdict)).count();
        (
            count(|verdict| matches!(verdict, Verdict::Passed)),
            count(|verdict| matches!(verdict, Verdict::Failed(_))),
            count(|verdict| matches!(verdict, Verdict::Impossible(_))),
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|row| row.case.len()).max().unwrap_or(0);
        for row in &self.rows {
            let (word, why) = match &row.verdict {
                Verdict::Passed => ("ok      ", None),
                Verdict::Failed(why) => ("FAILED  ", Some(why)),
                Verdict::Impossible(why) => ("can't be", Some(why)),
            };
            writeln!(f, "{:width$}  {word}  {}", row.case, row.check)?;
            if let Some(why) = why {
                writeln!(f, "{:width$}            {}", "", why.replace('\n', " "))?;
            }
        }
        let (passed, failed, impossible) = self.counts();
        write!(f, "{passed} passed, {failed} failed, {impossible} impossible by the API server's own state")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_ends_with_the_sums() {
        let mut report = Report::default();
        report.add("a", "pod p, bound true", Verdict::Passed);
        report.add("long", "job j", Verdict::Failed("it is Pending".to_owned()));
        let text = report.to_string();
        assert_eq!(
            text,
            "a     ok        pod p, bound true\nlong  FAILED    job j\n                it is Pending\n1 passed, 1 failed, 0 impossible by the API server's own state"
        );
    }
}
