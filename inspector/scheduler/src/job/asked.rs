//! Requests of the members of an attempt, and deleted members.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::PodSpec;
use crate::resources::ResourceList;

/// A member that was bound and whose Pod was deleted.
#[derive(Clone, Debug)]
pub(crate) struct Gone {
    pub(crate) pod: Arc<PodSpec>,
    /// When it finished or was deleted (epoch seconds).
    pub(crate) at: i64,
}

/// Members with the same requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub needs: Arc<ResourceList>,
    pub count: u32,
}
