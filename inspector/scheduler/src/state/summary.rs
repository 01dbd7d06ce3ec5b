//! Everything that follows from the members of a job as they are now.

use std::collections::BTreeSet;
use std::sync::Arc;

use fluxion_api::reason::Fact;

use crate::job::{Members, ReasonClass};
use crate::model::{PodSpec, SharedStr};
use crate::resources::ResourceList;

/// What members come from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Source {
    /// Somebody makes members anew: a controller, or whoever made the PodGroup.
    pub recreates: bool,
    /// The owner or the PodGroup is being deleted, or gone.
    pub going: bool,
    /// The owner is suspended.
    pub suspended: bool,
}

/// Everything that follows from the members as they are now.
pub(super) struct MemberSummary {
    pub members: Members,
    pub holds: ResourceList,
    /// Not bound, not sent to a node, not gated, not ending; in natural order of names.
    pub waiting: Vec<Arc<PodSpec>>,
    /// Sent to a node and not seen there yet.
    pub in_flight: u32,
    /// Bound to a node that is there, and not being deleted.
    pub assigned: u32,
    /// For each member that is bound to a node that is gone: the node.
    pub on_lost_nodes: Vec<SharedStr>,
    /// The scheduling gates of its members.
    pub gates: BTreeSet<SharedStr>,
    /// There and not ended, whatever else.
    pub live: u32,
    pub deleting: u32,
    pub succeeded: u32,
    pub failed: u32,
    /// A controller goes on with members after others of its have run: retries and later completions.
    pub continuing: bool,
    /// How many members the controllers can still create, those that are there included; none where nobody knows.
    pub creatable: Option<u32>,
    /// How many members it is to have once it has started: its minimum, or what can still be created of it.
    pub owed: u32,
    /// Being deleted, and holding until then what its replacement will get.
    pub leaving_in_place: u32,
    /// Bound where its replacement can't go: to nodes that are gone, or being deleted from nodes that take no work.
    pub displaced: Vec<Arc<PodSpec>>,
    /// An assigned member, the first by name.
    pub sibling: Option<Arc<PodSpec>>,
    pub source: Source,
    /// What keeps the job from starting, whatever is free.
    pub problem: Option<(ReasonClass, String)>,
    /// What keeps a member from starting that the others can do without.
    pub set_aside: Option<(ReasonClass, String)>,
    pub duration: Option<i64>,
    /// The activeDeadlineSeconds that ends it, its Pods' or its Job's.
    pub limit: Option<i64>,
    pub priority: i32,
    pub queue: SharedStr,
    pub created: i64,
    /// The topology key whose one domain all members must share.
    pub level: Option<SharedStr>,
    /// When the job's own time limit, where it has one, ends it.
    pub killed_at: Option<i64>,
    pub disruption: Option<SharedStr>,
    /// A member was being deleted when it ended.
    pub deleted_ended: bool,
    pub rejected: Option<Fact>,
}
