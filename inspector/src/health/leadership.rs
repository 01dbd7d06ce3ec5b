//! The state of the leader election.

use std::net::SocketAddr;

use tokio::time::Instant;

use crate::view::text;

/// A period in which we are the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Increases with each election, also of an inspector that was the leader before. It is the time of the election in
    /// epoch milliseconds, unless the term before is later by another clock.
    pub number: u64,
    /// When it ends, unless the Lease is renewed before: some time before another inspector can acquire it.
    pub until: Instant,
}

impl Term {
    /// Whether it has not ended yet.
    pub fn lasts(&self) -> bool {
        Instant::now() < self.until
    }
}

/// Whether we are the leader, and if not, why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leadership {
    /// Our term, if we held the Lease when we last looked. It may have ended since: see [`Self::term`].
    pub held: Option<Term>,
    /// The last known holder of the Lease, if it is another inspector.
    pub holder: Option<String>,
    /// Where the holder can be reached by other inspectors, while it is known to be the holder.
    pub address: Option<SocketAddr>,
    /// Why it can't be acquired or renewed.
    pub trouble: Option<Trouble>,
}

/// Why the API server can't be queried for the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Epoch seconds.
    pub since: i64,
    /// It does not respond at all, as opposed to denying access.
    pub unreachable: bool,
    pub why: String,
}

impl Leadership {
    /// Our term, if we are the leader now.
    pub fn term(&self) -> Option<Term> {
        self.held.filter(Term::lasts)
    }

    /// Since when the API server has been unreachable, if it is.
    pub fn unreachable_since(&self) -> Option<i64> {
        self.trouble.as_ref().filter(|trouble| trouble.unreachable).map(|trouble| trouble.since)
    }

    /// The warning for readers.
    pub(super) fn warning(&self) -> Option<String> {
        if self.term().is_some() {
            return None;
        }
        Some(match (&self.trouble, &self.holder) {
            (Some(Trouble { since, unreachable: true, .. }), _) => {
                format!("not the leader: API server unreachable since {}", text::time(*since))
            }
            (Some(Trouble { since, why, .. }), _) => {
                format!("not the leader: access to the Lease denied since {}: {why}", text::time(*since))
            }
            (None, Some(holder)) => format!("not the leader: {holder} is the leader"),
            (None, None) => "not the leader: the Lease has not been acquired yet".to_owned(),
        })
    }
}
