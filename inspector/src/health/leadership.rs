//! What is known about the Lease.

use crate::view::text;

/// Whether we lead, and why not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leadership {
    pub leads: bool,
    /// Who held the Lease when it was last seen, if that was another.
    pub holder: Option<String>,
    /// Why it can't be had or renewed.
    pub trouble: Option<Trouble>,
}

/// Why the API server can't be asked about the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Epoch seconds.
    pub since: i64,
    /// It does not answer at all, as opposed to a refusal.
    pub unreachable: bool,
    pub why: String,
}

impl Leadership {
    /// Since when the API server does not answer, if it does not.
    pub fn unreachable_since(&self) -> Option<i64> {
        self.trouble.as_ref().filter(|trouble| trouble.unreachable).map(|trouble| trouble.since)
    }

    /// What a reader has to know.
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
