//! Kinds that may not be installed: followed once they are served, dropped when they no longer are.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fluxion_scheduler::event::Event;
use futures::Stream;
use kube::runtime::watcher::{self, Event as WatchEvent};
use kube::{Client, Resource};
use tokio::sync::watch as signal;

use crate::health::{Health, Verb};
use crate::kube::translate::Unreadable;
use crate::logs::{Repeated, kube_error};
use crate::supervise::Tasks;

use super::follow::{Ended, Follow};
use super::known::{Known, KnownObjects};

/// Interval of API discovery.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Timeout of one discovery request.
const PATIENCE: Duration = Duration::from_secs(15);

/// The served `group/version`s; `None` until the first discovery.
pub(super) type ServedVersion = Option<Arc<BTreeSet<String>>>;

/// Runs API discovery periodically.
pub(super) fn discover(
    client: Client,
    health: &Health,
    tasks: &mut Tasks,
) -> signal::Receiver<ServedVersion> {
    let (sender, receiver) = signal::channel(ServedVersion::default());
    let watched = health.watch("APIGroup", "apigroups");
    tasks.spawn("the list of API groups", async move {
        let failures = Repeated::new(Duration::from_mins(10));
        loop {
            let asked = tokio::time::timeout(PATIENCE, client.list_api_groups()).await;
            let failed = match asked {
                Ok(Ok(list)) => {
                    watched.heard();
                    watched.listed();
                    watched.stands();
                    let versions = list.groups.into_iter().flat_map(|group| group.versions);
                    let served: BTreeSet<_> = versions.map(|version| version.group_version).collect();
                    // Sent each time, changed or not: a kind of an existing group may have been added.
                    sender.send_replace(Some(Arc::new(served)));
                    None
                }
                Ok(Err(error)) => Some(kube_error(&error)),
                Err(_) => Some(format!("no response within {} s", PATIENCE.as_secs())),
            };
            if let Some(error) = failed {
                if let Some(left_out) = failures.now(&error) {
                    tracing::warn!(error, left_out, "API discovery failed");
                }
                watched.failed(Verb::List, false, error);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
    receiver
}

/// Follows a kind whenever it is served.
pub(super) async fn follow<K, S, T, G>(
    follow: Follow,
    mut served: signal::Receiver<ServedVersion>,
    api_version: &'static str,
    watch: impl Fn() -> S + Send,
    mut translate: T,
    mut gone: G,
) where
    K: Resource + 'static,
    S: Stream<Item = watcher::Result<WatchEvent<K>>> + Send,
    T: FnMut(&K) -> Result<Vec<Event>, Unreadable> + Send,
    G: FnMut(&Known) -> Vec<Event> + Send,
{
    let mut known = KnownObjects::default();
    loop {
        let there = (*served.borrow_and_update()).as_ref().map(|groups| groups.contains(api_version));
        if there == Some(false) {
            follow.watched.absent();
        }
        if there == Some(true) {
            let ended = follow.until_ended(watch(), &mut known, true, &mut translate, &mut gone).await;
            if ended == Ended::NotServed {
                for object in known.all_gone() {
                    follow.send(gone(&object));
                }
                follow.observed(false);
                follow.watched.absent();
            }
        }
        if served.changed().await.is_err() {
            return;
        }
    }
}
