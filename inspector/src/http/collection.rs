//! Lists, watches and single objects of any resource.

use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::Response;
use fluxion_api::API_VERSION;
use fluxion_api::meta::List;
use fluxion_scheduler::model::SharedStr;

use super::answer::{self, Moment};
use super::app::App;
use super::auth::Asker;
use super::filter::Filter;
use super::index::{Indexed, Served};
use super::page::Continue;
use super::query::ListQuery;
use super::refusal::Refusal;
use super::resource::Key;
use super::watch::{self, Start, WatchOptions};
use crate::view::{Viewer, Visible};

/// Answers a list, or a watch when that is asked for.
pub(super) async fn list<R: Indexed>(
    app: App,
    asker: Asker,
    namespace: Option<SharedStr>,
    query: ListQuery,
) -> Result<Response, Refusal> {
    let filter = Filter::<R>::new(namespace, &query)?;
    let newest = app.ready()?;
    if query.watch {
        let permit = app.watch_permit()?;
        let start = match query.resource_version {
            Some(version) if version > 0 && !query.initial_events => Start::After(version),
            _ => Start::Everything,
        };
        let options = WatchOptions {
            start,
            mark_initial: query.initial_events,
            bookmarks: query.bookmarks,
            ends: query
                .timeout_seconds
                .map(|seconds| tokio::time::Instant::now() + Duration::from_secs(seconds)),
        };
        return Ok(watch::respond(app, asker, filter, options, permit));
    }
    let served = match &query.continue_ {
        Some(token) => app.pages.at(Instant::now(), token.version)?,
        None => app.index.at(Arc::clone(&newest)).await?,
    };
    let moment = Moment { version: served.version, ..app.moment(&newest) };
    let pages = Arc::clone(&app.pages);
    answer::computed(move || {
        let (list, more) = page(&served, &asker.viewer, &filter, &query, &moment);
        if more {
            pages.keep(Instant::now(), &served);
        }
        answer::json(&list, &moment)
    })
    .await
}

/// One page, and whether there are more.
fn page<R: Indexed>(
    served: &Served,
    viewer: &Viewer,
    filter: &Filter<R>,
    query: &ListQuery,
    moment: &Moment,
) -> (List<R::Object>, bool) {
    let visible = Visible::of(&served.published, viewer);
    let limit = match query.limit {
        0 => usize::MAX,
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    let from = query.continue_.as_ref().map_or(Bound::Unbounded, |token| Bound::Excluded(token.last.clone()));
    let mut items = Vec::new();
    let mut last = None;
    let mut metadata = moment.list_meta();
    let mut rest = R::table(served)
        .rows
        .range((from, Bound::Unbounded))
        .filter(|(key, _)| filter.takes_key(key, viewer))
        .peekable();
    while items.len() < limit {
        let Some((key, row)) = rest.next() else { break };
        let Some(mut object) = R::render(&visible, &row.id).filter(|object| filter.takes(object)) else {
            continue;
        };
        R::meta_mut(&mut object).resource_version = row.version.to_string();
        items.push(object);
        last = Some(key);
    }
    let more = rest.peek().is_some();
    if let (true, Some(last)) = (more, last) {
        metadata.continue_ = Continue { version: served.version, last: last.clone() }.to_string();
        // With selectors nobody has counted yet; without, it is known.
        metadata.remaining_item_count = filter.is_everything().then(|| rest.count() as u64);
    }
    let kind = format!("{}List", R::KIND);
    (List { api_version: API_VERSION.to_owned(), kind, metadata, items }, more)
}

/// Answers one object.
pub(super) async fn get<R: Indexed>(
    app: App,
    asker: Asker,
    namespace: SharedStr,
    name: &str,
) -> Result<Response, Refusal> {
    let newest = app.ready()?;
    let served = app.index.at(Arc::clone(&newest)).await?;
    let moment = Moment { version: served.version, ..app.moment(&newest) };
    let object = find::<R>(&served, &asker.viewer, namespace, name)?;
    Ok(answer::json(&object, &moment))
}

/// One object with its resource version, as this viewer may see it.
pub(super) fn find<R: Indexed>(
    served: &Served,
    viewer: &Viewer,
    namespace: SharedStr,
    name: &str,
) -> Result<R::Object, Refusal> {
    let not_found = || Refusal::NotFound(R::PLURAL, name.to_owned());
    if !namespace.is_empty() && !viewer.sees(&namespace) {
        return Err(not_found());
    }
    let key = Key { namespace, name: name.into() };
    let row = R::table(served).rows.get(&key).ok_or_else(not_found)?;
    let visible = Visible::of(&served.published, viewer);
    let mut object = R::render(&visible, &row.id).ok_or_else(not_found)?;
    R::meta_mut(&mut object).resource_version = row.version.to_string();
    Ok(object)
}
