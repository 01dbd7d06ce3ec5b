//! What the members of an attempt ask for, and those that are gone.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::PodSpec;
use crate::resources::ResourceList;

/// A member that was on a node and whose Pod is gone.
#[derive(Clone, Debug)]
pub(crate) struct Gone {
    pub(crate) pod: Arc<PodSpec>,
    /// When it ended, or went (epoch seconds).
    pub(crate) at: i64,
}

/// Members that ask for the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub needs: Arc<ResourceList>,
    pub count: u32,
}
