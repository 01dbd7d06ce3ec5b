//! The words that programs match on: where a job stands, why, and which role a server has.
//!
//! On the wire they are strings. A newer server may say one that is not known here: it is kept, shown and written
//! again as it came.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An enum whose variants are words on the wire, with [`Unknown`](JobState::Unknown) for all others.
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
            /// All that are known, in their order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word on the wire.
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

        /// As their words are, so that maps stand on the wire in the order of their keys.
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
    /// Where a job stands: those that hold nodes first, then those that wait, then those that have ended.
    JobState {
        Running = "Running",
        /// Some of its members have a node.
        Binding = "Binding",
        /// Its owner is suspended: it holds nothing, and starts anew when that is resumed.
        Suspended = "Suspended",
        /// All its Pods are terminating and still hold what they hold.
        Releasing = "Releasing",
        /// Pending, with a planned start and nodes.
        Reserved = "Reserved",
        Pending = "Pending",
        /// Fewer members are there than are wanted.
        Gathering = "Gathering",
        /// Can never run on this cluster, or as it is written.
        Unsatisfiable = "Unsatisfiable",
        Completed = "Completed",
        Failed = "Failed",
        Cancelled = "Cancelled",
    }
}

impl JobState {
    /// Nothing will change any more.
    pub fn is_ended(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// It is in a queue and waits for its start; one that is suspended is not.
    pub fn is_queued(&self) -> bool {
        matches!(self, Self::Gathering | Self::Pending | Self::Reserved | Self::Unsatisfiable)
    }

    /// It has left the queue, and holds nodes.
    pub fn holds_nodes(&self) -> bool {
        matches!(self, Self::Binding | Self::Running | Self::Releasing)
    }
}

words! {
    /// What a server is among its likes.
    Role {
        /// It decides and binds.
        Leader = "leader",
        /// It sees everything and waits for the Lease.
        Follower = "follower",
        /// There is no cluster: it holds the jobs itself.
        Standalone = "standalone",
    }
}

words! {
    /// The published classes of reasons.
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
        /// Ended: a time limit ended it.
        DeadlineExceeded = "DeadlineExceeded",
        /// Ended: a container failed.
        PodFailed = "PodFailed",
        /// Ended: evicted or preempted.
        Disrupted = "Disrupted",
        /// Ended: its user deleted it.
        Cancelled = "Cancelled",
    }
}

words! {
    /// Why nodes take no member of a job.
    NodeReasonClass {
        /// The node is being deleted.
        Deleting = "Deleting",
        NodeSelector = "NodeSelector",
        NodeAffinity = "NodeAffinity",
        /// A taint is not tolerated.
        Taint = "Taint",
        NotReady = "NotReady",
        /// The node is cordoned.
        SchedulingDisabled = "SchedulingDisabled",
        /// The API server refused bindings to the node.
        BindingRefused = "BindingRefused",
        /// The node has none of the resource.
        Missing = "Missing",
        /// The node has less of the resource than is requested, even when empty.
        TooSmall = "TooSmall",
        /// The node lets Pods have less of the resource than is requested, even when empty.
        NotAllocatable = "NotAllocatable",
        /// Others use too much of the resource.
        Insufficient = "Insufficient",
        /// A host port is in use.
        HostPort = "HostPort",
        /// Room is reserved for other jobs.
        Reserved = "Reserved",
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
