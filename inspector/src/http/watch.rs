//! Watches: one JSON event a line, for as long as the client reads.
//!
//! A watch is pulled by its connection. Between two pulls it holds its place (a version) and nothing else, so
//! a client that reads slowly gets the latest state of what changed instead of every step, one that falls
//! behind the log gets an `ERROR` event with code 410, and neither slows down anyone else. Who stops reading
//! altogether is dropped by the connection ([`super::listen`]).

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use fluxion_api::API_VERSION;
use futures::stream;
use serde::Serialize;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use super::app::App;
use super::auth::Asker;
use super::filter::Filter;
use super::index::{Indexed, Served};
use super::refusal::Refusal;
use super::resource::Key;
use super::standing::Standing;
use super::table::{RowChange, Table};
use crate::view::{Viewer, Visible};

/// At most so many events are written at once.
const CHUNK: usize = 128;
/// At most so many objects are looked at without a break.
const LOOK: usize = 512;
/// Changes are looked at no more often than this.
const PACE: Duration = Duration::from_millis(50);
/// A bookmark at least this often, so that a client can tell an idle watch from a dead one.
const BOOKMARK: Duration = Duration::from_secs(10);
/// So many looks at a client's right to watch may fail in a row because nobody can be asked.
const UNANSWERED: u32 = 10;

/// Marks an answer that is written bit by bit: it must not be held back by compression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streamed;

/// What a watch starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Everything there is, as `ADDED`.
    Everything,
    /// What changed after this version.
    After(u64),
}

/// How a watch was asked for.
#[derive(Clone, Debug)]
pub(super) struct WatchOptions {
    pub start: Start,
    /// Say with a bookmark when the initial events are through.
    pub mark_initial: bool,
    pub bookmarks: bool,
    /// End it then.
    pub ends: Option<Instant>,
}

/// What is still to be written of one look at the state.
struct Pending<R: Indexed> {
    served: Arc<Served>,
    events: VecDeque<Pick<R>>,
}

/// What is written when its turn comes.
enum Pick<R: Indexed> {
    /// It was there when the watch began.
    There(Key),
    /// The first and the latest change that this client has not seen yet.
    Changed(Arc<RowChange<R>>, Arc<RowChange<R>>),
    InitialEnd,
}

struct Watch<R: Indexed> {
    app: App,
    changes: watch::Receiver<u64>,
    viewer: Viewer,
    filter: Filter<R>,
    options: WatchOptions,
    pending: Option<Pending<R>>,
    bookmark_at: Instant,
    standing: Option<Arc<Standing>>,
    recheck_at: Option<Instant>,
    unanswered: u32,
    done: bool,
    _permit: OwnedSemaphorePermit,
}

/// Answers a watch.
pub(super) fn respond<R: Indexed>(
    app: App,
    asker: Asker,
    filter: Filter<R>,
    options: WatchOptions,
    permit: OwnedSemaphorePermit,
) -> Response {
    let changes = app.engine.changed();
    let bookmark_at = Instant::now() + BOOKMARK;
    let watch = Watch {
        app,
        changes,
        viewer: asker.viewer,
        filter,
        options,
        pending: None,
        bookmark_at,
        recheck_at: asker.standing.as_ref().map(|standing| Instant::now() + standing.every()),
        standing: asker.standing,
        unanswered: 0,
        done: false,
        _permit: permit,
    };
    let body = Body::from_stream(stream::unfold(watch, |mut watch| async {
        let chunk = watch.pull().await?;
        Some((Ok::<_, Infallible>(chunk), watch))
    }));
    let mut response = ([(header::CONTENT_TYPE, "application/json")], body).into_response();
    response.extensions_mut().insert(Streamed);
    response
}

