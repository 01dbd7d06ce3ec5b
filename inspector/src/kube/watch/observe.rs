//! Observes the HTTP traffic of one kind's requests: kube's watcher does not expose bookmarks, renewals and the ends
//! of watches, which distinguish an idle watch from a broken one.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use http::Request;
use http_body::{Frame, SizeHint};
use kube::Client;
use kube::client::Body;
use tower::service_fn;

use crate::health::Watched;

/// Start of an event that contains no information about objects.
const ERROR: &[u8] = b"{\"type\":\"ERROR\"";

/// The same client, with its lists and watches reported to `watched`.
pub(super) fn observed(client: &Client, watched: &Arc<Watched>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let (client, watched) = (client.clone(), Arc::clone(watched));
    let service = service_fn(move |request: Request<Body>| {
        let (client, watched) = (client.clone(), Arc::clone(&watched));
        async move {
            let query = request.uri().query().unwrap_or_default();
            let watch = query.split('&').any(|pair| pair == "watch=true");
            let response = client.send(request).await?;
            let granted = response.status().is_success();
            if granted && watch {
                watched.stands();
            }
            let watched = granted.then_some(watched);
            Ok::<_, kube::Error>(response.map(|body| Seen { body: Box::pin(body), watched }))
        }
    });
    Client::new(service, namespace)
}

/// A response body; each chunk, and its end, is reported.
struct Seen {
    body: Pin<Box<Body>>,
    watched: Option<Arc<Watched>>,
}

impl http_body::Body for Seen {
    type Data = Bytes;
    type Error = <Body as http_body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(self.body.as_mut().poll_frame(context));
        let good = match &frame {
            Some(Ok(frame)) => frame.data_ref().is_none_or(|data| !data.starts_with(ERROR)),
            Some(Err(_)) => false,
            None => true,
        };
        if let Some(watched) = self.watched.as_ref().filter(|_| good) {
            watched.heard();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
