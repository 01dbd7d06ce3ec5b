//! Plays the cases that lie beside the project on real control planes, where they do. Arguments name cases;
//! without any, all are played.
//!
//! Not a test of the usual form: the table is to be seen whether it passes or not.

use std::collections::{BTreeMap, VecDeque};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use fluxion_tests::cases::{self, Case, Report, Verdict};
use fluxion_tests::{Cluster, Options};

/// Control planes side by side: cases mostly wait, so that two of them find a core each.
const LANES: usize = 2;

fn main() -> Result<ExitCode> {
    let (files, folders) = (cases::folder(), cases::folders());
    let mut small = Vec::new();
    let mut large = Vec::new();
    for (path, name) in [(&files, "cases"), (&folders, "cases that are folders")] {
        if !path.is_dir() {
            println!("{}", cases::ignored(name, path));
        }
    }
    if files.is_dir() {
        small = cases::load(&files)?;
    }
    if folders.is_dir() {
        large = cases::load_folders(&folders)?.into_iter().map(|folder| folder.case).collect();
    }
    small.retain(|case| cases::chosen(&case.name));
    large.retain(|case| cases::chosen(&case.name));
    let count = small.len() + large.len();
    if count == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    // The longest first, so that none is left alone at the end.
    small.sort_by_key(|case| std::cmp::Reverse(case.seconds()));
    let queue = Mutex::new(VecDeque::from(small));
    let reports = Mutex::new(BTreeMap::new());
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let lanes = (0..LANES.min(count)).map(|_| lane(Options::default(), &queue, &reports));
        futures::future::try_join_all(lanes).await?;
        // Those that need a kind of their own, or kubelets that end Pods at their deadline.
        let queue = Mutex::new(VecDeque::from(large));
        lane(Options::default().with_deadlines().with_pod_group_crd(), &queue, &reports).await
    })?;
    let report = Report::joined(reports.into_inner().unwrap_or_else(PoisonError::into_inner));
    println!("{report} ({count} cases)");
    Ok(report.exit_code())
}

/// Plays cases on a control plane of its own until none is left.
async fn lane(
    options: Options,
    queue: &Mutex<VecDeque<Case>>,
    reports: &Mutex<BTreeMap<String, Report>>,
) -> Result<()> {
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let Some(mut case) = next() else { return Ok(()) };
    let cluster = Cluster::start(options).await?;
    loop {
        eprintln!("playing {}", case.name);
        let began = std::time::Instant::now();
        let mut report = Report::default();
        if let Err(error) = cases::play(&cluster, &case, &mut report).await {
            report.add(&case.name, "it can be played", Verdict::Failed(format!("{error:#}")));
        }
        eprintln!("played {} in {} s", case.name, began.elapsed().as_secs());
        reports.lock().unwrap_or_else(PoisonError::into_inner).insert(case.name.clone(), report);
        match next() {
            Some(another) => case = another,
            None => return Ok(()),
        }
    }
}
