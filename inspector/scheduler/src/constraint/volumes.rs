//! Volumes, as plain types: what Pods mount, the objects that describe storage, and what follows for where a Pod may run.
//!
//! [`resolve`] applies the rules of kube-scheduler's filters `VolumeBinding`, `VolumeZone`, `VolumeRestrictions` and
//! `NodeVolumeLimits` to one Pod: [`VolumeRule`]s depend only on a node's labels, [`VolumeNeeds`] also on what else is
//! placed, which `placement` decides.

mod assign;
mod failures;
mod needs;
mod objects;
mod resolve;
mod rule;
mod tables;

pub use needs::VolumeNeeds;
pub use objects::{
    Attachment, Capacity, Claim, ClaimFailure, ClaimKey, ClaimUse, Disk, Driver, NodeDrivers,
    PersistentVolume, PodVolumes, StorageClass, StorageKey, StorageObject, VolumeClaimant,
};
pub use objects::{Provision, UnboundClaim, VolumeId};
pub use resolve::{Mounted, Resolved, resolve};
pub use rule::VolumeRule;
pub use tables::{Storage, StorageChange};

pub(crate) use assign::assign;
pub(crate) use needs::accessible;

#[cfg(test)]
mod tests;
