//! The names in a path.

use axum::extract::{FromRequestParts, Path, rejection::PathRejection};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::refusal::Refusal;

/// The decoded names in a path. They are only used for lookups, so any text is accepted.
#[derive(Clone, Debug)]
pub(super) struct Names<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Names<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(names)) => Ok(Self(names)),
            Err(PathRejection::FailedToDeserializePathParams(_)) => {
                Err(Refusal::BadRequest("the path contains a name that is not valid UTF-8".to_owned()))
            }
            Err(error) => {
                tracing::error!(%error, "bug: the parameters of a route don't match its path");
                Err(Refusal::Internal)
            }
        }
    }
}
