//! Errors as they are answered: Kubernetes `Status` objects, each with a stable reason.
//!
//! What went wrong inside is logged, never told: a [`Refusal`] only carries texts written for the asker.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use fluxion_api::Status;

/// Why a request is not answered with what it asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{0}")]
    BadRequest(String),
    #[error("the bearer token from this server's server.json is required")]
    Unauthorized,
    /// As kube-apiserver says it.
    #[error("Unauthorized")]
    Unauthenticated,
    #[error("{0}")]
    Forbidden(String),
    /// Resource and name.
    #[error("{0} \"{1}\" not found")]
    NotFound(&'static str, String),
    #[error("the server could not find the requested resource; see /apis/{api} for the available resources", api = fluxion_api::API_VERSION)]
    NoSuchPath,
    /// The methods that are allowed, and what to do instead.
    #[error("{1}")]
    MethodNotAllowed(&'static str, String),
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    Expired(String),
    #[error("the request body is larger than 64 KiB")]
    TooLarge,
    #[error("the limit of {0} concurrent watches has been reached: close one, or try again later")]
    TooMany(usize),
    #[error("too many unknown tokens have been sent from this address: try again later")]
    TooManyTokens,
    #[error("the request timed out after {0} s: request less (limit=, a selector), or try again later")]
    Timeout(u64),
    #[error("{0}: try again in a moment")]
    Unavailable(&'static str),
    /// The cause is in the server's log.
    #[error("internal error; see the server's log for details")]
    Internal,
}

impl Refusal {
    /// The HTTP status and the reason word that go with it.
    pub fn code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::BadRequest(_) => (StatusCode::BAD_REQUEST, "BadRequest"),
            Self::Unauthorized | Self::Unauthenticated => (StatusCode::UNAUTHORIZED, "Unauthorized"),
            Self::Forbidden(_) => (StatusCode::FORBIDDEN, "Forbidden"),
            Self::NotFound(..) | Self::NoSuchPath => (StatusCode::NOT_FOUND, "NotFound"),
            Self::MethodNotAllowed(..) => (StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
            Self::Conflict(_) => (StatusCode::CONFLICT, "Conflict"),
            Self::Expired(_) => (StatusCode::GONE, "Expired"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
            Self::TooMany(_) | Self::TooManyTokens => (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"),
            Self::Timeout(_) => (StatusCode::GATEWAY_TIMEOUT, "Timeout"),
            Self::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
        }
    }

    /// The same as an object, as a watch sends it in an `ERROR` event.
    pub fn status(&self) -> Status {
        let (code, reason) = self.code();
        Status::failure(code.as_u16(), reason, self.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.code().0, Json(self.status())).into_response();
        let headers = response.headers_mut();
        match self {
            Self::Unauthorized | Self::Unauthenticated => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::MethodNotAllowed(allowed, _) => {
                headers.insert(header::ALLOW, HeaderValue::from_static(allowed));
            }
            Self::Unavailable(_) | Self::TooMany(_) | Self::TooManyTokens => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}
