//! Requests that the canonical jobspec can't express: who reads them, and how they are handed on.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::error::JobspecError;
use super::yaml::Value;

/// Reads resources that Fluxion does not know, for a matcher that is plugged into the engine.
pub trait Reader {
    /// Reads the entries of `resources`; none when all of them are Fluxion's own. `attributes` is what stands under
    /// that key.
    fn read(&self, entries: &[Value], attributes: &Value) -> Option<Result<Extra, JobspecError>>;
}

/// A request in a form that only its [`Reader`] and its matcher know. Two are equal when they are copies of one.
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
