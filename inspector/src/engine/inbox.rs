//! Events waiting for the loop, coalesced per object: the latest state wins, and of failures to create Pods, which several
//! Kubernetes Events may report, that with the later time.
//!
//! So their number is bounded by the number of objects, and a watch never blocks.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fluxion_scheduler::constraint::volumes::StorageKey;
use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::SharedStr;
use tokio::sync::Notify;

use super::sharing::Sharing;

/// The object of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum About {
    Node(SharedStr),
    Pod(SharedStr),
    Group(SharedStr),
    Owner(SharedStr),
    /// Namespace of the Event, and UID of the owner.
    CreationFailed(SharedStr, SharedStr),
    Namespace(SharedStr),
    Storage(StorageKey),
    Written(SharedStr),
    /// Deletion of the object with this UID; its last state, which may contain the reason, is kept before it.
    Gone(SharedStr),
    OwnersObserved(SharedStr, SharedStr),
    Bound(SharedStr),
    Resumed(SharedStr),
    Cancelled(SharedStr),
    CancelFailed(SharedStr),
    Past(SharedStr, Option<i64>),
    Leadership,
    Tick,
}

fn about(event: &Event) -> About {
    match event {
        Event::Node(node) => About::Node(node.name.clone()),
        Event::NodeGone(name) => About::Node(name.clone()),
        Event::Pod(pod) => About::Pod(pod.uid.clone()),
        Event::PodGone(uid) | Event::GroupGone(uid) | Event::OwnerGone(uid) => About::Gone(uid.clone()),
        Event::Group(group) => About::Group(group.uid.clone()),
        Event::Owner(owner) => About::Owner(owner.uid.clone()),
        Event::OwnersObserved { group, kind, .. } => About::OwnersObserved(group.clone(), kind.clone()),
        Event::CreationFailed { namespace, owner, .. } => {
            About::CreationFailed(namespace.clone(), owner.clone())
        }
        Event::Namespace { name, .. } | Event::NamespaceGone(name) => About::Namespace(name.clone()),
        Event::Storage(object) => About::Storage(object.key()),
        Event::StorageGone(key) => About::Storage(key.clone()),
        Event::StorageWritten { object, .. } => About::Written(object.clone()),
        Event::Bound { pod, .. } => About::Bound(pod.clone()),
        Event::Resumed { object, .. } => About::Resumed(object.clone()),
        Event::Cancelled { job, .. } | Event::CancelStarted { job, .. } => About::Cancelled(job.clone()),
        Event::CancelFailed { job, .. } => About::CancelFailed(job.clone()),
        Event::Remembered(what) => {
            let (uid, ended_at) = what.id();
            About::Past(uid, ended_at)
        }
        Event::Synced | Event::Paused => About::Leadership,
        Event::Tick => About::Tick,
    }
}

#[derive(Default)]
struct Content {
    places: HashMap<About, u64>,
    events: BTreeMap<u64, Event>,
    next: u64,
    since: Option<Instant>,
    stopped: bool,
}

/// See the module documentation.
#[derive(Default)]
pub(super) struct Inbox {
    sharing: Mutex<Sharing>,
    content: Mutex<Content>,
    filled: Notify,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Content> {
        // Nothing in here panics during a change, so a poisoned lock still guards a consistent value.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event. A later state of an object takes the position of the earlier one, so that events after it
    /// (`Synced`) still come after it; only leadership events move to the end.
    pub(super) fn push(&self, mut event: Event) {
        self.sharing.lock().unwrap_or_else(PoisonError::into_inner).share(&mut event);
        let mut guard = self.lock();
        let content = &mut *guard;
        content.since.get_or_insert_with(Instant::now);
        let about = about(&event);
        let place = match content.places.get(&about) {
            Some(place) if about != About::Leadership => *place,
            earlier => {
                if let Some(place) = earlier {
                    content.events.remove(place);
                }
                content.next += 1;
                content.places.insert(about, content.next);
                content.next
            }
        };
        if let Event::CreationFailed { at, .. } = &event
            && let Some(Event::CreationFailed { at: known, .. }) = content.events.get(&place)
            && known > at
        {
            return;
        }
        content.events.insert(place, event);
        drop(guard);
        self.filled.notify_one();
    }

    /// Removes and returns all events, in order, and how long the oldest has waited.
    pub(super) fn take(&self) -> (Vec<Event>, Duration) {
        let mut content = self.lock();
        content.places.clear();
        let waited = content.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        (std::mem::take(&mut content.events).into_values().collect(), waited)
    }

    /// Wakes the loop without an event.
    pub(super) fn wake(&self) {
        self.filled.notify_one();
    }

    /// Returns immediately if there was a wake-up since it last returned.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }

    pub(super) fn len(&self) -> usize {
        self.lock().events.len()
    }

    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.filled.notify_one();
    }

    pub(super) fn stopped(&self) -> bool {
        self.lock().stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(uid: &str) -> Event {
        Event::PodGone(uid.into())
    }

    #[test]
    fn the_latest_state_of_an_object_wins_and_keeps_its_place() {
        let inbox = Inbox::default();
        inbox.push(Event::Cancelled { job: "a".into(), by: "first".into() });
        inbox.push(gone("p"));
        inbox.push(Event::Synced);
        inbox.push(Event::Cancelled { job: "a".into(), by: "second".into() });
        let second = Event::Cancelled { job: "a".into(), by: "second".into() };
        assert_eq!(inbox.take().0, vec![second, gone("p"), Event::Synced]);
        assert_eq!(inbox.len(), 0);
    }

    #[test]
    fn what_an_object_was_in_the_end_is_heard_before_it_is_gone() {
        let inbox = Inbox::default();
        let last = Event::Pod(Box::new(crate::engine::tests::pod_spec("p")));
        inbox.push(gone("other"));
        inbox.push(last.clone());
        inbox.push(gone("p"));
        inbox.push(gone("p"));
        assert_eq!(inbox.take().0, vec![gone("other"), last, gone("p")]);
    }

    #[test]
    fn of_failures_to_create_pods_the_later_one_is_kept() {
        let failed = |namespace: &str, why: &str, at| Event::CreationFailed {
            namespace: namespace.into(),
            owner: "o".into(),
            why: why.into(),
            at,
        };
        let inbox = Inbox::default();
        for event in
            [failed("a", "one", 5), failed("a", "two", 9), failed("a", "late", 7), failed("b", "b", 1)]
        {
            inbox.push(event);
        }
        assert_eq!(inbox.take().0, vec![failed("a", "two", 9), failed("b", "b", 1)]);
        inbox.push(failed("a", "late", 7));
        assert_eq!(inbox.take().0, vec![failed("a", "late", 7)]);
    }

    #[test]
    fn leadership_is_said_last() {
        let inbox = Inbox::default();
        inbox.push(Event::Synced);
        inbox.push(gone("p"));
        inbox.push(Event::Paused);
        assert_eq!(inbox.take().0, vec![gone("p"), Event::Paused]);
    }

    #[test]
    fn ten_thousand_changes_of_ten_objects_are_ten_events() {
        let inbox = Inbox::default();
        for round in 0..10_000 {
            inbox.push(gone(&format!("p{}", round % 10)));
        }
        assert_eq!(inbox.len(), 10);
    }
}
