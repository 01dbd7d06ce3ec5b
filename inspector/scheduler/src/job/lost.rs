//! Members that a job lost after its start.

use crate::job::JobId;
use crate::model::{PodSpec, SharedStr};
use crate::request::Shape;

/// A member that a started gang lost, and the place that is kept for its replacement.
#[derive(Clone, Debug, PartialEq)]
pub struct LostMember {
    /// What the place is for.
    pub(crate) shape: Shape,
    /// Where the member ran, as far as that is known.
    pub(crate) ran_on: Option<SharedStr>,
    /// Where its place is kept; none while no node has room for it.
    pub kept_on: Option<SharedStr>,
    /// It ended well, so a replacement comes only where its owner wants further completions.
    pub(crate) succeeded: bool,
    /// When the place is given up, epoch seconds.
    pub until: i64,
    /// Tells the places of one job apart.
    pub(crate) number: u32,
}

/// How the members of a gang ended or went since it was last whole: what decides how the gang itself ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Losses {
    /// The last disruption: when, and the reason of its DisruptionTarget condition.
    pub disrupted: Option<(i64, SharedStr)>,
    /// When a member was last deleted before it had ended.
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
