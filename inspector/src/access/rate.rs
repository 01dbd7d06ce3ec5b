//! How often one sender may cause a question to the API server.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use lru::LruCache;

use super::peer::sender;

/// Senders that are remembered; who is forgotten starts anew.
const SENDERS: NonZeroUsize = NonZeroUsize::new(4096).expect("not zero");
/// Questions at once.
const BURST: f64 = 20.0;
/// Questions a second.
const RATE: f64 = 5.0;

/// A bucket of tokens for each sender.
pub(super) struct Rate {
    buckets: Mutex<LruCache<IpAddr, (Instant, f64)>>,
}

impl Default for Rate {
    fn default() -> Self {
        Self { buckets: Mutex::new(LruCache::new(SENDERS)) }
    }
}

impl Rate {
    /// Whether the sender at this address may ask now; counts it.
    pub(super) fn allows(&self, address: IpAddr, now: Instant) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, left) = buckets.get_or_insert_mut(sender(address), || (now, BURST));
        *left = (*left + now.saturating_duration_since(*since).as_secs_f64() * RATE).min(BURST);
        *since = now;
        let allowed = *left >= 1.0;
        if allowed {
            *left -= 1.0;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_sender_is_limited_and_others_are_not() {
        let rate = Rate::default();
        let start = Instant::now();
        let (one, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let allowed = (0..100).filter(|_| rate.allows(one, start)).count();
        assert_eq!(allowed, 20);
        assert!(rate.allows(other, start));
        let later = start + Duration::from_secs(2);
        assert_eq!((0..100).filter(|_| rate.allows(one, later)).count(), 10);
    }
}