impl<R: Indexed> Watch<R> {
    /// The next lines; `None` at the end.
    async fn pull(&mut self) -> Option<Bytes> {
        loop {
            if self.done || self.options.ends.is_some_and(|ends| ends <= Instant::now()) {
                return None;
            }
            if let Err(refusal) = self.recheck().await {
                self.done = true;
                return Some(line("ERROR", &refusal.status()));
            }
            if let Some(lines) = self.write_pending() {
                return Some(lines);
            }
            if self.pending.is_some() {
                // None of many was for this client: others get their turn before the rest is looked at.
                tokio::task::yield_now().await;
                continue;
            }
            match self.look().await {
                Ok(()) => {}
                Err(refusal) => {
                    self.done = true;
                    return Some(line("ERROR", &refusal.status()));
                }
            }
            if self.pending.is_some() {
                continue;
            }
            if let Some(bookmark) = self.wait().await {
                return Some(bookmark);
            }
        }
    }

    /// Fails when the client may not watch any more.
    async fn recheck(&mut self) -> Result<(), Refusal> {
        let due = self.recheck_at.is_some_and(|at| at <= Instant::now());
        let Some(standing) = self.standing.as_ref().filter(|_| due) else { return Ok(()) };
        self.recheck_at = Some(Instant::now() + standing.every());
        match standing.check().await {
            Ok(()) => self.unanswered = 0,
            Err(Refusal::Unavailable(_) | Refusal::TooManyTokens) if self.unanswered < UNANSWERED => {
                self.unanswered += 1;
            }
            Err(refusal) => return Err(refusal),
        }
        Ok(())
    }

    /// Finds out what changed since the last look.
    async fn look(&mut self) -> Result<(), Refusal> {
        self.changes.borrow_and_update();
        let served = self.app.index.at(self.app.engine.snapshot()).await?;
        let table = R::table(&served);
        let mut events = match self.options.start {
            Start::Everything => {
                let keys = table.rows.keys().filter(|key| self.filter.takes_key(key, &self.viewer));
                keys.map(|key| Pick::There(key.clone())).collect()
            }
            Start::After(version) if version < table.floor || version > served.version => {
                return Err(Refusal::Expired(format!(
                    "too old resource version: {version}: list again and restart the watch"
                )));
            }
            Start::After(version) => changes(table, version, &self.filter, &self.viewer),
        };
        if self.options.mark_initial {
            events.push_back(Pick::InitialEnd);
            self.options.mark_initial = false;
        }
        self.options.start = Start::After(served.version);
        self.pending = (!events.is_empty()).then_some(Pending { served, events });
        Ok(())
    }

    /// Up to [`CHUNK`] of the events that were found; `None` when none of those looked at is for this client.
    fn write_pending(&mut self) -> Option<Bytes> {
        let pending = self.pending.as_mut()?;
        let visible = Visible::of(&pending.served.published, &self.viewer);
        let writer = Writer { table: R::table(&pending.served), visible: &visible, filter: &self.filter };
        let mut lines = Vec::new();
        let mut written = 0;
        for _ in 0..LOOK {
            if written == CHUNK {
                break;
            }
            let Some(pick) = pending.events.pop_front() else { break };
            let before = lines.len();
            match pick {
                Pick::There(key) => {
                    if let Some(object) = writer.now(&key) {
                        write_line(&mut lines, "ADDED", &object);
                    }
                }
                Pick::Changed(first, last) => writer.write(&mut lines, &first, &last),
                Pick::InitialEnd => {
                    write_line(&mut lines, "BOOKMARK", &bookmark::<R>(pending.served.version, true));
                }
            }
            written += usize::from(lines.len() > before);
        }
        if pending.events.is_empty() {
            self.pending = None;
        }
        (!lines.is_empty()).then(|| lines.into())
    }

    /// Until something changed; a bookmark when it is time for one.
    async fn wait(&mut self) -> Option<Bytes> {
        let bookmark_at = if self.options.bookmarks { Some(self.bookmark_at) } else { None };
        let until = [bookmark_at, self.recheck_at, self.options.ends].into_iter().flatten().min();
        let timer = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.changes.changed() => {
                // Without an engine there will be no more changes: the server is going down.
                self.done = changed.is_err();
                tokio::time::sleep(PACE).await;
                None
            }
            () = self.app.stopping.cancelled() => {
                self.done = true;
                None
            }
            () = timer => {
                let now = Instant::now();
                self.done = self.options.ends.is_some_and(|ends| ends <= now);
                let Start::After(version) = self.options.start else { return None };
                if self.done || !self.options.bookmarks || self.bookmark_at > now {
                    return None;
                }
                self.bookmark_at = now + BOOKMARK;
                Some(line("BOOKMARK", &bookmark::<R>(version, false)))
            }
        }
    }
}

