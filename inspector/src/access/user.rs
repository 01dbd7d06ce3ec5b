//! A user as Kubernetes' authenticators describe one.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A user. Everything but the name may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct User {
    pub name: Arc<str>,
    pub uid: String,
    pub groups: Vec<String>,
    /// Keys in lower case.
    pub extra: BTreeMap<String, Vec<String>>,
}
