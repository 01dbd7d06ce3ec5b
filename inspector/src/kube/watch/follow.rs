//! One kind of object, watched for good.

use std::sync::Arc;
use std::time::Duration;

use fluxion_core::event::Event;
use futures::{Stream, StreamExt};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event as WatchEvent};
use kube::{Resource, ResourceExt};
use tokio::sync::watch as signal;

use crate::engine::EngineHandle;
use crate::kube::translate::Unreadable;
use crate::logs::Seldom;
use crate::metrics::{Kind, Metrics};

use super::known::{Known, KnownObjects};

/// Says once that what there was has been delivered.
pub(super) struct Initial(signal::Sender<bool>);

impl Initial {
    pub(super) fn new() -> (Self, signal::Receiver<bool>) {
        let (sender, receiver) = signal::channel(false);
        (Self(sender), receiver)
    }

    pub(super) fn done(&self) {
        self.0.send_if_modified(|done| !std::mem::replace(done, true));
    }
}

/// What following a kind needs.
pub(super) struct Follow {
    pub(super) kind: &'static str,
    pub(super) engine: EngineHandle,
    pub(super) metrics: Arc<Metrics>,
    pub(super) initial: Initial,
}

/// Why a watch ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The API server doesn't know the kind (any more).
    NotServed,
    /// The stream has no more to say.
    Stream,
}

impl Follow {
    /// Follows a kind that is always there.
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

    /// Follows until the stream ends or, where that is asked for, the kind is not served.
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
        let seldom = Seldom::new(Duration::from_secs(10));
        let mut stream = std::pin::pin!(stream.default_backoff());
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => self.take(event, known, translate, gone),
                Err(error) if optional && not_served(&error) => return Ended::NotServed,
                Err(error) => self.failed(&error, &seldom),
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
                // Why it goes may stand only in its last state.
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
                self.initial.done();
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
        tracing::warn!(kind = self.kind, %namespace, %name, %uid, %error, "an object is left out");
    }

    fn failed(&self, error: &watcher::Error, seldom: &Seldom) {
        self.metrics.watch_failures.get_or_create(&Kind { kind: self.kind }).inc();
        if let Some(left_out) = seldom.now() {
            tracing::warn!(kind = self.kind, %error, left_out, "a watch failed and is started again");
        }
    }
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
