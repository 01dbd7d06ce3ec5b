//! How requests are sent to the server, which is either the inspector itself or a kube-apiserver in front of it.

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use super::error::Error;

/// One request, relative to the server.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    /// Path with its query, starting with `/`.
    pub path: String,
    pub body: Vec<u8>,
}

/// HTTP methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
}

/// Status and headers of a response, with a body that has not been read yet.
pub struct Answer {
    pub status: u16,
    pub content_type: String,
    /// Seconds from the `Retry-After` header.
    pub retry_after: Option<u64>,
    pub body: BoxStream<'static, Result<Bytes, Error>>,
}

/// Sends requests to one server.
pub trait Transport: Send + Sync {
    /// Sends a request and waits for the response headers. Has no timeout of its own.
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, Error>>;

    /// Human-readable name of the current server: its URL, and the kubeconfig context if there is one.
    fn server(&self) -> String;
}
