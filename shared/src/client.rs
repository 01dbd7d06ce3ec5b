//! API client for the inspector, either directly or through a kube-apiserver.
//!
//! It handles paths, pagination, timeouts and errors, but neither output nor server discovery.

mod direct;
mod error;
mod follow;
mod lines;
mod path;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::cancel::CancelAnswer;
use crate::explain::FluxionExplanation;
use crate::graph::{FluxionAudit, FluxionGraph, FluxionTimeline};
use crate::job::FluxionJob;
use crate::meta::{List, ListMeta, ObjectMeta, WatchEvent};
use crate::node::FluxionNode;
use crate::queue::FluxionQueue;
use crate::status::Status;

pub use direct::Direct;
pub use error::Error;
pub use follow::{Change, follow};
pub use transport::{Answer, Call, Method, Transport};

/// Objects per page of a list.
const PAGE: usize = 500;
/// Maximum number of objects in a list; guards against endless pagination.
const MAX_ITEMS: usize = 2_000_000;
/// Maximum size of a response in bytes; the largest legitimate one is the graph of a very large cluster.
const MAX_BODY: usize = 1 << 30;
/// Maximum size of a watch event in bytes.
const MAX_EVENT: usize = 16 << 20;

/// A kind of object that can be listed and watched.
pub trait Resource: DeserializeOwned + Send + 'static {
    /// Plural resource name, as in the path.
    const PLURAL: &'static str;
    /// Metadata of the object.
    fn metadata(&self) -> &ObjectMeta;
}

macro_rules! resource {
    ($kind:ty, $plural:literal) => {
        impl Resource for $kind {
            const PLURAL: &'static str = $plural;
            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }
        }
    };
}

resource!(FluxionJob, "fluxionjobs");
resource!(FluxionNode, "fluxionnodes");
resource!(FluxionQueue, "fluxionqueues");

/// Selects objects of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// `None` for all namespaces or for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// Label selector, as in kubectl's `-l`; empty selects all.
    pub labels: String,
    /// Field selector, as in kubectl's `--field-selector`; empty selects all.
    pub fields: String,
}

/// How to cancel a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// Only report what would be deleted.
    DryRun,
    /// Cancel the job; rejected if Pods of other jobs would also be deleted.
    Job,
    /// Cancel the job even if Pods of other jobs are also deleted.
    WithOthers,
}

/// A client for one server. Clones share the connection.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    limit: Duration,
}

impl Client {
    /// Creates a client that uses `transport`; `limit` is the timeout of a request (for a watch, until it starts).
    pub fn new(transport: impl Transport + 'static, limit: Duration) -> Self {
        Self { transport: Arc::new(transport), limit }
    }

    /// Human-readable name of the current server.
    pub fn server(&self) -> String {
        self.transport.server()
    }

    /// Timeout of a single request.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Lists all objects of a kind, page by page. The metadata is that of the first page.
    pub async fn list<T: Resource>(&self, selection: &Selection) -> Result<List<T>, Error> {
        let mut attempts = 0;
        loop {
            match self.list_once(selection).await {
                // The snapshot that the pages were cut from is gone: begin again.
                Err(Error::Expired { .. }) if attempts < 3 => attempts += 1,
                other => return other,
            }
        }
    }

    async fn list_once<T: Resource>(&self, selection: &Selection) -> Result<List<T>, Error> {
        let mut whole: Option<List<T>> = None;
        let mut next = String::new();
        loop {
            let mut path = selected::<T>(selection);
            path::push_query(&mut path, "limit", &PAGE.to_string());
            if !next.is_empty() {
                path::push_query(&mut path, "continue", &next);
            }
            let page: List<T> = self.get(path).await?;
            let before = std::mem::replace(&mut next, page.metadata.continue_.clone());
            let list = match &mut whole {
                None => whole.insert(page),
                Some(list) => {
                    list.items.extend(page.items);
                    list
                }
            };
            if next.is_empty() {
                list.metadata.continue_ = String::new();
                list.metadata.remaining_item_count = None;
                break;
            }
            if next == before || list.items.len() > MAX_ITEMS {
                return Err(Error::Foreign {
                    server: self.server(),
                    why: format!("its list of {} never ends", T::PLURAL),
                });
            }
        }
        whole.ok_or_else(|| self.foreign("its list has no pages"))
    }

    /// Gets the metadata of a list without its objects: the snapshot and the role of the server.
    pub async fn list_head<T: Resource>(&self, namespace: &str) -> Result<ListMeta, Error> {
        let mut path = path::object(Some(namespace), T::PLURAL, None);
        path::push_query(&mut path, "limit", "1");
        let list: List<T> = self.get(path).await?;
        Ok(list.metadata)
    }

    /// Gets one object by its `metadata.name`.
    pub async fn object<T: Resource>(&self, namespace: Option<&str>, name: &str) -> Result<T, Error> {
        self.get(path::object(namespace, T::PLURAL, Some(name))).await
    }

    /// Watches for changes after `resource_version`. Ends when the server ends the watch or the connection is lost;
    /// an `ERROR` event becomes an error.
    pub async fn watch<T: Resource>(
        &self,
        selection: &Selection,
        resource_version: &str,
    ) -> Result<impl Stream<Item = Result<WatchEvent<T>, Error>> + Send + use<T>, Error> {
        let mut path = selected::<T>(selection);
        path::push_query(&mut path, "watch", "true");
        path::push_query(&mut path, "allowWatchBookmarks", "true");
        path::push_query(&mut path, "resourceVersion", resource_version);
        let server = self.server();
        let call = Call { method: Method::Get, path, body: Vec::new() };
        let answer = self
            .within(async {
                let answer = self.transport.send(call).await?;
                if (200..300).contains(&answer.status) { Ok(answer) } else { Err(self.refusal(answer).await) }
            })
            .await??;
        let lines = lines::lines(answer.body, server.clone(), MAX_EVENT);
        Ok(lines.map(move |line| event(&line?, &server)))
    }

