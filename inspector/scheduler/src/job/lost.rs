//! Members lost after the start of a job.

use crate::job::JobId;
use crate::model::{PodSpec, SharedStr};
use crate::request::Shape;

/// A lost member of a started gang, and the resources reserved for its replacement.
#[derive(Clone, Debug, PartialEq)]
pub struct LostMember {
    /// Requests of the replacement.
    pub(crate) shape: Shape,
    /// The node of the member, if known.
    pub(crate) ran_on: Option<SharedStr>,
    /// The node with the reserved resources; none while no node has room.
    pub kept_on: Option<SharedStr>,
    /// It succeeded, so it is only replaced if its owner requires further completions.
    pub(crate) succeeded: bool,
    /// When the resources are released, epoch seconds.
    pub until: i64,
    /// Distinguishes the reservations of a job.
    pub(crate) number: u32,
}

/// How members of a gang ended since it was last complete: determines how the gang itself ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Losses {
    /// The last disruption: its time, and the reason of its `DisruptionTarget` condition.
    pub disrupted: Option<(i64, SharedStr)>,
    /// When a member was last deleted before it had finished.
    pub deleted: Option<i64>,
    pub failed: u32,
    pub succeeded: u32,
}

impl LostMember {
    /// The holder's key in the inventory.
    pub(crate) fn holder(&self, job: JobId) -> SharedStr {
        format!("kept/{}/{}", job.0, self.number).into()
    }
}

impl Losses {
    pub(crate) fn note(&mut self, now: i64, pod: &PodSpec) {
        if let Some(reason) = &pod.disruption {
            self.disrupted = Some((now, reason.clone()));
        } else if pod.deleting || !pod.phase.ended() {
            self.deleted = Some(now);
        } else if pod.phase == crate::model::Phase::Succeeded {
            self.succeeded = self.succeeded.saturating_add(1);
        } else {
            self.failed = self.failed.saturating_add(1);
        }
    }
}
