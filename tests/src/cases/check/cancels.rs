//! Checks of what the plugin answered to a cancel: its words and its exit code.

use anyhow::{Result, bail};

use super::super::model::Check;
use super::reasons;
use crate::plugin::Ran;

/// Outcome, and the exit code that is published for it.
/// The dry run is first: it says what would be cancelled.
const OUTCOMES: [(&str, i32); 6] = [
    ("dry run", 0),
    ("cancelled", 0),
    ("already ending", 0),
    ("already ended", 0),
    ("not found", 3),
    ("denied", 4),
];

pub(super) fn holds(ran: &Ran, check: &Check) -> Result<()> {
    let told = format!("{}\n{}", ran.stdout, ran.stderr);
    if let Some(wanted) = &check.outcome {
        let found = outcome(&told, ran.code);
        if !found.is_some_and(|found| wanted.allows(found)) {
            bail!("exit code {:?}, told is: {}", ran.code, told.trim());
        }
    }
    match &check.reason_mentions {
        Some(words) => reasons::mentions(&told, words),
        None => Ok(()),
    }
}

/// The outcome that both the words and the exit code say.
fn outcome(told: &str, code: Option<i32>) -> Option<&'static str> {
    let told = told.to_lowercase();
    let said = |word: &str| match word {
        "denied" => told.contains("denied") || told.contains("forbidden") || told.contains("may not"),
        "already ending" => told.contains("already terminating"),
        "already ended" => told.contains("already finished"),
        "not found" => told.contains("not found") || told.contains("no job"),
        _ => told.contains(word),
    };
    OUTCOMES.into_iter().find(|(word, exit)| said(word) && code == Some(*exit)).map(|(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_exit_code_must_agree() {
        assert_eq!(outcome("job/a cancelled\n", Some(0)), Some("cancelled"));
        assert_eq!(outcome("job/a would be cancelled (dry run)", Some(0)), Some("dry run"));
        assert_eq!(outcome("job/a already terminating\n", Some(0)), Some("already ending"));
        assert_eq!(outcome("job/a already finished\n", Some(0)), Some("already ended"));
        assert_eq!(outcome("job/a not found\n", Some(3)), Some("not found"));
        assert_eq!(outcome("job/a not found\n", Some(0)), None);
        assert_eq!(outcome("Forbidden: nobody may not delete jobs", Some(4)), Some("denied"));
        assert_eq!(outcome("", Some(0)), None);
    }
}
