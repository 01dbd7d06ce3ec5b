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
/// How long they are kept.
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
    begun: Mutex<VecDeque<(Instant, Arc<Served>)>>,
}

impl Pages {
    /// Keeps a snapshot because a page other than the last was served from it.
    pub(super) fn keep(&self, now: Instant, served: &Arc<Served>) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.retain(|(since, kept)| {
            kept.version != served.version && now.saturating_duration_since(*since) < KEPT_FOR
        });
        while begun.len() >= KEPT {
            begun.pop_front();
        }
        begun.push_back((now, Arc::clone(served)));
    }

    /// The snapshot of a token.
    pub(super) fn at(&self, now: Instant, version: u64) -> Result<Arc<Served>, Refusal> {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun
            .iter()
            .find(|(since, kept)| kept.version == version && now.saturating_duration_since(*since) < KEPT_FOR)
            .map(|(_, served)| Arc::clone(served))
            .ok_or_else(|| {
                Refusal::Expired(
                    "continue: the token has expired: restart the list without continue".to_owned(),
                )
            })
    }
}
