//! Enumerated values of the API: job states, reason classes and server roles.
//!
//! On the wire they are strings. Values of newer servers that are unknown to this version are preserved unchanged.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Defines an enum whose variants are strings on the wire, with [`Unknown`](JobState::Unknown) for all others.
macro_rules! words {
    (
        $(#[$about:meta])*
        $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name {
            $(
                $(#[$doc])*
                #[cfg_attr(feature = "schema", schemars(rename = $word))]
                $variant,
            )+
            /// What only a newer server knows; as long as nothing was said, the empty word.
            #[cfg_attr(feature = "schema", schemars(skip))]
            Unknown(String),
        }

        impl $name {
            /// All known values, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The value on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Unknown(word) => word,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Unknown(String::new())
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    other => Self::Unknown(other.to_owned()),
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $($word => Self::$variant,)+
                    _ => Self::Unknown(word),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        /// Ordered by wire value, so that maps are serialized in the order of their keys.
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                self.as_str().cmp(other.as_str())
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }
    };
}

words! {
    /// State of a job: first the states that hold nodes, then the waiting states, then the final states.
    JobState {
        Running = "Running",
        /// Some members are bound to a node.
        Binding = "Binding",
        /// Its owner is suspended: the job holds no resources and starts again when resumed.
        Suspended = "Suspended",
        /// All Pods are terminating and still hold their resources.
        Releasing = "Releasing",
        /// Pending, with a planned start and reserved nodes.
        Reserved = "Reserved",
        Pending = "Pending",
        /// Waiting for members to be created.
        Gathering = "Gathering",
        /// Can never run on this cluster, or is invalid.
        Unsatisfiable = "Unsatisfiable",
        Completed = "Completed",
        Failed = "Failed",
        Cancelled = "Cancelled",
    }
}

impl JobState {
    /// Whether the job has finished.
    pub fn is_ended(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Whether the job is queued and waiting to start; suspended jobs are not queued.
    pub fn is_queued(&self) -> bool {
        matches!(self, Self::Gathering | Self::Pending | Self::Reserved | Self::Unsatisfiable)
    }

    /// Whether the job has left the queue and holds nodes.
    pub fn holds_nodes(&self) -> bool {
        matches!(self, Self::Binding | Self::Running | Self::Releasing)
    }
}

words! {
    /// Role of a server among its replicas.
    Role {
        /// Schedules and binds.
        Leader = "leader",
        /// Watches the cluster and waits to acquire the Lease.
        Follower = "follower",
        /// Runs without a cluster and manages the jobs itself.
        Standalone = "standalone",
    }
}

words! {
    /// Classes of reasons.
    ReasonClass {
        Gathering = "Gathering",
        GroupNotFound = "GroupNotFound",
        SizesDisagree = "SizesDisagree",
        InvalidRequest = "InvalidRequest",
        QueueOrder = "QueueOrder",
        Reserved = "Reserved",
        Busy = "Busy",
        ConstraintNotMet = "ConstraintNotMet",
        NodesDown = "NodesDown",
        Unsatisfiable = "Unsatisfiable",
        UnsupportedConstraint = "UnsupportedConstraint",
        Gated = "Gated",
        Held = "Held",
        BindFailed = "BindFailed",
        DeadlineBeforeStart = "DeadlineBeforeStart",
        /// Finished: a time limit was exceeded.
        DeadlineExceeded = "DeadlineExceeded",
        /// Finished: a container failed.
        PodFailed = "PodFailed",
        /// Finished: evicted or preempted.
        Disrupted = "Disrupted",
        /// Finished: deleted by its user.
        Cancelled = "Cancelled",
    }
}

words! {
    /// Why nodes cannot run a member of a job.
    NodeReasonClass {
        /// The node is being deleted.
        Deleting = "Deleting",
        NodeSelector = "NodeSelector",
        NodeAffinity = "NodeAffinity",
        /// The node has an untolerated taint.
        Taint = "Taint",
        NotReady = "NotReady",
        /// The node is cordoned.
        SchedulingDisabled = "SchedulingDisabled",
        /// The API server rejected bindings to the node.
        BindingRefused = "BindingRefused",
        /// The node does not have the resource.
        Missing = "Missing",
        /// The node's capacity is less than requested.
        TooSmall = "TooSmall",
        /// The node's allocatable amount is less than requested.
        NotAllocatable = "NotAllocatable",
        /// Too much of the resource is in use.
        Insufficient = "Insufficient",
        /// A host port is in use.
        HostPort = "HostPort",
        /// Resources are reserved for other jobs.
        Reserved = "Reserved",
        /// No Pod matches the required podAffinity.
        PodAffinity = "PodAffinity",
        /// A Pod matches the required podAntiAffinity.
        PodAntiAffinity = "PodAntiAffinity",
        /// The required podAntiAffinity of an existing Pod matches.
        ExistingPodAntiAffinity = "ExistingPodAntiAffinity",
        /// The node has no label with the required topology key.
        TopologyLabel = "TopologyLabel",
        /// A topology spread constraint is not met.
        TopologySpread = "TopologySpread",
        /// A `PersistentVolume` is not accessible from the node.
        VolumeAffinity = "VolumeAffinity",
        /// A `PersistentVolume` is in another zone or region.
        VolumeZone = "VolumeZone",
        /// A volume is being provisioned for another node.
        VolumeNode = "VolumeNode",
        /// The `StorageClass` does not allow volumes for the node.
        VolumeTopology = "VolumeTopology",
        /// A `ReadWriteOncePod` claim is used by another Pod.
        ClaimInUse = "ClaimInUse",
        /// A disk is used by another Pod on the node.
        DiskInUse = "DiskInUse",
        /// The CSI driver is not installed on the node.
        VolumeDriver = "VolumeDriver",
        /// The node can't have more volumes of the CSI driver.
        VolumeLimit = "VolumeLimit",
        /// No available `PersistentVolume` matches, and none can be provisioned for the node.
        NoVolume = "NoVolume",
        /// There is not enough free storage for a volume.
        NoStorage = "NoStorage",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::de::DeserializeOwned;
    use serde_json::{from_str, to_string};

    use super::*;

    fn survives<T: Serialize + DeserializeOwned + PartialEq + fmt::Debug + fmt::Display>(known: &[T]) {
        for word in known {
            let written = to_string(word).unwrap();
            assert_eq!(written, format!("\"{word}\""));
            assert_eq!(from_str::<T>(&written).unwrap(), *word);
            assert!(!format!("{word:?}").starts_with("Unknown"), "{word:?}");
        }
        for new in ["\"Preempting\"", "\"\"", "\"running \""] {
            let read: T = from_str(new).unwrap();
            assert_eq!(
                (to_string(&read).unwrap(), &format!("\"{read}\"")),
                (new.to_owned(), &new.to_owned())
            );
            assert!(format!("{read:?}").starts_with("Unknown"), "{read:?}");
        }
    }

    #[test]
    fn words_are_read_and_written_as_they_are() {
        survives(JobState::ALL);
        survives(Role::ALL);
        survives(ReasonClass::ALL);
        assert_eq!((JobState::default().as_str(), Role::from("leader")), ("", Role::Leader));
    }

    #[test]
    fn a_state_is_of_one_kind_at_most() {
        for state in JobState::ALL {
            let kinds = [state.is_ended(), state.is_queued(), state.holds_nodes()];
            let expected = usize::from(*state != JobState::Suspended);
            assert_eq!(kinds.into_iter().filter(|is| *is).count(), expected, "{state}");
        }
        let new = JobState::from("Preempting");
        assert!(!new.is_ended() && !new.is_queued() && !new.holds_nodes());
    }

    #[test]
    fn a_map_by_state_is_in_the_order_of_its_words() {
        let map: BTreeMap<JobState, u32> = JobState::ALL.iter().cloned().zip(0..).collect();
        let words: BTreeMap<&str, u32> = JobState::ALL.iter().map(JobState::as_str).zip(0..).collect();
        let written = to_string(&map).unwrap();
        assert_eq!(written, to_string(&words).unwrap());
        assert_eq!(from_str::<BTreeMap<JobState, u32>>(&written).unwrap(), map);
    }
}
