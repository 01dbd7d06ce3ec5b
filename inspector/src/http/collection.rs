//! Lists, watches and single objects of any resource.

use std::convert::Infallible;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use fluxion_api::{API_VERSION, ListMeta};
use fluxion_scheduler::model::SharedStr;
use futures::stream;

use super::accept::Form;
use super::answer::{self, Moment};
use super::app::App;
use super::auth::Asker;
use super::columns;
use super::filter::Filter;
use super::guard::Large;
use super::index::{Indexed, Served};
use super::page::Continue;
use super::query::{GetQuery, ListQuery, VersionMatch};
use super::refusal::Refusal;
use super::rendered::Style;
use super::resource::{Key, Source};
use super::table::Row;
use super::watch::{self, Start, WatchOptions};
use crate::view::Viewer;

/// Bytes that are put together at once.
const CHUNK: usize = 64 * 1024;

/// Serves a list, or a watch if requested.
pub(super) async fn list<R: Indexed>(
    app: App,
    asker: Asker,
    namespace: Option<SharedStr>,
    query: ListQuery,
) -> Result<Response, Refusal> {
    let filter = Filter::<R>::new(namespace, &query)?;
    let form = query.accept.form(!query.watch)?;
    let newest = app.ready()?;
    let style = Style { form, include: query.include, now: newest.observed_at };
    if query.watch {
        let ticket = app.watch_ticket(&asker.name)?;
        let start = match query.resource_version {
            Some(version) if version > 0 && !query.initial_events => Start::After(version),
            _ => Start::Everything,
        };
        let options = WatchOptions {
            start,
            style,
            mark_initial: query.initial_events,
            bookmarks: query.bookmarks,
            ends: query
                .timeout_seconds
                .map(|seconds| tokio::time::Instant::now() + Duration::from_secs(seconds)),
        };
        return Ok(watch::respond(app, asker, filter, options, ticket));
    }
    let served = match &query.continue_ {
        Some(token) => {
            app.index.touch();
            app.pages.at(token.version)?
        }
        None => of_version(app.index.at(Arc::clone(&newest)).await?, &query)?,
    };
    let moment = Moment { version: served.version, ..app.moment(&newest) };
    let pages = Arc::clone(&app.pages);
    answer::computed(move || {
        let (rows, metadata) = page(&served, &asker.viewer, &filter, &query, &moment);
        match (metadata.continue_.is_empty(), &query.continue_) {
            (false, token) => pages.keep(Instant::now(), &served, token.is_none()),
            (true, Some(_)) => pages.finish(served.version),
            (true, None) => {}
        }
        let head = match head::<R>(style.form, &metadata) {
            Ok(head) => head.into_bytes(),
            Err(error) => {
                tracing::error!(%error, "failed to serialize the metadata of a list");
                return Refusal::Internal.into_response();
            }
        };
        let (viewer, rows) = (asker.viewer, rows.into_iter());
        Writing { served, viewer, style, rows, head, begun: false, done: false }.respond(&moment)
    })
    .await
}

/// Refuses where the list would not be of a version that is asked for.
fn of_version(served: Arc<Served>, query: &ListQuery) -> Result<Arc<Served>, Refusal> {
    match query.resource_version {
        Some(version) if version > served.version => Err(Refusal::TooNew(version, served.version)),
        Some(version) if query.version_match == VersionMatch::Exact && version != served.version => {
            Err(Refusal::Expired(format!(
                "The provided resource version is not available: {version}, current: {}",
                served.version
            )))
        }
        _ => Ok(served),
    }
}

