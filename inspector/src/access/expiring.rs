//! Answers that hold for a while: at most so many, the least used go first.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;

/// A bounded cache with an age limit.
pub(crate) struct Expiring<K: Hash + Eq, V> {
    entries: Mutex<LruCache<K, (Instant, V)>>,
    lasts: Duration,
}

impl<K: Hash + Eq, V: Clone> Expiring<K, V> {
    /// At most `most` answers, each for as long as `lasts`.
    pub(crate) fn new(most: NonZeroUsize, lasts: Duration) -> Self {
        Self { entries: Mutex::new(LruCache::new(most)), lasts }
    }

    pub(crate) fn get(&self, key: &K, now: Instant) -> Option<V> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, value) = entries.get(key)?;
        (now.saturating_duration_since(*since) < self.lasts).then(|| value.clone())
    }

    /// `since` is when the question was asked: an answer may be that old already.
    pub(crate) fn put(&self, key: K, value: V, since: Instant) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).put(key, (since, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_age_and_are_bounded() {
        let cache = Expiring::new(NonZeroUsize::new(2).unwrap(), Duration::from_secs(10));
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        cache.put(1, "a", start);
        assert_eq!((cache.get(&1, at(9)), cache.get(&1, at(10))), (Some("a"), None));
        cache.put(2, "b", at(20));
        cache.put(3, "c", at(20));
        assert_eq!((cache.get(&1, start), cache.get(&3, at(21))), (None, Some("c")));
        cache.put(4, "d", at(20));
        assert_eq!((cache.get(&2, at(21)), cache.get(&3, at(21))), (None, Some("c")));
    }
}
