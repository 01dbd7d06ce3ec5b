//! Nodes that cannot run a member of a job, and why.

use std::fmt::Write as _;

use fluxion_text::quantity::Amount;
use serde::{Deserialize, Serialize};

use super::names::JobNames;
use crate::words::NodeReasonClass;

/// Nodes that cannot run a member, for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NodesLeftOut {
    pub count: u32,
    pub class: NodeReasonClass,
    /// The result of [`text`](Self::text), without the number: `had no nvidia.com/gpu`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The insufficient resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Amount requested by one member, as a Kubernetes quantity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
    /// Largest amount on any of these nodes: available or when empty, depending on the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<String>,
    /// The taint (`KEY=VALUE:EFFECT`), the node selector pair (`KEY=VALUE`), the node affinity terms, the host port
    /// (`8080/TCP`) or the topology key, depending on the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Jobs the nodes are reserved for.
    #[serde(skip_serializing_if = "is_nobody")]
    pub jobs: JobNames,
    /// Earliest planned end of this condition on any of the nodes (RFC 3339, UTC); absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Whether `until` is assumed, because the jobs using the nodes have no time limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub until_assumed: bool,
    /// Number of these nodes without a planned end.
    #[serde(skip_serializing_if = "is_zero")]
    pub without_end: u32,
}

fn is_nobody(jobs: &JobNames) -> bool {
    *jobs == JobNames::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl NodesLeftOut {
    /// The reason, to follow the number of nodes: `had insufficient cpu`. The server's text if the class is unknown.
    pub fn text(&self) -> String {
        let were = if self.count == 1 { "was" } else { "were" };
        let resource = self.resource.as_deref().unwrap_or_default();
        let value = self.value.as_deref().unwrap_or_default();
        match &self.class {
            NodeReasonClass::Deleting => format!("{were} being deleted"),
            NodeReasonClass::NodeSelector => format!("didn't match node selector {value}"),
            NodeReasonClass::NodeAffinity => format!("didn't match node affinity ({value})"),
            NodeReasonClass::Taint => format!("had untolerated taint {{{value}}}"),
            NodeReasonClass::NotReady => format!("{were} not ready"),
            NodeReasonClass::SchedulingDisabled => format!("{were} cordoned"),
            NodeReasonClass::BindingRefused => "recently rejected a binding or a volume".to_owned(),
            NodeReasonClass::Missing if resource == "pods" => "had no allocatable pods".to_owned(),
            NodeReasonClass::Missing => format!("had no {resource}"),
            NodeReasonClass::TooSmall => {
                let (requested, largest) = self.amounts();
                format!("had too little {resource} ({requested} requested, at most {largest} per node)")
            }
            NodeReasonClass::NotAllocatable => {
                let (requested, largest) = self.amounts();
                format!("had at most {largest} {resource} even when empty ({requested} requested)")
            }
            NodeReasonClass::Insufficient => format!("had insufficient {resource}"),
            NodeReasonClass::HostPort => format!("had host port {value} in use"),
            NodeReasonClass::Reserved => format!("{were} reserved for {}", self.jobs.text()),
            NodeReasonClass::PodAffinity => "didn't match pod affinity rules".to_owned(),
            NodeReasonClass::PodAntiAffinity => "didn't match pod anti-affinity rules".to_owned(),
            NodeReasonClass::ExistingPodAntiAffinity => {
                "didn't satisfy existing pods' anti-affinity rules".to_owned()
            }
            NodeReasonClass::TopologyLabel => format!("didn't have topology label {value}"),
            NodeReasonClass::TopologySpread => {
                format!("didn't match pod topology spread constraints ({value})")
            }
            NodeReasonClass::VolumeAffinity => "didn't match PersistentVolume's node affinity".to_owned(),
            NodeReasonClass::VolumeZone => "had no available volume zone".to_owned(),
            NodeReasonClass::VolumeNode => {
                format!("couldn't use a volume that is being provisioned for node {value}")
            }
            NodeReasonClass::VolumeTopology => {
                "didn't match the StorageClass's allowed topologies".to_owned()
            }
            NodeReasonClass::ClaimInUse => {
                format!("{were} excluded because ReadWriteOncePod claim {value} is in use")
            }
            NodeReasonClass::DiskInUse => "had the disk in use by another pod".to_owned(),
            NodeReasonClass::VolumeDriver => format!("didn't have the CSI driver {value} installed"),
            NodeReasonClass::VolumeLimit => format!("would exceed the maximum volume count of {value}"),
            NodeReasonClass::NoVolume => {
                format!("didn't find available persistent volumes to bind (storage class {value})")
            }
            NodeReasonClass::NoStorage => {
                format!("did not have enough free storage (storage class {value})")
            }
            NodeReasonClass::Unknown(_) => self.reason.clone(),
        }
    }

    /// [`text`](Self::text) with available amounts and end times; `time` formats RFC 3339 times.
    pub fn detail(&self, time: &dyn Fn(&str) -> String) -> String {
        let mut line = self.text();
        if self.class == NodeReasonClass::Insufficient && self.requested.is_some() {
            let (requested, largest) = self.amounts();
            _ = write!(line, " ({requested} requested, at most {largest} available)");
        }
        if let Some(until) = &self.until {
            let first = if self.count > 1 { "the earliest until" } else { "until" };
            let assumed = if self.until_assumed { " (assumed)" } else { "" };
            _ = write!(line, ", {first} {}{assumed}", time(until));
        }
        match self.without_end {
            0 => {}
            endless if endless == self.count => line += ", without a planned end",
            endless => _ = write!(line, ", {endless} of them without a planned end"),
        }
        line
    }

    fn amounts(&self) -> (String, String) {
        let given = |amount: &Option<String>| amount.clone().unwrap_or_default();
        compared(self.resource.as_deref().unwrap_or_default(), &given(&self.requested), &given(&self.largest))
    }
}

/// Formats two quantities for comparison; see [`Amount::compared`].
pub(super) fn compared(resource: &str, one: &str, other: &str) -> (String, String) {
    match (one.parse::<Amount>(), other.parse()) {
        (Ok(one), Ok(other)) => one.compared(other, resource),
        _ => (one.to_owned(), other.to_owned()),
    }
}
