//! Watches: one JSON event per line, for as long as the client reads.
//!
//! A watch is driven by its connection. Between two reads it only stores its position (a version), so a slow client
//! gets the latest state of changed objects instead of every step, one that falls behind the log gets an `ERROR` event
//! with code 410, and neither slows down others. A client that stops reading is disconnected ([`super::listen`]).

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use fluxion_api::API_VERSION;
use futures::stream;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::accept::{Form, Include};
use super::answer;
use super::app::{App, WatchTicket};
use super::auth::Asker;
use super::filter::Filter;
use super::index::{Indexed, Served};
use super::refusal::Refusal;
use super::rendered::{Rendered, Style};
use super::resource::{Key, Source};
use super::standing::{Standing, UNANSWERED};
use super::table::{Row, RowChange, Table};
use crate::view::{Viewer, Visible};

/// Maximum number of events written at once, and of bytes after which no further event is written: what a client does not
/// read is kept in memory.
const CHUNK: usize = 128;
const CHUNK_BYTES: usize = 64 * 1024;
/// Maximum number of objects examined without yielding.
const LOOK: usize = 512;
/// Minimum time between checks for changes.
const PACE: Duration = Duration::from_millis(50);
/// Maximum interval between bookmarks, which let clients distinguish an idle watch from a dead one. Clients that don't ask
/// for them get an empty line, so that the connection is not taken for a dead one.
const BOOKMARK: Duration = Duration::from_secs(10);

/// Marks a streaming response, which must not be buffered by compression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streamed;

/// Initial events of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// All existing objects, as `ADDED`.
    Everything,
    /// Changes after this version.
    After(u64),
}

/// Options of a watch request.
#[derive(Clone, Debug)]
pub(super) struct WatchOptions {
    pub start: Start,
    /// How objects are written.
    pub style: Style,
    /// Say with a bookmark when the initial events are through.
    pub mark_initial: bool,
    pub bookmarks: bool,
    /// When to end it.
    pub ends: Option<Instant>,
}

/// Events not yet written from the last check.
struct Pending<R: Indexed> {
    served: Arc<Served>,
    /// Where the objects begin that existed when the watch started, and have not been written yet.
    there: Option<Bound<Key>>,
    /// What follows them.
    events: VecDeque<Pick<R>>,
}

/// An event to write.
enum Pick<R: Indexed> {
    /// The first and the latest change that this client has not seen.
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
    /// When changes may be checked for again.
    next_look: Instant,
    bookmark_at: Instant,
    /// No event has been written yet: the first one of a table says what its columns are.
    first: bool,
    standing: Option<Arc<Standing>>,
    recheck_at: Option<Instant>,
    unanswered: u32,
    done: bool,
    _ticket: WatchTicket,
}

/// The event that ends a watch with this error.
pub(super) fn error_line(refusal: &Refusal) -> Bytes {
    line("ERROR", &refusal.status())
}

