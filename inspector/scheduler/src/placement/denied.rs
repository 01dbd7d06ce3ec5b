//! Why constraints between Pods, or volumes, keep a slot away from a node.

use std::sync::Arc;

/// Why a slot must not be on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denied {
    /// Its required affinity finds no Pod in the node's domains.
    Affinity,
    /// Its required anti-affinity finds one.
    AntiAffinity,
    /// The required anti-affinity of a Pod in one of the node's domains.
    OthersAntiAffinity,
    /// The node has no value of this topology key.
    NoDomain(Arc<str>),
    /// There would be too many of these Pods in the node's domain of this topology key.
    Spread(Arc<str>),
    /// Another Pod uses this claim, which is for one at a time.
    ClaimInUse(Arc<str>),
    /// A Pod on the node uses a disk that can't be shared.
    Disk,
    /// This CSI driver is not installed on the node.
    NoDriver(Arc<str>),
    /// There would be too many volumes of this CSI driver on the node.
    VolumeLimit(Arc<str>),
    /// No free volume of this class is accessible from the node, and none can be created for it.
    NoVolume(Arc<str>),
    /// The storage of this class has not enough room for another volume.
    NoStorage(Arc<str>),
}
