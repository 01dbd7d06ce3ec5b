//! Responses: JSON with the snapshot that it was taken from.

use std::sync::Arc;

use axum::BoxError;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use fluxion_api::ListMeta;
use futures::{Stream, StreamExt as _};
use serde::Serialize;
use uuid::Uuid;

use super::refusal::Refusal;
use crate::engine::{Published, Role};
use crate::view::{text, words};

/// The snapshot that a response was taken from, and the server's role.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    pub version: u64,
    /// When the snapshot was last known to be current; epoch seconds.
    pub observed_at: i64,
    pub role: Role,
    /// A warning about the data besides its age.
    pub warning: Option<Arc<str>>,
}

impl Moment {
    pub(super) fn of(published: &Published) -> Self {
        let Published { sequence, observed_at, role, .. } = *published;
        Self { version: sequence, observed_at, role, warning: None }
    }

    pub(super) fn list_meta(&self) -> ListMeta {
        ListMeta {
            resource_version: self.version.to_string(),
            observed_at: text::time(self.observed_at),
            role: words::role(self.role),
            warning: self.warning.as_deref().map(str::to_owned),
            ..ListMeta::default()
        }
    }

    /// Sets the same information as headers, for responses without list metadata.
    fn mark(&self, response: &mut Response) {
        let mut set = |name: &'static str, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                response.headers_mut().insert(name, value);
            }
        };
        set("fluxion-resource-version", &self.version.to_string());
        set("fluxion-observed-at", &text::time(self.observed_at));
        set("fluxion-role", words::role(self.role).as_str());
        if let Some(warning) = &self.warning {
            set("warning", &format!("299 - {}", quoted(warning)));
        }
    }
}

/// A body that is put together while it is read. Compression may ask for more after the end, which not every stream allows.
pub(super) fn streamed<E: Into<BoxError>>(
    pieces: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
) -> Body {
    Body::from_stream(pieces.fuse())
}

/// A quoted string in HTTP (RFC 9110, 5.6.4): kubectl prints the text of such a header.
fn quoted(text: &str) -> String {
    let plain = text.chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' });
    let escaped: String =
        plain.flat_map(|c| matches!(c, '"' | '\\').then_some('\\').into_iter().chain([c])).collect();
    format!("\"{escaped}\"")
}

/// An object as JSON.
pub(super) fn json<T: Serialize>(object: &T, moment: &Moment) -> Response {
    typed(object, moment, "application/json")
}

/// The same with another content type.
pub(super) fn typed<T: Serialize>(object: &T, moment: &Moment, content_type: &'static str) -> Response {
    match serde_json::to_vec(object) {
        Ok(body) => text(body, moment, content_type),
        Err(error) => {
            // Our own types: only fails because of a bug.
            tracing::error!(%error, "failed to serialize a response");
            Refusal::Internal.into_response()
        }
    }
}

/// A response that is already serialized.
pub(super) fn text(body: impl IntoResponse, moment: &Moment, content_type: &'static str) -> Response {
    let mut response = body.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    moment.mark(&mut response);
    response
}

/// Names what an answer says: equal texts have equal tags, over restarts too.
#[derive(Clone, Debug)]
pub(super) struct Tag(String);

impl Tag {
    pub(super) fn of(text: &[u8]) -> Self {
        Self(Uuid::new_v5(&Uuid::NAMESPACE_OID, text).simple().to_string().to_uppercase())
    }

    /// 32 digits.
    pub(super) fn hash(&self) -> &str {
        &self.0
    }

    /// Whether a client has it already (`If-None-Match`; RFC 9110, section 13.1.2).
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let texts = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        texts
            .flat_map(|text| text.split(','))
            .map(str::trim)
            .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"') == self.0)
    }
}

/// An answer with an `ETag`, or 304 without a body where the client has it already.
pub(super) fn tagged(
    headers: &HeaderMap,
    tag: &Tag,
    body: impl IntoResponse,
    content_type: &'static str,
) -> Response {
    let mut response = if tag.is_known(headers) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let mut response = body.into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        response
    };
    if let Ok(value) = HeaderValue::from_str(&format!("\"{}\"", tag.0)) {
        response.headers_mut().insert(header::ETAG, value);
    }
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

/// Computes an answer where it holds up no other request.
pub(super) async fn computed(work: impl FnOnce() -> Response + Send + 'static) -> Result<Response, Refusal> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "failed to compute a response");
        Refusal::Internal
    })
}
