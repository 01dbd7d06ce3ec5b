//! `FluxionQueue`: configuration of a queue, its jobs by state, and its last scheduling pass.

use std::collections::BTreeMap;

use fluxion_api::queue::{Pass, QueueSpec, QueueStatus};
use fluxion_api::{API_VERSION, FluxionQueue, JobState, ObjectMeta};
use fluxion_scheduler::placement::NodePolicy;
use fluxion_scheduler::queue::{Planning, QueueConfig, QueuePolicy};

use super::text::time;
use super::{Visible, words};

/// The queue as visible to the viewer; jobs in other namespaces are not counted.
pub fn queue(visible: &Visible<'_>, config: &QueueConfig) -> FluxionQueue {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let mut jobs: BTreeMap<JobState, u32> = BTreeMap::new();
    for job in
        visible.state.jobs().filter(|job| job.queue == config.name && visible.viewer.sees(&job.key.namespace))
    {
        *jobs.entry(words::state(job.state)).or_default() += 1;
    }
    let pass = visible.state.last_pass(&config.name);
    // What a pass did tells of all namespaces.
    let (seconds, tried, started) = if visible.viewer.sees_everything() {
        (visible.pass_seconds, pass.tried, pass.started)
    } else {
        (0.0, 0, 0)
    };
    FluxionQueue {
        api_version: API_VERSION.to_owned(),
        kind: "FluxionQueue".to_owned(),
        metadata: ObjectMeta { name: config.name.to_string(), ..ObjectMeta::default() },
        spec: QueueSpec {
            policy: policy(config.policy).to_owned(),
            planning: (config.policy == QueuePolicy::Conservative)
                .then(|| planning(config.planning).to_owned()),
            queue_depth: number(config.queue_depth),
            reservation_depth: number(config.reservations()),
            node_policy: nodes(config.node_policy).to_owned(),
            default_duration_seconds: config.default_duration,
            assumed_duration_seconds: config.assumed_duration,
        },
        status: QueueStatus {
            jobs,
            last_pass: Pass { at: (pass.at > 0).then(|| time(pass.at)), seconds, tried, started },
        },
    }
}

fn planning(planning: Planning) -> &'static str {
    match planning {
        Planning::Compress => "compress",
        Planning::Replan => "replan",
    }
}

fn nodes(policy: NodePolicy) -> &'static str {
    match policy {
        NodePolicy::Low => "low",
        NodePolicy::High => "high",
        NodePolicy::Spread => "spread",
    }
}

fn policy(policy: QueuePolicy) -> &'static str {
    match policy {
        QueuePolicy::Fcfs => "fcfs",
        QueuePolicy::Easy => "easy",
        QueuePolicy::Conservative => "conservative",
        QueuePolicy::Hybrid => "hybrid",
    }
}
