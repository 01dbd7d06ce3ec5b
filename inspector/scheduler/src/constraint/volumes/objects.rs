//! The objects of the Kubernetes API that describe storage, reduced to what decides where a Pod may run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::constraint::{Expression, Labels, Term};

/// Namespace and name of a `PersistentVolumeClaim`.
pub type ClaimKey = (Arc<str>, Arc<str>);

/// A claim that a Pod mounts, in its namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimUse {
    /// The claim's name.
    pub name: Arc<str>,
    /// Of a generic ephemeral volume: created for the Pod, which owns it.
    pub ephemeral: bool,
}

/// A disk in a Pod's own specification (`gcePersistentDisk`, `awsElasticBlockStore`, `iscsi`, `rbd`) that Pods on one
/// node can't share, or only if all of them mount it read-only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Disk {
    /// Identifies the disk, including its kind.
    pub id: Arc<str>,
    /// It may be shared with others that say the same.
    pub read_only: bool,
}

impl Disk {
    /// Whether two Pods on one node can't mount these.
    pub fn clashes(&self, other: &Self) -> bool {
        self.id == other.id && !(self.read_only && other.read_only)
    }
}

/// The volumes of a Pod, as far as they matter for where it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodVolumes {
    /// Claims without duplicates, in order of the Pod's volumes.
    pub claims: Vec<ClaimUse>,
    /// Disks.
    pub disks: Vec<Disk>,
}

/// A `PersistentVolumeClaim`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent of each other")]
pub struct Claim {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Arc<str>,
    /// Storage class; empty for none.
    pub class: Arc<str>,
    /// Requested size in bytes, rounded up; none if it requests none.
    pub size: Option<u64>,
    /// `ReadWriteOnce` and so on.
    pub modes: BTreeSet<Arc<str>>,
    /// `volumeMode: Block`.
    pub block: bool,
    /// `volumeAttributesClassName`; empty for none.
    pub attributes_class: Arc<str>,
    /// Labels of the volume, if restricted.
    pub selector: Option<Vec<Expression>>,
    /// `spec.volumeName`.
    pub volume: Option<Arc<str>>,
    /// Bound completely: annotation `pv.kubernetes.io/bind-completed`.
    pub complete: bool,
    /// Phase Lost: its volume does not exist any more.
    pub lost: bool,
    /// Has a deletionTimestamp.
    pub deleting: bool,
    /// UID of its controller.
    pub controller: Option<Arc<str>>,
    /// Annotation `volume.kubernetes.io/selected-node`: its volume is to be provisioned for this node.
    pub selected: Option<Arc<str>>,
    /// When we selected that node (epoch seconds); none if it was somebody else.
    pub selected_at: Option<i64>,
}

impl Claim {
    /// Its namespace and name.
    pub fn key(&self) -> ClaimKey {
        (self.namespace.clone(), self.name.clone())
    }

    /// The volume to which it is bound, if that is complete.
    pub fn bound(&self) -> Option<&Arc<str>> {
        self.volume.as_ref().filter(|_| self.complete)
    }

    /// Access mode `ReadWriteOncePod`: only one Pod may use it.
    pub fn exclusive(&self) -> bool {
        self.modes.contains("ReadWriteOncePod")
    }
}

/// The claim for which a volume is reserved (`claimRef`).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct VolumeClaimant {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its UID; empty if any claim of that name will do.
    pub uid: Arc<str>,
}

impl VolumeClaimant {
    /// Whether it is this claim.
    pub fn is(&self, claim: &Claim) -> bool {
        self.namespace == claim.namespace
            && self.name == claim.name
            && (self.uid.is_empty() || self.uid == claim.uid)
    }
}

/// A `PersistentVolume`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersistentVolume {
    /// Its name.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Arc<str>,
    /// `resourceVersion` of one that nobody claims, so that a claim is not lost; else empty.
    pub version: Arc<str>,
    /// Storage class; empty for none.
    pub class: Arc<str>,
    /// Capacity in bytes.
    pub size: u64,
    /// `ReadWriteOnce` and so on.
    pub modes: BTreeSet<Arc<str>>,
    /// `volumeMode: Block`.
    pub block: bool,
    /// `volumeAttributesClassName`; empty for none.
    pub attributes_class: Arc<str>,
    /// Its labels.
    pub labels: Arc<Labels>,
    /// Who has it.
    pub claimant: Option<VolumeClaimant>,
    /// Phase Available.
    pub available: bool,
    /// Has a deletionTimestamp.
    pub deleting: bool,
    /// Nodes from which it is accessible, one term must match; none: all.
    pub affinity: Option<Arc<[Term]>>,
    /// CSI driver and volume handle.
    pub csi: Option<(Arc<str>, Arc<str>)>,
}

/// A `StorageClass`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageClass {
    /// Its name.
    pub name: Arc<str>,
    /// Its provisioner.
    pub provisioner: Arc<str>,
    /// `volumeBindingMode: WaitForFirstConsumer`.
    pub waits: bool,
    /// `allowedTopologies`, one of which must match; empty: anywhere.
    pub topologies: Arc<[Term]>,
}

