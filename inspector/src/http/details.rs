//! `details` of errors: the resource and the object that a refused request is about.

use axum::Json;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use fluxion_api::status::StatusDetails;

use super::refusal::Told;
use crate::access::attributes::{Attributes, What};

/// Reasons of errors that are about the object of the request; others say themselves what they are about.
const ABOUT_THE_OBJECT: [&str; 3] = ["Forbidden", "Conflict", "MethodNotAllowed"];

/// Adds them to an error that has none.
pub(super) async fn add(request: Request, next: Next) -> Response {
    let asked = Attributes::of(request.method(), request.uri());
    let mut response = next.run(request).await;
    let Some(Told(mut status)) = response.extensions_mut().remove::<Told>() else { return response };
    let Some(What::Resource { group, resource, name, .. }) = asked.map(|asked| asked.what) else {
        return response;
    };
    if status.details.is_some() || !ABOUT_THE_OBJECT.contains(&status.reason.as_str()) {
        return response;
    }
    status.details = Some(StatusDetails { name, group, kind: resource, ..StatusDetails::default() });
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    let (_, body) = Json(status).into_response().into_parts();
    Response::from_parts(parts, body)
}
