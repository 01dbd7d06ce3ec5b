//! Who is asking over the secure port, and whether they may: every request is authorised before a controller sees it.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::audit_log::AskedBy;
use super::auth::Asker;
use super::connection;
use super::refusal::Refusal;
use super::standing::{Standing, viewer};
use crate::access::attributes::Attributes;
use crate::access::peer::Peer;
use crate::access::user::User;
use crate::access::{Access, Credential};
use crate::view::Viewer;

/// Lets those through who may do what they ask for.
pub(super) async fn authorised(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let Some(peer) = request.extensions().get::<Peer>().cloned() else {
        tracing::error!("a request over the secure port came without its connection");
        return Err(Refusal::Internal);
    };
    let (user, credential) = access.identify(&peer, request.headers()).await?;
    let by = AskedBy(Arc::clone(&user.name));
    let mut response = allowed(access, peer, (user, credential), request, next).await.into_response();
    response.extensions_mut().insert(by);
    Ok(response)
}

/// The answer, if this user may have it.
async fn allowed(
    access: Arc<Access>,
    peer: Peer,
    (user, credential): (User, Credential),
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    strip(request.headers_mut());
    let attributes = Attributes::of(request.method(), request.uri())
        .ok_or_else(|| Refusal::BadRequest("the path contains a name that is not valid UTF-8".to_owned()))?;
    let viewer = if attributes.is_discovery() {
        Viewer::namespaces([])
    } else {
        access.authorise(&user, &attributes).await?;
        // Every Pod of the cluster has a token: only a right tells who is welcome.
        connection::prove(&request);
        viewer(&access, &user, &attributes).await?
    };
    let name = Arc::clone(&user.name);
    let standing = Standing { access, peer, user, credential, attributes, viewer: viewer.clone() };
    request.extensions_mut().insert(Asker { name, viewer, standing: Some(Arc::new(standing)) });
    Ok(next.run(request).await)
}

/// Takes out what said who asks: nobody behind this is to look at it.
fn strip(headers: &mut HeaderMap) {
    headers.remove(header::AUTHORIZATION);
    let remote: Vec<_> =
        headers.keys().filter(|name| name.as_str().starts_with("x-remote-")).cloned().collect();
    for name in remote {
        headers.remove(name);
    }
}