    /// Explains why a job is in its current state.
    pub async fn explain(&self, namespace: &str, name: &str) -> Result<FluxionExplanation, Error> {
        let path = path::object(Some(namespace), FluxionJob::PLURAL, Some(name)) + "/explain";
        self.get(path).await
    }

    /// Cancels a job, or reports what that would delete.
    pub async fn cancel(&self, job: &FluxionJob, how: Cancel) -> Result<CancelAnswer, Error> {
        let ObjectMeta { namespace, name, uid, .. } = &job.metadata;
        let namespace = namespace.as_deref().unwrap_or_default();
        let mut path = path::object(Some(namespace), FluxionJob::PLURAL, Some(name)) + "/cancel";
        let body = if uid.is_empty() { json!({}) } else { json!({"preconditions": {"uid": uid}}) };
        match how {
            Cancel::DryRun => path::push_query(&mut path, "dryRun", "All"),
            Cancel::Job => {}
            Cancel::WithOthers => path::push_query(&mut path, "alsoDelete", "true"),
        }
        self.ask(Call { method: Method::Post, path, body: body.to_string().into_bytes() }).await
    }

    /// Gets the resource graph, with or without the JGF document.
    pub async fn graph(&self, summary_only: bool) -> Result<FluxionGraph, Error> {
        let mut path = path::object(None, "fluxiongraphs", Some("live"));
        if summary_only {
            path::push_query(&mut path, "summary", "true");
        }
        self.get(path).await
    }

    /// Gets allocations and reservations over time.
    pub async fn timeline(&self) -> Result<FluxionTimeline, Error> {
        self.get(path::object(None, "fluxiontimelines", Some("live"))).await
    }

    /// Gets the problems found by the audit.
    pub async fn audit(&self) -> Result<FluxionAudit, Error> {
        self.get(path::object(None, "fluxionaudits", Some("live"))).await
    }

    /// Gets the server version.
    pub async fn version(&self) -> Result<serde_json::Value, Error> {
        self.get("/version".to_owned()).await
    }

    async fn get<T: DeserializeOwned>(&self, path: String) -> Result<T, Error> {
        self.ask(Call { method: Method::Get, path, body: Vec::new() }).await
    }

    async fn ask<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        self.within(async {
            let answer = self.transport.send(call).await?;
            if !(200..300).contains(&answer.status) {
                return Err(self.refusal(answer).await);
            }
            let content_type = answer.content_type.clone();
            let body = self.read(answer, MAX_BODY).await?;
            serde_json::from_slice(&body).map_err(|error| {
                self.foreign(&if content_type.contains("json") {
                    format!("its response cannot be parsed ({error})")
                } else {
                    format!("it responds with '{content_type}' instead of JSON")
                })
            })
        })
        .await?
    }

    /// Runs `work` with the request timeout.
    async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        tokio::time::timeout(self.limit, work)
            .await
            .map_err(|_| Error::TimedOut { server: self.server(), limit: self.limit })
    }

    async fn refusal(&self, answer: Answer) -> Error {
        let (code, retry_after) = (answer.status, answer.retry_after);
        match self.read(answer, 1 << 20).await {
            Ok(body) => Error::from_answer(&self.server(), code, retry_after, &body),
            Err(error) => error,
        }
    }

    async fn read(&self, mut answer: Answer, limit: usize) -> Result<Bytes, Error> {
        let mut body = BytesMut::new();
        while let Some(chunk) = answer.body.next().await {
            let chunk = chunk?;
            if body.len() + chunk.len() > limit {
                return Err(Error::TooLarge { server: self.server(), limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }

    fn foreign(&self, why: &str) -> Error {
        Error::Foreign { server: self.server(), why: why.to_owned() }
    }
}

fn selected<T: Resource>(selection: &Selection) -> String {
    let mut path = path::object(selection.namespace.as_deref(), T::PLURAL, None);
    for (key, value) in [("labelSelector", &selection.labels), ("fieldSelector", &selection.fields)] {
        if !value.is_empty() {
            path::push_query(&mut path, key, value);
        }
    }
    path
}

fn event<T: Resource>(line: &[u8], server: &str) -> Result<WatchEvent<T>, Error> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "type")]
        type_: String,
    }
    let unreadable = |error: serde_json::Error| Error::Foreign {
        server: server.to_owned(),
        why: format!("its watch events cannot be parsed ({error})"),
    };
    let head: Head = serde_json::from_slice(line).map_err(unreadable)?;
    if head.type_ == "ERROR" {
        let failure: WatchEvent<Status> = serde_json::from_slice(line).map_err(unreadable)?;
        let body = serde_json::to_vec(&failure.object).map_err(unreadable)?;
        return Err(Error::from_answer(server, failure.object.code, None, &body));
    }
    serde_json::from_slice(line).map_err(unreadable)
}

/// An empty list.
impl<T> Default for List<T> {
    fn default() -> Self {
        Self {
            api_version: crate::names::API_VERSION.to_owned(),
            kind: "List".to_owned(),
            metadata: ListMeta::default(),
            items: Vec::new(),
        }
    }
}
