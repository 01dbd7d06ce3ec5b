//! The last time that controllers could not create Pods, as Events say.
//!
//! Whoever may create Events in a namespace can say anything about any UID, so a failure is only found together with the
//! namespace of the Event, and no namespace can use up the room of another.

use imbl::{OrdMap, OrdSet};

use crate::model::SharedStr;

/// Maximum number of failures remembered per namespace.
const MOST: usize = 1_000;

/// Namespace of the Event, and UID of the owner.
type Key = (SharedStr, SharedStr);

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub(in crate::state) struct Failures {
    all: OrdMap<Key, Failure>,
    by_time: OrdSet<(i64, Key)>,
    /// Number by namespace.
    counts: OrdMap<SharedStr, usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Failure {
    why: SharedStr,
    at: i64,
}

impl Failures {
    /// Adds a failure at this time (epoch seconds). `false` if a later one is known, or too many of the namespace are.
    pub(super) fn add(&mut self, key: Key, why: SharedStr, at: i64) -> bool {
        match self.all.get(&key) {
            Some(known) if known.at >= at => return false,
            Some(_) => self.remove(&key),
            None => {}
        }
        let count = self.counts.entry(key.0.clone()).or_default();
        if *count >= MOST {
            return false;
        }
        *count += 1;
        self.by_time.insert((at, key.clone()));
        self.all.insert(key, Failure { why, at });
        true
    }

    /// Removes a failure, if there is one.
    pub(super) fn remove(&mut self, key: &Key) {
        let Some(failure) = self.all.remove(key) else { return };
        self.by_time.remove(&(failure.at, key.clone()));
        if let Some(count) = self.counts.get_mut(&key.0) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&key.0);
            }
        }
    }

    /// The cause of a failure.
    pub(super) fn why(&self, key: &Key) -> Option<&SharedStr> {
        self.all.get(key).map(|failure| &failure.why)
    }

    /// Time of the oldest failure (epoch seconds).
    pub(super) fn first(&self) -> Option<i64> {
        self.by_time.get_min().map(|(at, _)| *at)
    }

    /// Removes the oldest failure.
    pub(super) fn take_first(&mut self) -> Option<Key> {
        let (_, key) = self.by_time.get_min()?.clone();
        self.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_namespace_uses_up_the_room_of_another() {
        let mut failures = Failures::default();
        let key = |namespace: &str, uid: usize| (namespace.into(), uid.to_string().into());
        for uid in 0..2 * MOST {
            assert_eq!(failures.add(key("a", uid), "full".into(), 1), uid < MOST);
        }
        assert!(failures.add(key("b", 0), "quota".into(), 2));
        assert!(failures.add(key("a", 0), "again".into(), 3), "a known one may be told again");
        assert!(!failures.add(key("a", 0), "late".into(), 2));
        assert_eq!(failures.why(&key("a", 0)).map(AsRef::as_ref), Some("again"));
        assert_eq!(failures.why(&key("b", 1)), None);
        for _ in 1..MOST {
            assert_eq!(failures.first(), Some(1));
            assert_eq!(failures.take_first().unwrap().0.as_ref(), "a");
        }
        assert_eq!(failures.take_first(), Some(key("b", 0)));
        failures.remove(&key("a", 0));
        assert_eq!((failures.first(), failures.all.len(), failures.counts.len()), (None, 0, 0));
    }
}
