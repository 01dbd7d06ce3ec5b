//! A node as it was last told.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::constraint::{NodeFacts, Taint};
use crate::resources::ResourceList;

/// A node as the cluster describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSpec {
    /// Its name.
    pub name: Arc<str>,
    /// Its uid; a node of the same name and another uid takes over the books.
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
    /// What it has when everything is healthy.
    pub capacity: ResourceList,
    /// What Pods can have of it now.
    pub allocatable: ResourceList,
    /// What of it could not be understood, and what that is taken for.
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
