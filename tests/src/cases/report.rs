//! What came of the checks, as rows and as a table.

use std::fmt;

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It held.
    Passed,
    /// It did not; what was there instead.
    Failed(String),
    /// It was not looked at, and why.
    Skipped(String),
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

    /// Passed, failed, skipped.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count =
            |wanted: fn(&Verdict) -> bool| self.rows.iter().filter(|row| wanted(&row.verdict)).count();
        (
            count(|verdict| matches!(verdict, Verdict::Passed)),
            count(|verdict| matches!(verdict, Verdict::Failed(_))),
            count(|verdict| matches!(verdict, Verdict::Skipped(_))),
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|row| row.case.len()).max().unwrap_or(0);
        for row in &self.rows {
            let (word, why) = match &row.verdict {
                Verdict::Passed => ("ok     ", None),
                Verdict::Failed(why) => ("FAILED ", Some(why)),
                Verdict::Skipped(why) => ("skipped", Some(why)),
            };
            writeln!(f, "{:width$}  {word}  {}", row.case, row.check)?;
            if let Some(why) = why {
                writeln!(f, "{:width$}           {}", "", why.replace('\n', " "))?;
            }
        }
        let (passed, failed, skipped) = self.counts();
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
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
            "a     ok       pod p, bound true\nlong  FAILED   job j\n               it is Pending\n1 passed, 1 failed, 0 skipped"
        );
    }
}
