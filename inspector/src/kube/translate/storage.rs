//! Storage: claims, volumes, storage classes, and what CSI drivers report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fluxion_scheduler::constraint::volumes::{
    Attachment, Capacity, Claim, ClaimFailure, Driver, NodeDrivers, PersistentVolume, StorageClass,
    StorageObject, VolumeClaimant,
};
use fluxion_scheduler::constraint::{Expression, Operator, Term};
use fluxion_scheduler::marks::SELECTED_AT;
use fluxion_scheduler::model::SharedStr;
use fluxion_text::quantity::Amount;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::storage::v1 as storage;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::{Meta, Unreadable, affinity, labels};

/// The former place of the storage class of claims and volumes, which still takes precedence.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
pub(in crate::kube) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Maximum length of a message that is kept, in characters.
const MESSAGE_MAX: usize = 1024;
const NANOS_PER_UNIT: i128 = 1_000_000_000;

type Quantities = BTreeMap<String, Quantity>;

/// Converts a `PersistentVolumeClaim`.
pub fn claim(object: &core::PersistentVolumeClaim) -> Result<StorageObject, Unreadable> {
    let meta = Meta::read(&object.metadata)?;
    let nothing = core::PersistentVolumeClaimSpec::default();
    let spec = object.spec.as_ref().unwrap_or(&nothing);
    let size = spec.resources.as_ref().and_then(|resources| storage_of(resources.requests.as_ref()));
    let selected = annotation(&object.metadata, SELECTED_NODE).filter(|node| !node.is_empty());
    let selected_at = annotation(&object.metadata, SELECTED_AT).and_then(|at| at.parse().ok());
    Ok(StorageObject::Claim(Claim {
        namespace: meta.namespace,
        name: meta.name,
        uid: meta.uid,
        class: class(&object.metadata, spec.storage_class_name.as_deref()),
        // Without a valid size, nothing is large enough.
        size: size.map(|amount| amount.and_then(Amount::units).unwrap_or(u64::MAX)),
        modes: modes(spec.access_modes.as_ref()),
        block: spec.volume_mode.as_deref() == Some("Block"),
        attributes_class: spec.volume_attributes_class_name.as_deref().unwrap_or_default().into(),
        selector: spec.selector.as_ref().map(expressions),
        volume: spec.volume_name.as_deref().filter(|name| !name.is_empty()).map(SharedStr::from),
        complete: annotation(&object.metadata, BIND_COMPLETED).is_some(),
        lost: object.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Lost"),
        deleting: meta.deleting,
        controller: meta.controller.map(|controller| controller.uid),
        selected_at: selected_at.filter(|_| selected.is_some()),
        selected: selected.map(SharedStr::from),
    }))
}

/// Converts a `PersistentVolume`.
pub fn volume(object: &core::PersistentVolume) -> Result<StorageObject, Unreadable> {
    let meta = Meta::read(&object.metadata)?;
    let nothing = core::PersistentVolumeSpec::default();
    let spec = object.spec.as_ref().unwrap_or(&nothing);
    let claimant = spec.claim_ref.as_ref().map(|claim| {
        let text = |value: &Option<String>| SharedStr::from(value.as_deref().unwrap_or_default());
        VolumeClaimant { namespace: text(&claim.namespace), name: text(&claim.name), uid: text(&claim.uid) }
    });
    let version = object.metadata.resource_version.as_deref().filter(|_| claimant.is_none());
    let required = spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    // Rounded down: a larger claim would not fit.
    let size = storage_of(spec.capacity.as_ref()).flatten();
    let size = size.and_then(|amount| u64::try_from(amount.nanos().div_euclid(NANOS_PER_UNIT)).ok());
    let csi = spec.csi.as_ref().filter(|csi| !csi.driver.is_empty() && !csi.volume_handle.is_empty());
    Ok(StorageObject::Volume(PersistentVolume {
        name: meta.name,
        uid: meta.uid,
        version: version.unwrap_or_default().into(),
        class: class(&object.metadata, spec.storage_class_name.as_deref()),
        size: size.unwrap_or(0),
        modes: modes(spec.access_modes.as_ref()),
        block: spec.volume_mode.as_deref() == Some("Block"),
        attributes_class: spec.volume_attributes_class_name.as_deref().unwrap_or_default().into(),
        labels: Arc::new(labels(object.metadata.labels.as_ref())),
        claimant,
        available: object.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Available"),
        deleting: meta.deleting,
        affinity: required.map(|selector| affinity::terms(selector).into()),
        csi: csi.map(|csi| (csi.driver.as_str().into(), csi.volume_handle.as_str().into())),
    }))
}

/// Converts a `StorageClass`.
pub fn storage_class(object: &storage::StorageClass) -> Result<StorageObject, Unreadable> {
    let meta = Meta::read(&object.metadata)?;
    let topologies = object.allowed_topologies.iter().flatten().map(|term| {
        let one = |requirement: &core::TopologySelectorLabelRequirement| Expression {
            key: requirement.key.as_str().into(),
            operator: Operator::In,
            values: requirement.values.iter().map(|value| value.as_str().into()).collect(),
        };
        Term { labels: term.match_label_expressions.iter().flatten().map(one).collect(), fields: Vec::new() }
    });
    Ok(StorageObject::Class(StorageClass {
        name: meta.name,
        provisioner: object.provisioner.as_str().into(),
        waits: object.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"),
        topologies: topologies.collect(),
    }))
}