/// The first and the latest change of an object.
type Span<'a, R> = (&'a Arc<RowChange<R>>, &'a Arc<RowChange<R>>);

/// The changes that take a client from `version` to now, one for each object, by version.
fn changes<R: Indexed>(
    table: &Table<R>,
    version: u64,
    filter: &Filter<R>,
    viewer: &Viewer,
) -> VecDeque<Pick<R>> {
    let mut by_key: BTreeMap<&Key, Span<'_, R>> = BTreeMap::new();
    let begin = table.log.partition_point(|change| change.version <= version);
    for change in table.log.range(begin..).filter(|change| filter.takes_key(&change.key, viewer)) {
        by_key.entry(&change.key).and_modify(|(_, last)| *last = change).or_insert((change, change));
    }
    let mut found: Vec<_> = by_key.into_values().collect();
    found.sort_by_key(|(_, last)| last.version);
    found.into_iter().map(|(first, last)| Pick::Changed(Arc::clone(first), Arc::clone(last))).collect()
}

/// Turns changes into events for one client.
struct Writer<'a, R: Indexed> {
    table: &'a Table<R>,
    visible: &'a Visible<'a>,
    filter: &'a Filter<R>,
}

impl<R: Indexed> Writer<'_, R> {
    /// The object as it is now, if this client's selectors take it.
    fn now(&self, key: &Key) -> Option<R::Object> {
        let row = self.table.rows.get(key)?;
        let mut object = R::render(self.visible, &row.id)?;
        R::meta_mut(&mut object).resource_version = row.version.to_string();
        self.filter.takes(&object).then_some(object)
    }

    fn write(&self, lines: &mut Vec<u8>, first: &RowChange<R>, last: &RowChange<R>) {
        let known = first.before.as_ref().filter(|object| self.filter.takes(object));
        let now = self.now(&last.key);
        let same = match (known, &now) {
            (Some(known), Some(now)) => R::meta(known).uid == R::meta(now).uid,
            _ => false,
        };
        if let Some(known) = known.filter(|_| !same) {
            // Gone, replaced by another of its name, or selected no more: the same to this client.
            let mut object = last.before.as_ref().unwrap_or(known).clone();
            if !self.visible.viewer.sees_everything() {
                R::redact(&mut object);
            }
            R::meta_mut(&mut object).resource_version = last.version.to_string();
            write_line(lines, "DELETED", &object);
        }
        if let Some(now) = now {
            write_line(lines, if same { "MODIFIED" } else { "ADDED" }, &now);
        }
    }
}

#[derive(Serialize)]
struct Line<'a, T> {
    #[serde(rename = "type")]
    type_: &'a str,
    object: &'a T,
}

fn write_line<T: Serialize>(lines: &mut Vec<u8>, type_: &str, object: &T) {
    let start = lines.len();
    if let Err(error) = serde_json::to_writer(&mut *lines, &Line { type_, object }) {
        // Our own types: only a bug gets here, and half a line must not get out.
        tracing::error!(%error, "failed to serialize a watch event");
        lines.truncate(start);
        return;
    }
    lines.push(b'\n');
}

fn line<T: Serialize>(type_: &str, object: &T) -> Bytes {
    let mut lines = Vec::new();
    write_line(&mut lines, type_, object);
    lines.into()
}

fn bookmark<R: Indexed>(version: u64, initial_end: bool) -> serde_json::Value {
    let mut metadata = json!({ "resourceVersion": version.to_string(), "creationTimestamp": null });
    if initial_end {
        metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
    }
    json!({ "apiVersion": API_VERSION, "kind": R::KIND, "metadata": metadata })
}
