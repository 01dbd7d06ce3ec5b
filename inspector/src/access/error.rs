//! Why a request goes no further.

/// Why a request goes no further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// Nobody is known to ask.
    #[error("Unauthorized")]
    Unauthenticated,
    /// Who asks may not; in kube-apiserver's words.
    #[error("{0}")]
    Forbidden(String),
    /// One address sends more unknown tokens than are looked at.
    #[error("too many tokens from this address: try again later")]
    TooManyReviews,
    /// The API server gives no answer.
    #[error("failed to check permissions with the API server")]
    Unavailable,
}
