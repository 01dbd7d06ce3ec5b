//! Results of queries.

use crate::model::ObjectRef;
use crate::resources::ResourceList;

/// What has to be deleted to end a job permanently.
#[derive(Clone, Debug, PartialEq)]
pub struct CancelPlan {
    /// The topmost controller below a `CronJob`, or the Pods themselves.
    pub targets: Vec<ObjectRef>,
    /// `pod/NAME` of Pods of the targets that belong to other jobs.
    pub also_deletes: Vec<String>,
    /// Resources held by the job.
    pub frees: ResourceList,
    /// Number of Pods deleted.
    pub pods: u32,
    /// Everything is already being deleted.
    pub ending: bool,
}

/// The classes of [`Finding`]s.
pub const FINDING_CLASSES: [&str; 10] = [
    "Overcommitted",
    "PartlyBound",
    "BindingRefused",
    "NotEvicted",
    "RefusesBindings",
    "RejectedByKubelet",
    "LostMember",
    "Preempted",
    "NotUnderstood",
    "Invariant",
];

/// A problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// One of [`FINDING_CLASSES`].
    pub class: &'static str,
    /// `node/NAME` or `NAMESPACE/KIND/NAME`.
    pub object: String,
    /// The problem, and what to do.
    pub text: String,
}
