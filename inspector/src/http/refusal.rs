//! Error responses: Kubernetes `Status` objects, each with a stable reason.
//!
//! Internal causes are logged, never returned: a [`Refusal`] only contains messages intended for clients.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use fluxion_api::GROUP;
use fluxion_api::status::{Status, StatusCause, StatusDetails};

/// Why a request failed.
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
    /// The allowed methods, and what to do instead.
    #[error("{1}")]
    MethodNotAllowed(&'static str, String),
    /// What is offered.
    #[error("only the following media types are accepted: {0}")]
    NotAcceptable(&'static str),
    /// The query asks for what can't be put together.
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    Expired(String),
    /// Asked for, and the newest.
    #[error("Too large resource version: {0}, current: {1}")]
    TooNew(u64, u64),
    #[error("the request body is larger than 64 KiB")]
    TooLarge,
    /// Watches of one user, and in all.
    #[error(
        "the limit of {0} concurrent watches of one user, or of {1} in all, has been reached: close one, or try again later"
    )]
    TooMany(usize, usize),
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
    /// The HTTP status and the corresponding reason.
    pub fn code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::BadRequest(_) => (StatusCode::BAD_REQUEST, "BadRequest"),
            Self::Unauthorized | Self::Unauthenticated => (StatusCode::UNAUTHORIZED, "Unauthorized"),
            Self::Forbidden(_) => (StatusCode::FORBIDDEN, "Forbidden"),
            Self::NotFound(..) | Self::NoSuchPath => (StatusCode::NOT_FOUND, "NotFound"),
            Self::MethodNotAllowed(..) => (StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
            Self::NotAcceptable(_) => (StatusCode::NOT_ACCEPTABLE, "NotAcceptable"),
            Self::Invalid(_) => (StatusCode::UNPROCESSABLE_ENTITY, "Invalid"),
            Self::Conflict(_) => (StatusCode::CONFLICT, "Conflict"),
            Self::Expired(_) => (StatusCode::GONE, "Expired"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
            Self::TooMany(..) | Self::TooManyTokens => (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"),
            Self::Timeout(_) | Self::TooNew(..) => (StatusCode::GATEWAY_TIMEOUT, "Timeout"),
            Self::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
        }
    }

    /// The same as an object, as in the `ERROR` event of a watch.
    pub fn status(&self) -> Status {
        let (code, reason) = self.code();
        Status { details: self.details(), ..Status::failure(code.as_u16(), reason, self.to_string()) }
    }

    /// What it is about, as kube-apiserver says it, as far as the request plays no part.
    fn details(&self) -> Option<StatusDetails> {
        match self {
            Self::NotFound(resource, name) => Some(StatusDetails {
                name: name.clone(),
                group: GROUP.to_owned(),
                kind: (*resource).to_owned(),
                ..StatusDetails::default()
            }),
            // Only the parameters of a query are validated by their meaning.
            Self::Invalid(message) => {
                let (field, message) = message.split_once(": ").unwrap_or(("", message));
                let reason = if field.is_empty() { "" } else { "FieldValueInvalid" }.to_owned();
                let cause = StatusCause { reason, message: message.to_owned(), field: field.to_owned() };
                Some(StatusDetails {
                    group: "meta.k8s.io".to_owned(),
                    kind: "ListOptions".to_owned(),
                    causes: vec![cause],
                    ..StatusDetails::default()
                })
            }
            Self::TooNew(..) => {
                let cause = StatusCause {
                    reason: "ResourceVersionTooLarge".to_owned(),
                    message: "Too large resource version".to_owned(),
                    field: String::new(),
                };
                Some(StatusDetails {
                    causes: vec![cause],
                    retry_after_seconds: RETRY_AFTER,
                    ..StatusDetails::default()
                })
            }
            Self::TooMany(..) | Self::TooManyTokens | Self::Unavailable(_) | Self::Timeout(_) => {
                Some(StatusDetails { retry_after_seconds: RETRY_AFTER, ..StatusDetails::default() })
            }
            _ => None,
        }
    }
}

/// When to try again what failed for the moment (seconds).
const RETRY_AFTER: u32 = 1;

/// The status in a response, for those that complete it.
#[derive(Clone, Debug)]
pub(super) struct Told(pub(super) Box<Status>);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = (self.code().0, Json(&status)).into_response();
        response.extensions_mut().insert(Told(Box::new(status)));
        let headers = response.headers_mut();
        match self {
            Self::Unauthorized | Self::Unauthenticated => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::MethodNotAllowed(allowed, _) => {
                headers.insert(header::ALLOW, HeaderValue::from_static(allowed));
            }
            Self::Unavailable(_) | Self::TooMany(..) | Self::TooManyTokens | Self::TooNew(..) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}
