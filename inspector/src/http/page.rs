//! Pages of a list: the continue token, and the snapshots that unfinished lists still need. Later pages show the same
//! snapshot as the first one.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::index::Served;
use super::refusal::Refusal;
use super::resource::Key;

/// Maximum number of snapshots kept for unfinished lists.
const KEPT: usize = 16;
/// How long they are kept after the last page.
const KEPT_FOR: Duration = Duration::from_mins(5);

/// Start of the next page: after `last`, in the snapshot with this resource version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Continue {
    pub version: u64,
    pub last: Key,
}

impl fmt::Display for Continue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}", self.version, self.last.namespace, self.last.name)
    }
}

impl FromStr for Continue {
    type Err = Refusal;

    fn from_str(token: &str) -> Result<Self, Refusal> {
        let parts = || {
            let (version, rest) = token.split_once(':')?;
            let (namespace, name) = rest.split_once('/')?;
            let last = Key { namespace: namespace.into(), name: name.into() };
            Some(Self { version: version.parse().ok()?, last })
        };
        parts().filter(|_| token.len() < 1024).ok_or_else(|| {
            Refusal::BadRequest(
                "continue: invalid token: use the one returned with the previous page".to_owned(),
            )
        })
    }
}

/// Snapshots of lists that have more pages.
#[derive(Debug, Default)]
pub(super) struct Pages {
    begun: Mutex<VecDeque<Begun>>,
}

#[derive(Debug)]
struct Begun {
    /// When a page was last served.
    at: Instant,
    /// Lists of this snapshot of which the last page has not been served.
    lists: usize,
    served: Arc<Served>,
}

impl Pages {
    /// Keeps a snapshot because a page other than the last was served from it: the `first`, or one behind that.
    pub(super) fn keep(&self, now: Instant, served: &Arc<Served>, first: bool) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let known = begun.iter().position(|kept| kept.served.version == served.version);
        let lists = known.and_then(|index| begun.remove(index)).map_or(0, |kept| kept.lists);
        while begun.len() >= KEPT {
            begun.pop_front();
        }
        let lists = if first { lists.saturating_add(1) } else { lists.max(1) };
        begun.push_back(Begun { at: now, lists, served: Arc::clone(served) });
    }

    /// Drops a snapshot after the last page of the only list that needed it.
    pub(super) fn finish(&self, version: u64) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.retain_mut(|kept| {
            kept.lists = kept.lists.saturating_sub(usize::from(kept.served.version == version));
            kept.lists > 0
        });
    }

    /// Drops the snapshots of lists that are not continued.
    pub(super) fn tidy(&self, now: Instant) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.retain(|kept| now.saturating_duration_since(kept.at) < KEPT_FOR);
    }

    /// The snapshot of a token.
    pub(super) fn at(&self, version: u64) -> Result<Arc<Served>, Refusal> {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = begun.iter().find(|kept| kept.served.version == version);
        kept.map(|kept| Arc::clone(&kept.served)).ok_or_else(|| {
            Refusal::Expired("continue: the token has expired: restart the list without continue".to_owned())
        })
    }
}
