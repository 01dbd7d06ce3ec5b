//! Everything derived from the current members of a job.

use std::collections::BTreeSet;
use std::sync::Arc;

use fluxion_api::reason::Fact;

use crate::job::{Members, ReasonClass};
use crate::model::{PodSpec, SharedStr};
use crate::resources::ResourceList;

/// The origin of members.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Source {
    /// Members are recreated: by a controller, or by the creator of the PodGroup.
    pub recreates: bool,
    /// The owner or the PodGroup is being deleted, or was deleted.
    pub going: bool,
    /// The owner is suspended.
    pub suspended: bool,
}

/// Everything derived from the current members.
pub(super) struct MemberSummary {
    pub members: Members,
    pub holds: ResourceList,
    /// Not bound, not being bound, not gated, not terminating; in natural order of names.
    pub waiting: Vec<Arc<PodSpec>>,
    /// Being bound.
    pub in_flight: u32,
    /// Bound to an existing node, and not being deleted.
    pub assigned: u32,
    /// For each member bound to a deleted node: the node.
    pub on_lost_nodes: Vec<SharedStr>,
    /// The scheduling gates of its members.
    pub gates: BTreeSet<SharedStr>,
    /// Existing and not finished, in any state.
    pub live: u32,
    pub deleting: u32,
    pub succeeded: u32,
    pub failed: u32,
    /// A controller continues after some of its members have run: retries and later completions.
    pub continuing: bool,
    /// How many members the controllers can still have, including existing ones; none if unknown.
    pub creatable: Option<u32>,
    /// How many members it should have once started: its minimum, or at most what can still be created.
    pub owed: u32,
    /// Being deleted, while holding resources for their replacements.
    pub leaving_in_place: u32,
    /// Bound where a replacement can't run: to deleted nodes, or being deleted from nodes that are no longer eligible.
    pub displaced: Vec<Arc<PodSpec>>,
    /// An assigned member, the first by name.
    pub sibling: Option<Arc<PodSpec>>,
    pub source: Source,
    /// What prevents the job from starting, regardless of free resources.
    pub problem: Option<(ReasonClass, String)>,
    /// What prevents a member from starting that the others don't need.
    pub set_aside: Option<(ReasonClass, String)>,
    pub duration: Option<i64>,
    /// The activeDeadlineSeconds that ends it, of its Pods or its Job.
    pub limit: Option<i64>,
    pub priority: i32,
    pub queue: SharedStr,
    pub created: i64,
    /// The topology key of which all members must share a value.
    pub level: Option<SharedStr>,
    /// When the job's own time limit, if any, ends it.
    pub killed_at: Option<i64>,
    pub disruption: Option<SharedStr>,
    /// A member was being deleted when it ended.
    pub deleted_ended: bool,
    pub rejected: Option<Fact>,
}
