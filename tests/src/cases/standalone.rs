//! Plays a folder in standalone mode: starts it, looks at each check at its second, and hands in what is bad.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use super::check::World;
use super::folder::Folder;
use super::model::Check;
use super::play::until;
use super::report::{Report, Verdict};
use crate::standalone::{Standalone, refused};

/// How long checks may take to become true after their second.
const PATIENCE: Duration = Duration::from_secs(3);
/// The same for those that have none.
const LONG: Duration = Duration::from_secs(8);

/// Plays the folder's `nodes.yaml` and `jobs.yaml`, then each manifest that must be refused.
pub async fn play(folder: &Folder, report: &mut Report) -> Result<()> {
    let (nodes, jobs) = (folder.path.join("nodes.yaml"), folder.path.join("jobs.yaml"));
    let mut running = Standalone::start(&nodes, &jobs).await?;
    let began = Instant::now();
    let none = running.dir().join("no-kubeconfig");
    let server = running.server();
    let plugin = server.plugin(&none)?;
    let world = World { cluster: None, server, plugin: &plugin, cancels: &BTreeMap::new() };
    let mut moments: BTreeMap<u64, Vec<&Check>> = BTreeMap::new();
    for check in &folder.checks {
        moments.entry(check.at.unwrap_or(0)).or_default().push(check);
    }
    for (second, due) in moments {
        tokio::time::sleep_until(began + Duration::from_secs(second)).await;
        let patience = if second == 0 { LONG } else { PATIENCE };
        let verdicts = until(&world, &due, patience).await;
        for (check, verdict) in due.into_iter().zip(verdicts) {
            report.add(&folder.case.name, check.title(), verdict);
        }
    }
    running.healthy()?;
    for manifest in &folder.bad {
        let name = manifest.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let verdict = match refused(&nodes, manifest).await {
            Ok(output)
                if says_where(&output.stderr) && output.status.code().is_some_and(|code| code != 0) =>
            {
                Verdict::Passed
            }
            Ok(output) => Verdict::Failed(format!(
                "it ends with {} and says: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            )),
            Err(error) => Verdict::Failed(format!("{error:#}")),
        };
        report.add(&folder.case.name, format!("{name} is refused, with its field"), verdict);
    }
    Ok(())
}

/// Whether the error names the field, as an API server does.
fn says_where(stderr: &[u8]) -> bool {
    String::from_utf8_lossy(stderr).contains("spec.containers[")
}
