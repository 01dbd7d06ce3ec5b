//! The spec of a node.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::constraint::{NodeFacts, Taint};
use crate::resources::ResourceList;

/// A node as described by the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSpec {
    /// Its name.
    pub name: Arc<str>,
    /// Its UID; a node of the same name with another UID takes over the holders.
    pub uid: Arc<str>,
    /// Its labels.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Cordoned.
    pub unschedulable: bool,
    /// Condition Ready is True.
    pub ready: bool,
    /// It has a deletion timestamp.
    pub deleting: bool,
    /// Its resources when healthy.
    pub capacity: ResourceList,
    /// Its resources currently available to Pods.
    pub allocatable: ResourceList,
    /// Parts that could not be interpreted, and how they are treated.
    pub problems: Vec<Arc<str>>,
}

impl NodeSpec {
    pub(super) fn facts(&self, startup_taints: &Arc<[Arc<str>]>) -> NodeFacts {
        NodeFacts {
            name: self.name.clone(),
            labels: self.labels.clone(),
            taints: self.taints.clone(),
            unschedulable: self.unschedulable,
            ready: self.ready,
            deleting: self.deleting,
            startup_taints: startup_taints.clone(),
        }
    }
}
