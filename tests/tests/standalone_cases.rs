//! Plays the folders that lie beside the project in standalone mode, where they do. Arguments name folders.
//!
//! Not a test of the usual form: the table is to be seen whether it passes or not.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;
use fluxion_tests::cases::{self, Folder, Report, Verdict};

fn main() -> Result<ExitCode> {
    let beside = cases::folders();
    if !beside.is_dir() {
        println!("{}", cases::ignored("standalone_cases", &beside));
        return Ok(ExitCode::SUCCESS);
    }
    let chosen: Vec<Folder> =
        cases::load_folders(&beside)?.into_iter().filter(|folder| cases::chosen(&folder.case.name)).collect();
    let runtime = tokio::runtime::Runtime::new()?;
    let reports = runtime.block_on(async {
        let running = chosen.iter().map(|folder| async {
            let mut report = Report::default();
            if let Err(error) = cases::play_standalone(folder, &mut report).await {
                report.add(&folder.case.name, "it can be played", Verdict::Failed(format!("{error:#}")));
            }
            (folder.case.name.clone(), report)
        });
        futures::future::join_all(running).await
    });
    let report = Report::joined(reports.into_iter().collect::<BTreeMap<_, _>>());
    println!("{report} ({} folders)", chosen.len());
    Ok(report.exit_code())
}
