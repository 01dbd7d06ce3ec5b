//! Requests that the canonical jobspec can't express: parsing and representation.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::error::JobspecError;
use super::yaml::Value;

/// Parses resources that Fluxion does not support, for a matcher extension.
pub trait Reader {
    /// Parses the entries of `resources`; returns none if Fluxion supports all of them. `attributes` is the value of
    /// that key.
    fn read(&self, entries: &[Value], attributes: &Value) -> Option<Result<Extra, JobspecError>>;
}

/// A request in a format known only to its [`Reader`] and its matcher. Two are equal if they are copies of the same.
#[derive(Clone)]
pub struct Extra(Arc<dyn Any + Send + Sync>);

impl Extra {
    /// Wraps a request.
    pub fn new<T: Any + Send + Sync>(request: T) -> Self {
        Self(Arc::new(request))
    }

    /// The request, if it is of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl PartialEq for Extra {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Extra").finish_non_exhaustive()
    }
}