/// Converts a `CSIDriver`.
pub fn driver(object: &storage::CSIDriver) -> Result<StorageObject, Unreadable> {
    let meta = Meta::read(&object.metadata)?;
    Ok(StorageObject::Driver(Driver {
        name: meta.name,
        tracks_capacity: object.spec.storage_capacity == Some(true),
        must_be_installed: object.spec.prevent_pod_scheduling_if_missing == Some(true),
    }))
}

/// Converts a `CSINode`.
pub fn node(object: &storage::CSINode) -> Result<StorageObject, Unreadable> {
    let meta = Meta::read(&object.metadata)?;
    let mut drivers = NodeDrivers { node: meta.name, ..NodeDrivers::default() };
    for driver in &object.spec.drivers {
        let name = SharedStr::from(driver.name.as_str());
        drivers.installed.insert(name.clone());
        if let Some(count) = driver.allocatable.as_ref().and_then(|allocatable| allocatable.count) {
            drivers.limits.insert(name.clone(), u32::try_from(count).unwrap_or(0));
        }
        if let Some(keys) = driver.topology_keys.as_ref().filter(|keys| !keys.is_empty()) {
            drivers.topology.insert(name, keys.iter().map(|key| key.as_str().into()).collect());
        }
    }
    Ok(StorageObject::Node(drivers))
}

/// Converts a `CSIStorageCapacity`.
pub fn capacity(object: &storage::CSIStorageCapacity) -> Result<StorageObject, Unreadable> {
    let meta = Meta::read(&object.metadata)?;
    let largest = object.maximum_volume_size.as_ref().or(object.capacity.as_ref());
    // The largest whole number of bytes.
    let bytes = |amount: Amount| u64::try_from(amount.nanos().div_euclid(NANOS_PER_UNIT)).ok();
    Ok(StorageObject::Capacity(Capacity {
        namespace: meta.namespace,
        name: meta.name,
        class: object.storage_class_name.as_str().into(),
        largest: largest.and_then(|quantity| quantity.0.parse::<Amount>().ok()).and_then(bytes),
        nodes: object.node_topology.as_ref().map(expressions),
    }))
}

/// Converts a `VolumeAttachment`.
pub fn attachment(object: &storage::VolumeAttachment) -> Result<StorageObject, Unreadable> {
    let meta = Meta::read(&object.metadata)?;
    Ok(StorageObject::Attachment(Attachment {
        name: meta.name,
        node: object.spec.node_name.as_str().into(),
        volume: object.spec.source.persistent_volume_name.as_deref().unwrap_or_default().into(),
    }))
}

/// Converts an Event about a claim.
pub fn failure(object: &core::Event) -> Result<StorageObject, Unreadable> {
    let meta = Meta::read(&object.metadata)?;
    let message = object.message.as_deref().unwrap_or_default();
    Ok(StorageObject::Failure(ClaimFailure {
        uid: meta.uid,
        namespace: meta.namespace,
        claim: object.involved_object.uid.as_deref().unwrap_or_default().into(),
        message: fluxion_text::shorten(message, MESSAGE_MAX).as_ref().into(),
    }))
}

fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

fn class(meta: &ObjectMeta, named: Option<&str>) -> SharedStr {
    annotation(meta, OLD_CLASS).or(named).unwrap_or_default().into()
}

fn modes(modes: Option<&Vec<String>>) -> BTreeSet<SharedStr> {
    modes.into_iter().flatten().map(|mode| mode.as_str().into()).collect()
}

/// The amount of storage; `Some(None)` if it is invalid.
fn storage_of(list: Option<&Quantities>) -> Option<Option<Amount>> {
    list?.get("storage").map(|quantity| quantity.0.parse().ok())
}

/// All have to match; what can't be interpreted matches nothing.
fn expressions(selector: &LabelSelector) -> Vec<Expression> {
    let pairs = selector.match_labels.iter().flatten().map(|(key, value)| Expression {
        key: key.as_str().into(),
        operator: Operator::In,
        values: vec![value.as_str().into()],
    });
    let others = selector.match_expressions.iter().flatten().map(|one| {
        let values = || one.values.iter().flatten().map(|value| value.as_str().into()).collect();
        let (operator, values) = match one.operator.as_str() {
            "In" => (Operator::In, values()),
            "NotIn" => (Operator::NotIn, values()),
            "Exists" => (Operator::Exists, Vec::new()),
            "DoesNotExist" => (Operator::DoesNotExist, Vec::new()),
            _ => (Operator::In, Vec::new()),
        };
        Expression { key: one.key.as_str().into(), operator, values }
    });
    pairs.chain(others).collect()
}

#[cfg(test)]
mod tests;
