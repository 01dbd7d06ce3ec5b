//! Sort orders.

use std::cmp::{Ordering, Reverse};

use fluxion_api::{FluxionJob, FluxionNode};

use crate::render::{amount_of, natural_order};

/// Sort orders of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum JobOrder {
    /// In queue order.
    #[default]
    Queue,
    Name,
    /// Newest first.
    Age,
    Priority,
    State,
}

impl JobOrder {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Queue => Self::Name,
            Self::Name => Self::Age,
            Self::Age => Self::Priority,
            Self::Priority => Self::State,
            Self::State => Self::Queue,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue position",
            Self::Name => "name",
            Self::Age => "age",
            Self::Priority => "priority",
            Self::State => "state",
        }
    }

    pub(super) fn compare(self, a: &FluxionJob, b: &FluxionJob) -> Ordering {
        let place = |job: &FluxionJob| job.status.position.unwrap_or(u32::MAX);
        let age = |job: &FluxionJob| job.metadata.creation_timestamp.clone();
        let first = match self {
            Self::Queue => Ordering::Equal,
            Self::Name => natural_order(&a.spec.group.name, &b.spec.group.name),
            Self::Age => age(b).cmp(&age(a)),
            Self::Priority => b.spec.priority.cmp(&a.spec.priority),
            Self::State => a.status.state.cmp(&b.status.state),
        };
        first
            .then_with(|| a.has_ended().cmp(&b.has_ended()))
            .then_with(|| a.spec.queue.cmp(&b.spec.queue))
            .then_with(|| place(a).cmp(&place(b)))
            .then_with(|| Reverse(a.spec.priority).cmp(&Reverse(b.spec.priority)))
            .then_with(|| age(a).cmp(&age(b)))
            .then_with(|| a.metadata.namespace.cmp(&b.metadata.namespace))
            .then_with(|| natural_order(&a.metadata.name, &b.metadata.name))
    }
}

/// Sort orders of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NodeOrder {
    #[default]
    Name,
    /// Highest CPU usage first.
    Used,
    /// Nodes that are not eligible first.
    Closed,
}

impl NodeOrder {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Name => Self::Used,
            Self::Used => Self::Closed,
            Self::Closed => Self::Name,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Used => "CPU usage",
            Self::Closed => "availability",
        }
    }

    pub(super) fn compare(self, a: &FluxionNode, b: &FluxionNode) -> Ordering {
        let used = |node: &FluxionNode| {
            amount_of(&node.status.allocated, "cpu").ratio(amount_of(&node.status.allocatable, "cpu"))
        };
        let first = match self {
            Self::Name => Ordering::Equal,
            Self::Used => used(b).total_cmp(&used(a)),
            Self::Closed => a.status.eligible.cmp(&b.status.eligible),
        };
        first.then_with(|| natural_order(&a.metadata.name, &b.metadata.name))
    }
}
