//! Input and output of an engine step.

use std::sync::Arc;

use crate::constraint::Labels;
use crate::constraint::volumes::{StorageKey, StorageObject};
use crate::inventory::NodeSpec;
use crate::model::{
    AllocationRecord, GroupSpec, ObjectRef, OwnerSpec, PodSpec, ReservationRecord, SharedStr,
};
use crate::record::{JournalEntry, Remembered};

/// An external event. Events about the same object have been coalesced: the latest state wins; an object that was
/// deleted and recreated counts as two, distinguished by UID.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Node(Box<NodeSpec>),
    /// By name.
    NodeGone(SharedStr),
    Pod(Box<PodSpec>),
    /// By UID.
    PodGone(SharedStr),
    Group(Box<GroupSpec>),
    GroupGone(SharedStr),
    Owner(Box<OwnerSpec>),
    OwnerGone(SharedStr),
    /// Owners of this kind, which is not built in, are observed from now on, or no longer. While they are, a Pod waits until
    /// its owner was observed.
    OwnersObserved {
        group: SharedStr,
        kind: SharedStr,
        observed: bool,
    },
    /// According to an Event in this namespace, Pods of the owner with this UID could not be created, at this time (epoch
    /// seconds). The API server does not check the UID: it counts only if the owner is in the same namespace.
    CreationFailed {
        namespace: SharedStr,
        owner: SharedStr,
        why: SharedStr,
        at: i64,
    },
    Namespace {
        name: SharedStr,
        labels: Labels,
    },
    /// By name.
    NamespaceGone(SharedStr),
    /// Every watch has synced: decisions may be made from now on. Sent again after leadership was lost and regained.
    Synced,
    /// Every watch has synced, but another inspector is the leader: nothing is decided until `Synced`.
    Paused,
    /// The outcome of [`Effect::Bind`].
    Bound {
        pod: SharedStr,
        outcome: BindOutcome,
    },
    /// An object that describes storage.
    Storage(Box<StorageObject>),
    /// It was deleted.
    StorageGone(StorageKey),
    /// The outcome of [`Effect::SelectNode`] or [`Effect::ReserveVolume`] for the claim or volume with this UID.
    StorageWritten {
        object: SharedStr,
        outcome: BindOutcome,
    },
    /// The outcome of [`Effect::Resume`] of the object with this UID.
    Resumed {
        object: SharedStr,
        outcome: BindOutcome,
    },
    /// A user cancelled the job with this UID ([`crate::state::JobKey::uid`]).
    Cancelled {
        job: SharedStr,
        by: SharedStr,
    },
    /// A user is deleting the objects of the job with this UID: it is recorded as cancelled, nothing is deleted.
    CancelStarted {
        job: SharedStr,
        by: SharedStr,
    },
    /// What this user was deleting could not be deleted: the record of [`Event::CancelStarted`] is withdrawn.
    CancelFailed {
        job: SharedStr,
        by: SharedStr,
    },
    /// An entry from the journal. Best sent before the first `Synced` or `Paused`; later, it is merged into what is known.
    Remembered(Box<Remembered>),
    /// Time has passed, or the pass has to continue.
    Tick,
}

/// Reason of the `DisruptionTarget` condition of a Pod that is released because its gang was only partially bound.
pub const LET_GO: &str = "FluxionGangReleased";

/// The outcome of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindOutcome {
    Done,
    /// The Pod was deleted, is being deleted, or is a different one of the same name: it will never be bound.
    Gone(SharedStr),
    /// It is already bound to this node.
    Elsewhere(SharedStr),
    /// Retry later: the server was unreachable or slow, or throttled the request.
    Transient(SharedStr),
    /// Permanently rejected by the server (forbidden, invalid).
    Refused(SharedStr),
}

/// An action to be carried out. `key()` is its idempotency key: repeating it is harmless.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Bind the Pod, or if the record has a pin: pin it to the node and remove our scheduling gate, in one write.
    Bind { pod: ObjectRef, node: SharedStr, record: AllocationRecord },
    /// Resume a Job that was suspended when it was created.
    Resume { object: ObjectRef },
    /// Ask for a volume of the claim for this node, selected at this time (epoch seconds).
    SelectNode { claim: ObjectRef, node: SharedStr, at: i64 },
    /// No longer ask for that, if this node is still selected.
    DeselectNode { claim: ObjectRef, node: SharedStr },
    /// Reserve the volume, which nobody has claimed at this version, for the claim.
    ReserveVolume { volume: ObjectRef, version: SharedStr, claim: ObjectRef },
    /// No longer reserve it, if it still is.
    FreeVolume { volume: ObjectRef, claim: ObjectRef },
    /// PodScheduled=False with this reason.
    Unscheduled { pod: ObjectRef, reason: &'static str, message: String },
    /// Store the reservation of the Pod's job in its status; none: remove it from there.
    Reserved { pod: ObjectRef, reservation: Option<Arc<ReservationRecord>> },
    /// The PodGroup's condition.
    GroupScheduled { group: ObjectRef, scheduled: bool, reason: &'static str, message: String },
    /// The status of a scheduling.x-k8s.io PodGroup.
    GroupStatus { group: ObjectRef, status: GroupStatus },
    /// A Kubernetes Event.
    Note { regarding: ObjectRef, warning: bool, reason: &'static str, action: &'static str, note: String },
    /// Mark the Pod as released ([`LET_GO`]) and evict it, so that its gang can be scheduled again.
    Evict { pod: ObjectRef, why: String },
    /// Delete an object of a cancelled job, with its UID as a precondition.
    Delete { object: ObjectRef, why: String },
    /// An entry for the journal, for the next engine.
    Journal(JournalEntry),
}

/// The state of a PodGroup, in scheduler-plugins' terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStatus {
    /// `Pending` (members are missing), `Scheduling`, `Scheduled`, `Running`, `Finished`, `Failed`.
    pub phase: &'static str,
    /// Number of bound members.
    pub scheduled: u32,
    pub running: u32,
    pub succeeded: u32,
    pub failed: u32,
    /// `NAMESPACE/NAME` of the members' owner.
    pub occupied_by: Option<String>,
}

impl Effect {
    /// Identifies the action; an effect replaces an earlier one with the same key.
    pub fn key(&self) -> String {
        match self {
            Self::Bind { pod, .. } => format!("bind/{}", pod.uid),
            Self::SelectNode { claim, .. } | Self::DeselectNode { claim, .. } => {
                format!("storage/{}", claim.uid)
            }
            Self::ReserveVolume { volume, .. } | Self::FreeVolume { volume, .. } => {
                format!("storage/{}", volume.uid)
            }
            Self::Resume { object } => format!("resume/{}", object.uid),
            Self::Unscheduled { pod, .. } => format!("unscheduled/{}", pod.uid),
            Self::Reserved { pod, .. } => format!("reserved/{}", pod.uid),
            Self::GroupScheduled { group, .. } | Self::GroupStatus { group, .. } => {
                format!("group/{}", group.uid)
            }
            Self::Note { regarding, reason, note, .. } => format!("note/{}/{reason}/{note}", regarding.uid),
            Self::Evict { pod, .. } => format!("evict/{}", pod.uid),
            Self::Delete { object, .. } => format!("delete/{}", object.uid),
            Self::Journal(entry) => format!("journal/{}", entry.key()),
        }
    }
}