/// The rows of one page, and the metadata of the list.
fn page<R: Indexed>(
    served: &Served,
    viewer: &Viewer,
    filter: &Filter<R>,
    query: &ListQuery,
    moment: &Moment,
) -> (Vec<Arc<Row<R>>>, ListMeta) {
    let visible = served.seen_by(viewer);
    let limit = match query.limit {
        0 => usize::MAX,
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    let from = match (&query.continue_, filter.namespace()) {
        (Some(token), _) => Bound::Excluded(token.last.clone()),
        (None, Some(namespace)) => Bound::Included(Key { namespace: namespace.clone(), name: "".into() }),
        (None, None) => Bound::Unbounded,
    };
    let mut found = Vec::new();
    let mut last = None;
    let mut metadata = moment.list_meta();
    let mut rest = R::table(served)
        .rows
        .range((from, Bound::Unbounded))
        // Lists are in the order of namespaces.
        .take_while(|(key, _)| filter.namespace().is_none_or(|namespace| key.namespace <= *namespace))
        .filter(|(key, _)| filter.takes_key(key, viewer))
        .peekable();
    while found.len() < limit {
        let Some((key, row)) = rest.next() else { break };
        if !filter.selects(&visible, &row.id) {
            continue;
        }
        found.push(Arc::clone(row));
        last = Some(key);
    }
    let more = rest.peek().is_some();
    if let (true, Some(last)) = (more, last) {
        metadata.continue_ = Continue { version: served.version, last: last.clone() }.to_string();
        // With selectors, the number is unknown; without, it is known.
        metadata.remaining_item_count = filter.is_everything().then(|| rest.count() as u64);
    }
    (found, metadata)
}

/// A list up to its objects: what follows are these, separated by commas, and `]}`.
fn head<R: Indexed>(form: Form, metadata: &ListMeta) -> Result<String, serde_json::Error> {
    let list = |api_version: &str, kind: &str| {
        let metadata = serde_json::to_string(metadata)?;
        Ok(format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}List","metadata":{metadata},"items":["#))
    };
    match form {
        Form::Object => list(API_VERSION, R::KIND),
        Form::Metadata(api_version) => list(api_version, "PartialObjectMetadata"),
        Form::Table(api_version) => columns::table(api_version, metadata, Some(R::COLUMNS)),
    }
}

/// A list that is put together piece by piece as its client reads it.
struct Writing<R: Indexed> {
    served: Arc<Served>,
    viewer: Viewer,
    style: Style,
    rows: std::vec::IntoIter<Arc<Row<R>>>,
    /// What comes before the next object.
    head: Vec<u8>,
    /// An object has been written.
    begun: bool,
    done: bool,
}

impl<R: Indexed> Writing<R> {
    /// The answer: small ones at once, large ones as they are read.
    fn respond(mut self, moment: &Moment) -> Response {
        let first = self.chunk();
        if self.done {
            return answer::text(first, moment, "application/json");
        }
        // Here it holds up nobody; what finds no room to be kept is written when its turn comes.
        let visible = self.served.seen_by(&self.viewer);
        for row in self.rows.as_slice() {
            if row.rendered(&visible, &self.served.room).is_some() && !row.is_kept() {
                break;
            }
        }
        let rest = stream::unfold(self, |mut writing| async {
            if writing.done {
                return None;
            }
            tokio::task::yield_now().await;
            let chunk = writing.chunk();
            Some((chunk, writing))
        });
        let chunks = stream::StreamExt::chain(stream::iter([first]), rest);
        let chunks = stream::StreamExt::map(chunks, |chunk| Ok::<_, Infallible>(Bytes::from(chunk)));
        let body = answer::streamed(chunks);
        let mut response = answer::text(body, moment, "application/json");
        response.extensions_mut().insert(Large);
        response
    }

    /// The next bytes.
    fn chunk(&mut self) -> Vec<u8> {
        let visible = self.served.seen_by(&self.viewer);
        let mut out = std::mem::take(&mut self.head);
        while out.len() < CHUNK {
            let Some(row) = self.rows.next() else {
                out.extend_from_slice(b"]}");
                self.done = true;
                break;
            };
            if let Some(rendered) = row.rendered(&visible, &self.served.room) {
                if self.begun {
                    out.push(b',');
                }
                self.begun = true;
                rendered.write::<R>(&mut out, self.style, row.version, Source::Now(&visible, &row.id));
            }
        }
        out
    }
}

/// Serves one object.
pub(super) async fn get<R: Indexed>(
    app: App,
    asker: Asker,
    namespace: SharedStr,
    name: &str,
    query: &GetQuery,
) -> Result<Response, Refusal> {
    let form = query.accept.form(false)?;
    let newest = app.ready()?;
    let served = app.index.at(Arc::clone(&newest)).await?;
    let moment = Moment { version: served.version, ..app.moment(&newest) };
    let not_found = || Refusal::NotFound(R::PLURAL, name.to_owned());
    let row = row::<R>(&served, &asker.viewer, namespace, name)?;
    let visible = served.seen_by(&asker.viewer);
    let rendered = row.rendered(&visible, &served.room).ok_or_else(not_found)?;
    let style = Style { form, include: query.include, now: newest.observed_at };
    let mut out = Vec::new();
    rendered.write_alone::<R>(&mut out, style, row.version, Source::Now(&visible, &row.id), true);
    Ok(answer::text(out, &moment, "application/json"))
}

/// One object with its resource version, as visible to this viewer.
pub(super) fn find<R: Indexed>(
    served: &Served,
    viewer: &Viewer,
    namespace: SharedStr,
    name: &str,
) -> Result<R::Object, Refusal> {
    let row = row::<R>(served, viewer, namespace, name)?;
    let object = R::render(&served.seen_by(viewer), &row.id);
    let mut object = object.ok_or_else(|| Refusal::NotFound(R::PLURAL, name.to_owned()))?;
    R::meta_mut(&mut object).resource_version = row.version.to_string();
    Ok(object)
}

/// Where one object is found, if this viewer may see it.
fn row<'a, R: Indexed>(
    served: &'a Served,
    viewer: &Viewer,
    namespace: SharedStr,
    name: &str,
) -> Result<&'a Arc<Row<R>>, Refusal> {
    let not_found = || Refusal::NotFound(R::PLURAL, name.to_owned());
    if !namespace.is_empty() && !viewer.sees(&namespace) {
        return Err(not_found());
    }
    R::table(served).rows.get(&Key { namespace, name: name.into() }).ok_or_else(not_found)
}
