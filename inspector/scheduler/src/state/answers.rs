//! Answers to questions.

use crate::model::ObjectRef;
use crate::resources::ResourceList;

/// What has to go so that a job ends and stays ended.
#[derive(Clone, Debug, PartialEq)]
pub struct CancelPlan {
    /// The topmost controller below a `CronJob`, or the Pods themselves.
    pub targets: Vec<ObjectRef>,
    /// `pod/NAME` of Pods of the targets that belong to other jobs.
    pub also_deletes: Vec<String>,
    /// What the job holds.
    pub frees: ResourceList,
    /// How many Pods go.
    pub pods: u32,
    /// All of the Pod is being deleted already.
    pub ending: bool,
}

/// Something that is off.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// `Overcommitted`, `PartlyBound`, `BindingRefused`, `NotEvicted`, `RefusesBindings`, `RejectedByKubelet`, `LostMember`,
    /// `Preempted`, `NotUnderstood`, `Invariant`.
    pub class: &'static str,
    /// `node/NAME` or `NAMESPACE/KIND/NAME`.
    pub object: String,
    /// What, and what to do.
    pub text: String,
}
