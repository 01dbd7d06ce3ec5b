//! `FluxionAudit`: problems found in the state.

use fluxion_api::graph::{Finding, FluxionAudit};
use fluxion_api::{API_VERSION, ObjectMeta};

use super::Visible;
use crate::health::WatchProblem;

/// Findings about watches and the history, followed by findings about objects that the viewer is allowed to
/// see.
pub fn audit(visible: &Visible<'_>, watches: &[WatchProblem], history: Option<String>) -> FluxionAudit {
    let viewer = visible.viewer;
    let seen = |finding: &fluxion_scheduler::state::Finding| {
        match (finding.object.split('/').collect::<Vec<_>>().as_slice(), finding.class) {
            _ if viewer.sees_everything() => true,
            ([namespace, _, _], _) => viewer.sees(namespace),
            (["node", _], "Overcommitted") => true,
            (["node", _], "NotUnderstood") => viewer.sees_nodes(),
            // The others may tell of any namespace.
            _ => false,
        }
    };
    let stale = watches.iter().map(|problem| Finding {
        class: "StaleWatch".to_owned(),
        object: format!("watch/{}", problem.resource),
        text: format!("{}; binding is paused until this is fixed", problem.text),
    });
    let history = history.map(|problem| Finding {
        class: "NoHistory".to_owned(),
        object: "history".to_owned(),
        text: format!(
            "{problem}; after a restart, finished jobs and part of the job history will be missing"
        ),
    });
    let findings = visible.state.audit().into_iter().filter(|finding| seen(finding));
    FluxionAudit {
        api_version: API_VERSION.to_owned(),
        kind: "FluxionAudit".to_owned(),
        metadata: ObjectMeta { name: super::LIVE.to_owned(), ..ObjectMeta::default() },
        findings: stale
            .chain(history)
            .chain(findings.map(|finding| Finding {
                class: finding.class.to_owned(),
                object: finding.object,
                text: finding.text,
            }))
            .collect(),
    }
}