/// Serves a watch.
pub(super) fn respond<R: Indexed>(
    app: App,
    asker: Asker,
    filter: Filter<R>,
    options: WatchOptions,
    ticket: WatchTicket,
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
        next_look: Instant::now(),
        bookmark_at,
        first: true,
        recheck_at: asker.standing.as_ref().map(|standing| Instant::now() + standing.every()),
        standing: asker.standing,
        unanswered: 0,
        done: false,
        _ticket: ticket,
    };
    let body = answer::streamed(stream::unfold(watch, |mut watch| async {
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
                return Some(self.drop_with(&refusal));
            }
            if let Some(lines) = self.write_pending() {
                return Some(lines);
            }
            if self.pending.is_some() {
                // None of many events was for this client: yield before examining the rest.
                tokio::task::yield_now().await;
                continue;
            }
            match self.look().await {
                Ok(()) => {}
                Err(refusal) => return Some(self.drop_with(&refusal)),
            }
            if self.pending.is_some() {
                continue;
            }
            if let Some(bookmark) = self.wait().await {
                return Some(bookmark);
            }
        }
    }

    /// Ends the watch with this error.
    fn drop_with(&mut self, refusal: &Refusal) -> Bytes {
        self.done = true;
        self.app.metrics.watch_dropped(refusal.code().1);
        error_line(refusal)
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

    /// Finds the changes since the last check.
    async fn look(&mut self) -> Result<(), Refusal> {
        self.next_look = Instant::now() + PACE;
        self.changes.borrow_and_update();
        let served = self.app.index.at(self.app.engine.snapshot()).await?;
        let table = R::table(&served);
        let mut there = None;
        let mut events = match self.options.start {
            Start::Everything => {
                there = Some(Bound::Unbounded);
                VecDeque::new()
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
        let any = there.is_some() || !events.is_empty();
        self.pending = any.then_some(Pending { served, there, events });
        Ok(())
    }

    /// Up to [`CHUNK`] pending events; `None` if none of those examined is for this client.
    fn write_pending(&mut self) -> Option<Bytes> {
        let mut pending = self.pending.take()?;
        let visible = pending.served.seen_by(&self.viewer);
        let style = Style { now: self.app.engine.snapshot().observed_at, ..self.options.style };
        let mut writer = Writer {
            served: &pending.served,
            visible: &visible,
            filter: &self.filter,
            style,
            lines: Vec::new(),
            first: self.first,
        };
        let (mut looks, mut written) = (0, 0);
        while looks < LOOK && written < CHUNK && writer.lines.len() < CHUNK_BYTES {
            looks += 1;
            let before = writer.lines.len();
            if let Some(from) = pending.there.take() {
                if let Some((key, row)) =
                    R::table(&pending.served).rows.range((from, Bound::Unbounded)).next()
                {
                    pending.there = Some(Bound::Excluded(key.clone()));
                    if self.filter.takes_key(key, &self.viewer) {
                        writer.there(row);
                    }
                }
            } else {
                match pending.events.pop_front() {
                    Some(Pick::Changed(first, last)) => writer.changed(&first, &last),
                    Some(Pick::InitialEnd) => writer.bookmark(pending.served.version, true),
                    None => break,
                }
            }
            written += usize::from(writer.lines.len() > before);
        }
        let Writer { lines, first, .. } = writer;
        self.first = first;
        drop(visible);
        if pending.there.is_some() || !pending.events.is_empty() {
            self.pending = Some(pending);
        }
        (!lines.is_empty()).then(|| lines.into())
    }

    /// Waits for changes; returns a bookmark or an empty line if one is due.
    async fn wait(&mut self) -> Option<Bytes> {
        let ends = [self.recheck_at, self.options.ends].into_iter().flatten();
        let timer = tokio::time::sleep_until(ends.fold(self.bookmark_at, Instant::min));
        tokio::select! {
            changed = self.changes.changed() => {
                // Without an engine, there are no more changes: the server is shutting down.
                self.done = changed.is_err();
                tokio::time::sleep_until(self.next_look).await;
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
                if self.done || self.bookmark_at > now {
                    return None;
                }
                self.bookmark_at = now + BOOKMARK;
                if !self.options.bookmarks {
                    return Some(Bytes::from_static(b"\n"));
                }
                let bookmark = bookmark::<R>(self.options.style, version, false, self.first);
                self.first = false;
                Some(line("BOOKMARK", &bookmark))
            }
        }
    }
}

/// The first and the latest change of an object.
type Span<'a, R> = (&'a Arc<RowChange<R>>, &'a Arc<RowChange<R>>);

/// The changes that bring a client from `version` to the present, one per object, by version.
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

/// Converts changes to events for one client.
struct Writer<'a, R: Indexed> {
    served: &'a Served,
    visible: &'a Visible<'a>,
    filter: &'a Filter<R>,
    style: Style,
    lines: Vec<u8>,
    first: bool,
}

impl<R: Indexed> Writer<'_, R> {
    /// An object that was there when the watch began.
    fn there(&mut self, row: &Row<R>) {
        if self.filter.selects(self.visible, &row.id) {
            self.write_now("ADDED", row);
        }
    }

    /// The object as it is now, if this client's selectors take it.
    fn now(&self, key: &Key) -> Option<&Arc<Row<R>>> {
        let row = R::table(self.served).rows.get(key)?;
        self.filter.selects(self.visible, &row.id).then_some(row)
    }

    fn changed(&mut self, first: &RowChange<R>, last: &RowChange<R>) {
        let known = first.before.as_ref().filter(|object| self.filter.takes(object));
        let now = self.now(&last.key).map(Arc::clone);
        let same = match (known, &now) {
            (Some(known), Some(now)) => *R::meta(known).uid == *now.uid,
            _ => false,
        };
        if let Some(known) = known.filter(|_| !same) {
            // Deleted, replaced by another of its name, or no longer selected: the same to this client.
            let mut object = last.before.as_ref().unwrap_or(known).clone();
            if !self.visible.viewer.sees_everything() {
                R::redact(&mut object);
            }
            self.write_was(object, last.version);
        }
        if let Some(now) = now {
            self.write_now(if same { "MODIFIED" } else { "ADDED" }, &now);
        }
    }

    fn write_now(&mut self, type_: &str, row: &Row<R>) {
        if let Some(rendered) = row.rendered(self.visible, &self.served.room) {
            self.event(type_, &rendered, row.version, Source::Now(self.visible, &row.id));
        }
    }

    fn write_was(&mut self, object: R::Object, version: u64) {
        if let Some(rendered) = Rendered::of::<R>(object.clone()) {
            self.event("DELETED", &rendered, version, Source::Was(&object));
        }
    }

    fn event(&mut self, type_: &str, rendered: &Rendered, version: u64, source: Source<'_, R>) {
        self.lines.extend_from_slice(format!(r#"{{"type":"{type_}","object":"#).as_bytes());
        rendered.write_alone(&mut self.lines, self.style, version, source, self.first);
        self.lines.extend_from_slice(b"}\n");
        self.first = false;
    }

    fn bookmark(&mut self, version: u64, initial_end: bool) {
        write_line(&mut self.lines, "BOOKMARK", &bookmark::<R>(self.style, version, initial_end, self.first));
        self.first = false;
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
        // Our own types: only fails because of a bug, and no partial line must be sent.
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

fn bookmark<R: Indexed>(style: Style, version: u64, initial_end: bool, first: bool) -> Value {
    let mut metadata = json!({ "resourceVersion": version.to_string(), "creationTimestamp": null });
    if initial_end {
        metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
    }
    let bare = |api_version: &str, kind: &str| json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
    match style.form {
        Form::Object => bare(API_VERSION, R::KIND),
        Form::Metadata(api_version) => bare(api_version, "PartialObjectMetadata"),
        Form::Table(api_version) => {
            let object = match style.include {
                Include::Object => bare(API_VERSION, R::KIND),
                Include::Metadata | Include::Nothing => bare(api_version, "PartialObjectMetadata"),
            };
            let row = json!({ "cells": vec![""; R::COLUMNS.len()], "object": object });
            let mut table = json!({
                "apiVersion": api_version,
                "kind": "Table",
                "metadata": { "resourceVersion": version.to_string() },
                "rows": [row],
            });
            if first {
                table["columnDefinitions"] = json!(R::COLUMNS);
            }
            table
        }
    }
}
