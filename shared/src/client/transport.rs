//! How a request reaches the server. The client doesn't know whether that is the inspector itself or a
//! kube-apiserver in front of it.

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

/// The methods that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
}

/// The head of an answer, its body still to be read.
pub struct Answer {
    pub status: u16,
    pub content_type: String,
    /// Seconds from the `Retry-After` header.
    pub retry_after: Option<u64>,
    pub body: BoxStream<'static, Result<Bytes, Error>>,
}

/// Something that carries requests to one server.
pub trait Transport: Send + Sync {
    /// Sends one request and waits for the head of the answer. It has no time limit of its own.
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, Error>>;

    /// What a person calls the server that is asked now: its URL, and how it was found if that isn't plain.
    fn server(&self) -> String;
}
