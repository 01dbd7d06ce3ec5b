//! The state of the leader election.

use crate::view::text;

/// Whether we are the leader, and if not, why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leadership {
    pub leads: bool,
    /// The last known holder of the Lease, if it is another inspector.
    pub holder: Option<String>,
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
    /// Since when the API server has been unreachable, if it is.
    pub fn unreachable_since(&self) -> Option<i64> {
        self.trouble.as_ref().filter(|trouble| trouble.unreachable).map(|trouble| trouble.since)
    }

    /// The warning for readers.
    pub(super) fn warning(&self) -> Option<String> {
        if self.leads {
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
