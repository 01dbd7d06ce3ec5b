//! Authentication: a layer in front of all controllers, so that another method only needs to replace this file.
//! Controllers only see the [`Asker`] that it adds to the request.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use subtle::ConstantTimeEq;

use super::app::App;
use super::audit_log::AskedBy;
use super::connection;
use super::refusal::Refusal;
use super::standing::Standing;
use crate::view::Viewer;

/// The authenticated user, and what may be shown to it.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    /// For logs and "cancelled by".
    pub name: Arc<str>,
    pub viewer: Viewer,
    /// Looked at again while an answer lasts; absent where nothing can change.
    pub standing: Option<Arc<Standing>>,
}

/// Authenticates the bearer of the token as administrator.
pub(super) async fn bearer(
    State(app): State<App>,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    if !holds_token(request.headers(), &app.settings.token) {
        return Err(Refusal::Unauthorized);
    }
    connection::prove(&request);
    let asker = Asker { name: Arc::from("administrator"), viewer: Viewer::everything(), standing: None };
    let by = AskedBy(Arc::clone(&asker.name));
    request.extensions_mut().insert(asker);
    let mut response = next.run(request).await;
    response.extensions_mut().insert(by);
    Ok(response)
}

fn holds_token(headers: &HeaderMap, token: &str) -> bool {
    let Some(value) = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let Some((scheme, given)) = value.split_once(' ') else { return false };
    scheme.eq_ignore_ascii_case("bearer")
        && !token.is_empty()
        && bool::from(given.trim().as_bytes().ct_eq(token.as_bytes()))
}

/// Rejects requests from web pages whose host name resolves to this machine (DNS rebinding).
pub(super) async fn own_host(request: Request, next: Next) -> Result<Response, Refusal> {
    let named = request
        .headers()
        .get(header::HOST)
        .and_then(|value| value.to_str().ok())
        .or_else(|| request.uri().authority().map(axum::http::uri::Authority::as_str));
    if named.is_some_and(is_loopback) {
        Ok(next.run(request).await)
    } else {
        Err(Refusal::Forbidden(
            "this server only accepts requests to localhost, 127.0.0.1 or [::1]".to_owned(),
        ))
    }
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_are_this_machine() {
        for good in ["localhost", "LOCALHOST:80", "127.0.0.1:6411", "127.1.2.3", "[::1]:80", "[::1]"] {
            assert!(is_loopback(good), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "10.0.0.1",
            "[",
            "[::2]:1",
            "::1",
        ] {
            assert!(!is_loopback(bad), "{bad}");
        }
    }

    #[test]
    fn only_the_whole_token_opens() {
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            headers
        };
        assert!(holds_token(&with("Bearer secret"), "secret"));
        assert!(holds_token(&with("bearer secret"), "secret"));
        for bad in ["Bearer secre", "Bearer secrets", "Bearer ", "Basic secret", "secret"] {
            assert!(!holds_token(&with(bad), "secret"), "{bad}");
        }
        assert!(!holds_token(&HeaderMap::new(), "secret"));
        assert!(!holds_token(&with("Bearer "), ""));
    }
}
