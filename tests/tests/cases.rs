//! Plays the cases that lie beside the project, where they do. Arguments name cases; without any, all are played.
//!
//! Not a test of the usual form: the table is to be seen whether it passes or not.

use std::process::ExitCode;

use anyhow::Result;
use fluxion_tests::cases::{self, Report, Verdict};
use fluxion_tests::{Cluster, Options};

/// Checks that are not counted when they fail: the case, how the check begins, and why.
const EXCEPTIONS: [(&str, &str, &str); 2] = [
    ("cancel-job-and-again", "cancel in step 4", "who would start next is not said by a dry run yet"),
    (
        "time-limits",
        "job job/j-max",
        "kube-controller-manager itself overflows on this limit: it fails the Job at once, before it has a Pod",
    ),
];

fn main() -> Result<ExitCode> {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let folder = cases::folder();
    if !folder.is_dir() {
        println!("NO CASES at {}: 0 passed, 0 failed, all skipped", folder.display());
        return Ok(ExitCode::SUCCESS);
    }
    let all = cases::load(&folder)?;
    let chosen: Vec<_> = all
        .iter()
        .filter(|case| wanted.is_empty() || wanted.iter().any(|name| case.name.contains(name)))
        .collect();
    let runtime = tokio::runtime::Runtime::new()?;
    let report = runtime.block_on(async {
        let cluster = Cluster::start(Options::default()).await?;
        let mut report = Report::default();
        for case in &chosen {
            eprintln!("playing {}", case.name);
            if let Err(error) = cases::play(&cluster, case, &mut report).await {
                report.add(&case.name, "it can be played", Verdict::Failed(format!("{error:#}")));
            }
        }
        anyhow::Ok(report)
    })?;
    let report = with_exceptions(report);
    println!("{report} ({} cases)", chosen.len());
    let (_, failed, _) = report.counts();
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Failures that are known are shown as skipped, with the reason.
fn with_exceptions(mut report: Report) -> Report {
    for row in &mut report.rows {
        let known =
            EXCEPTIONS.iter().find(|(case, check, _)| row.case == *case && row.check.starts_with(check));
        if let (Verdict::Failed(_), Some((_, _, why))) = (&row.verdict, known) {
            row.verdict = Verdict::Skipped((*why).to_owned());
        }
    }
    report
}
