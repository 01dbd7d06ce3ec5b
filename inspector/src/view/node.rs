//! `FluxionNode`: the resources of a node, who uses them, and whether it accepts new Pods.

use std::collections::BTreeSet;

use fluxion_api::node::NodeStatus;
use fluxion_api::{API_VERSION, FluxionNode, ObjectMeta};
use fluxion_scheduler::inventory::NodeView;
use fluxion_scheduler::state::JobId;

use super::Visible;
use super::name::full_name;
use super::text::quantities;

/// The node as visible to the viewer.
pub fn node(visible: &Visible<'_>, view: &NodeView) -> FluxionNode {
    let owned = |text: &std::sync::Arc<str>| text.to_string();
    // What is kept for a nominated Pod is as good as taken, by others than us. Neither part exceeds what a
    // u64 holds unless the allocations are broken, and then the larger part alone still tells.
    let foreign = view.foreign.checked_add(&view.nominated).unwrap_or_else(|_| view.foreign.clone());
    let reserved = view.reserved.checked_add(&view.kept).unwrap_or_else(|_| view.reserved.clone());
    FluxionNode {
        api_version: API_VERSION.to_owned(),
        kind: "FluxionNode".to_owned(),
        metadata: ObjectMeta {
            name: view.spec.name.to_string(),
            uid: view.spec.uid.to_string(),
            labels: view.spec.labels.iter().map(|(key, value)| (owned(key), owned(value))).collect(),
            ..ObjectMeta::default()
        },
        status: NodeStatus {
            eligible: view.eligible,
            reasons: view.reasons.iter().map(ToString::to_string).collect(),
            levels: view.levels.iter().map(|(key, value)| (owned(key), owned(value))).collect(),
            capacity: quantities(&view.spec.capacity),
            allocatable: quantities(&view.spec.allocatable),
            allocated: quantities(&view.allocated),
            foreign: quantities(&foreign),
            reserved: quantities(&reserved),
            free: quantities(&view.free),
            deficit: quantities(&view.deficit),
            jobs: jobs(visible, view),
        },
    }
}

/// The jobs on it that the viewer may see, as `NAMESPACE/KIND/NAME`.
fn jobs(visible: &Visible<'_>, view: &NodeView) -> Vec<String> {
    let ids: BTreeSet<_> = view.holders.iter().filter_map(|(_, hold)| hold.job).collect();
    let jobs = ids.into_iter().filter_map(|id| visible.state.job(JobId(id)));
    let mut names: Vec<String> = jobs
        .filter(|job| visible.viewer.sees(&job.key.namespace))
        .map(|job| full_name(visible.state, job))
        .collect();
    names.sort();
    names
}