impl StorageClass {
    /// Whether volumes can be created on demand.
    pub fn provisions(&self) -> bool {
        !matches!(&*self.provisioner, "" | "kubernetes.io/no-provisioner")
    }
}

/// A `CSIDriver`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    /// Its name.
    pub name: Arc<str>,
    /// It publishes the capacity of its storage (`storageCapacity`).
    pub tracks_capacity: bool,
    /// Pods with its volumes only run on nodes where it is installed (`preventPodSchedulingIfMissing`).
    pub must_be_installed: bool,
}

/// CSI drivers on a node (`CSINode`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeDrivers {
    /// The node's name.
    pub node: Arc<str>,
    /// The drivers that are installed.
    pub installed: BTreeSet<Arc<str>>,
    /// Maximum number of volumes by driver (`allocatable.count`).
    pub limits: BTreeMap<Arc<str>, u32>,
    /// Keys of the node's labels that tell where it is, by driver (`topologyKeys`).
    pub topology: BTreeMap<Arc<str>, Arc<[Arc<str>]>>,
}

/// How much a storage class can provide in one place (`CSIStorageCapacity`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Storage class.
    pub class: Arc<str>,
    /// Largest volume in bytes: `maximumVolumeSize`, or else `capacity`; none if there is no room.
    pub largest: Option<u64>,
    /// Labels of the nodes with access; none: no nodes.
    pub nodes: Option<Vec<Expression>>,
}

/// A volume that is attached to a node (`VolumeAttachment`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// Its name.
    pub name: Arc<str>,
    /// The node's name.
    pub node: Arc<str>,
    /// Name of the `PersistentVolume`.
    pub volume: Arc<str>,
}

/// Why a provisioner could not create a volume: the latest Event about a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimFailure {
    /// UID of the Event.
    pub uid: Arc<str>,
    /// Namespace of the Event, which counts only for a claim in it.
    pub namespace: Arc<str>,
    /// UID of the claim, as the Event says: the API server does not check it.
    pub claim: Arc<str>,
    /// The message.
    pub message: Arc<str>,
}

/// An object that describes storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageObject {
    /// A `PersistentVolumeClaim`.
    Claim(Claim),
    /// A `PersistentVolume`.
    Volume(PersistentVolume),
    /// A `StorageClass`.
    Class(StorageClass),
    /// A `CSIDriver`.
    Driver(Driver),
    /// A `CSINode`.
    Node(NodeDrivers),
    /// A `CSIStorageCapacity`.
    Capacity(Capacity),
    /// A `VolumeAttachment`.
    Attachment(Attachment),
    /// An Event about a claim.
    Failure(ClaimFailure),
}

/// Identifies such an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StorageKey {
    /// By namespace and name.
    Claim(ClaimKey),
    /// By name.
    Volume(Arc<str>),
    /// By name.
    Class(Arc<str>),
    /// By name.
    Driver(Arc<str>),
    /// By the node's name.
    Node(Arc<str>),
    /// By namespace and name.
    Capacity((Arc<str>, Arc<str>)),
    /// By name.
    Attachment(Arc<str>),
    /// By UID of the Event.
    Failure(Arc<str>),
}

impl StorageObject {
    /// Its identity.
    pub fn key(&self) -> StorageKey {
        match self {
            Self::Claim(claim) => StorageKey::Claim(claim.key()),
            Self::Volume(volume) => StorageKey::Volume(volume.name.clone()),
            Self::Class(class) => StorageKey::Class(class.name.clone()),
            Self::Driver(driver) => StorageKey::Driver(driver.name.clone()),
            Self::Node(drivers) => StorageKey::Node(drivers.node.clone()),
            Self::Capacity(one) => StorageKey::Capacity((one.namespace.clone(), one.name.clone())),
            Self::Attachment(one) => StorageKey::Attachment(one.name.clone()),
            Self::Failure(failure) => StorageKey::Failure(failure.uid.clone()),
        }
    }
}

/// CSI driver and handle of a volume.
pub type VolumeId = (Arc<str>, Arc<str>);

/// A claim that waits for its first consumer: which volumes it can get, and where one can be created for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnboundClaim {
    /// Size in bytes; 0 for none.
    pub size: u64,
    /// Storage class.
    pub class: Arc<str>,
    /// Access modes that the volume must have.
    pub modes: BTreeSet<Arc<str>>,
    /// `volumeMode: Block`.
    pub block: bool,
    /// `volumeAttributesClassName`; empty for none.
    pub attributes_class: Arc<str>,
    /// Labels of the volume.
    pub selector: Option<Vec<Expression>>,
    /// Whether existing volumes may be used: not once a node was selected for provisioning.
    pub existing: bool,
    /// The volume that is reserved for this claim.
    pub reserved: Option<Arc<str>>,
    /// Its key, if other Pods mount it too: it gets one volume for all of them.
    pub shared: Option<ClaimKey>,
    /// How a volume can be created; none if it can't.
    pub provision: Option<Provision>,
}

/// Where a volume can be created.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Provision {
    /// The class's `allowedTopologies`; empty: anywhere.
    pub topologies: Arc<[Term]>,
    /// Only where the driver has published enough capacity.
    pub tracked: bool,
}
