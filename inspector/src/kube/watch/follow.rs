//! A permanent watch of one kind.

use std::sync::Arc;
use std::time::Duration;

use fluxion_scheduler::event::Event;
use futures::{Stream, StreamExt};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event as WatchEvent};
use kube::{Resource, ResourceExt};

use crate::engine::EngineHandle;
use crate::failpoint;
use crate::health::{Verb, Watched};
use crate::kube::translate::Unreadable;
use crate::logs::{Repeated, kube_error};
use crate::metrics::{Kind, Metrics};

use super::known::{Known, KnownObjects};

/// The same failure is logged at most once in this time.
const SAID_AGAIN: Duration = Duration::from_mins(10);

/// What a follower needs.
pub(super) struct Follow {
    kind: &'static str,
    pub(super) engine: EngineHandle,
    metrics: Arc<Metrics>,
    pub(super) watched: Arc<Watched>,
    failures: Repeated,
    /// API group and kind, if these are owners of a kind that is not built in.
    owners: Option<(&'static str, &'static str)>,
}

/// Why a watch ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The API server does not serve the kind (any more).
    NotServed,
    /// The stream has ended.
    Stream,
}

impl Follow {
    pub(super) fn new(
        kind: &'static str,
        engine: EngineHandle,
        metrics: Arc<Metrics>,
        watched: Arc<Watched>,
    ) -> Self {
        Self { kind, engine, metrics, watched, failures: Repeated::new(SAID_AGAIN), owners: None }
    }

    /// The same; the engine is told whether these owners are observed.
    pub(super) fn of_owners(self, api_version: &'static str, kind: &'static str) -> Self {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self { owners: Some((group, kind)), ..self }
    }

    /// Tells whether owners of this kind are observed.
    pub(super) fn observed(&self, observed: bool) {
        if let Some((group, kind)) = self.owners {
            let (group, kind) = (group.into(), kind.into());
            self.engine.send(Event::OwnersObserved { group, kind, observed });
        }
    }

    /// Follows a kind that is always served.
    pub(super) async fn run<K, S, T, G>(self, stream: S, mut translate: T, mut gone: G)
    where
        K: Resource + 'static,
        S: Stream<Item = watcher::Result<WatchEvent<K>>> + Send,
        T: FnMut(&K) -> Result<Vec<Event>, Unreadable> + Send,
        G: FnMut(&Known) -> Vec<Event> + Send,
    {
        let mut known = KnownObjects::default();
        self.until_ended(stream, &mut known, false, &mut translate, &mut gone).await;
    }

    /// Follows until the stream ends or, if requested, until the kind is not served.
    pub(super) async fn until_ended<K, S, T, G>(
        &self,
        stream: S,
        known: &mut KnownObjects,
        optional: bool,
        translate: &mut T,
        gone: &mut G,
    ) -> Ended
    where
        K: Resource + 'static,
        S: Stream<Item = watcher::Result<WatchEvent<K>>> + Send,
        T: FnMut(&K) -> Result<Vec<Event>, Unreadable> + Send,
        G: FnMut(&Known) -> Vec<Event> + Send,
    {
        let mut stream = std::pin::pin!(stream.default_backoff());
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => self.take(event, known, translate, gone),
                Err(error) if optional && not_served(&error) => return Ended::NotServed,
                Err(error) => self.failed(&error),
            }
        }
        Ended::Stream
    }

    fn take<K: Resource>(
        &self,
        event: WatchEvent<K>,
        known: &mut KnownObjects,
        translate: &mut impl FnMut(&K) -> Result<Vec<Event>, Unreadable>,
        gone: &mut impl FnMut(&Known) -> Vec<Event>,
    ) {
        failpoint::reached("watch");
        match event {
            WatchEvent::Init => known.list_begins(),
            WatchEvent::InitApply(object) | WatchEvent::Apply(object) => {
                if let Some(before) = known.there(identity(&object)) {
                    self.send(gone(&before));
                }
                match translate(&object) {
                    Ok(events) => self.send(events),
                    Err(error) => self.invalid(&identity(&object), &error),
                }
            }
            WatchEvent::Delete(object) => {
                // The reason of a deletion may only be in the last state.
                if let Ok(events) = translate(&object) {
                    self.send(events);
                }
                let object = identity(&object);
                known.gone(&object);
                self.send(gone(&object));
            }
            WatchEvent::InitDone => {
                for object in known.list_ends() {
                    self.send(gone(&object));
                }
                self.observed(true);
                self.watched.listed();
            }
        }
    }

    pub(super) fn send(&self, events: Vec<Event>) {
        for event in events {
            self.engine.send(event);
        }
    }

    fn invalid(&self, object: &Known, error: &Unreadable) {
        self.metrics.invalid_objects.get_or_create(&Kind { kind: self.kind }).inc();
        let Known { namespace, name, uid } = object;
        tracing::warn!(kind = self.kind, %namespace, %name, %uid, %error, "skipped an invalid object");
    }

    fn failed(&self, error: &watcher::Error) {
        self.metrics.watch_failures.get_or_create(&Kind { kind: self.kind }).inc();
        let (verb, refused, why) = read(error);
        let resource = self.watched.resource();
        if let Some(left_out) = self.failures.now(&why) {
            let verb = verb.as_str();
            if refused {
                let until = until_permitted(self.watched.needed());
                tracing::warn!(
                    resource,
                    verb,
                    error = why,
                    left_out,
                    "not allowed to {verb} {resource}: {until} (see charts/fluxion/templates/rbac.yaml)"
                );
            } else {
                tracing::warn!(
                    resource,
                    verb,
                    error = why,
                    left_out,
                    "a watch failed and is being restarted"
                );
            }
        }
        self.watched.failed(verb, refused, why);
    }
}

/// What a rejected watch means, depending on whether it is needed for scheduling.
pub(super) fn until_permitted(needed: bool) -> &'static str {
    if needed {
        "binding is paused until RBAC permits it"
    } else {
        "scheduling continues, but what they report is not shown until RBAC permits it"
    }
}

/// What failed, whether it is permanent, and the API server's message.
fn read(error: &watcher::Error) -> (Verb, bool, String) {
    let verb = if matches!(error, watcher::Error::InitialListFailed(_)) { Verb::List } else { Verb::Watch };
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => (verb, refused(error), kube_error(error)),
        watcher::Error::WatchError(status) => (verb, false, status.message.clone()),
        watcher::Error::NoResourceVersion => (verb, false, error.to_string()),
    }
}

/// A retry will fail until somebody changes something.
fn refused(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status)
        if (400..500).contains(&status.code) && !matches!(status.code, 408 | 409 | 410 | 429))
}

pub(super) fn identity<K: Resource>(object: &K) -> Known {
    let meta = object.meta();
    Known {
        namespace: meta.namespace.as_deref().unwrap_or_default().into(),
        name: meta.name.as_deref().unwrap_or_default().into(),
        uid: object.uid().unwrap_or_default().into(),
    }
}

fn not_served(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if status.code == 404)
}
