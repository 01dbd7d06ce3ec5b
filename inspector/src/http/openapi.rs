//! `OpenAPI` v3: what `kubectl explain` and generators of clients read. The document is made once; it depends on nothing
//! but the types of the API.

mod paths;
mod schemas;

use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use fluxion_api::API_VERSION;
use serde_json::{Value, json};

use super::accept::Accept;
use super::answer::{self, Tag};
use super::query::Query;
use super::refusal::Refusal;

/// The document and its hash, by which clients know whether theirs is still the right one.
static DOCUMENT: LazyLock<(String, Tag)> = LazyLock::new(|| {
    let text = document().to_string();
    let tag = Tag::of(text.as_bytes());
    (text, tag)
});

fn document() -> Value {
    json!({
        "openapi": "3.0.0",
        "info": { "title": "Fluxion", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths::paths(),
        "components": { "schemas": schemas::schemas() },
    })
}

/// `/openapi/v3`: which documents there are.
pub(super) async fn root(accept: Accept, headers: HeaderMap) -> Result<Response, Refusal> {
    accept.json()?;
    let path = format!("apis/{API_VERSION}");
    let url = format!("/openapi/v3/{path}?hash={}", DOCUMENT.1.hash());
    let root = json!({ "paths": { path: { "serverRelativeURL": url } } }).to_string();
    let tag = Tag::of(root.as_bytes());
    Ok(answer::tagged(&headers, &tag, root, "application/json"))
}

/// `/openapi/v3/apis/GROUP/VERSION`.
pub(super) async fn group_version(
    accept: Accept,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    accept.json()?;
    let (text, tag) = &*DOCUMENT;
    let mut response = answer::tagged(&headers, tag, text.as_str(), "application/json").into_response();
    let caching = match query.get("hash") {
        // What has this hash never changes.
        Some(hash) if hash == tag.hash() => "public, max-age=31536000, immutable",
        _ => "no-cache, private",
    };
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_what_it_was() {
        insta::assert_json_snapshot!("openapi", document());
    }
}
