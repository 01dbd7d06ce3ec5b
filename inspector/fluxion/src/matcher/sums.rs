//! What a visit to a unit came to, in sums that can be added up.

use smallvec::SmallVec;

use crate::errno::Errno;
use crate::graph::TypeId;

/// Candidates of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub type_id: TypeId,
    /// How many there are.
    pub groups: u32,
    /// What the first of them in the order of the policy is compared by.
    pub best: i64,
    /// Sum of the counts of those with a positive score.
    pub qualified: u64,
    /// Sum of all counts.
    pub total: u64,
}

/// The candidate that a vertex is itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Own {
    pub type_id: TypeId,
    pub available: u64,
    pub score: i64,
    pub exclusive: bool,
}

/// What a visit came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    /// How many vertices were entered and left.
    pub preorder: u64,
    pub postorder: u64,
    /// The last error number met on the way.
    pub errno: Option<Errno>,
    /// The vertex itself, if it can be used; a bundle has none.
    pub own: Option<Own>,
    /// Whether what is below an upper vertex was offered to its parent.
    pub merged: bool,
    /// Candidates for the parent.
    pub offers: SmallVec<[Offer; 2]>,
}

impl Sum {
    /// A visit that ended at once.
    pub(super) fn refused(errno: Errno) -> Self {
        Self { preorder: 1, errno: Some(errno), ..Self::default() }
    }

    /// Whether it is that of a visit that ended at once.
    pub(super) fn is_refusal(&self, errno: Errno) -> bool {
        self.own.is_none()
            && self.errno == Some(errno)
            && (self.preorder, self.postorder) == (1, 0)
            && self.offers.is_empty()
    }

    /// Adds what a later visit came to.
    pub(super) fn add(&mut self, later: &Self) {
        self.preorder += later.preorder;
        self.postorder += later.postorder;
        self.errno = later.errno.or(self.errno);
        for offer in &later.offers {
            self.offer(*offer);
        }
    }

    /// Adds candidates.
    pub(super) fn offer(&mut self, offer: Offer) {
        let Some(known) = self.offers.iter_mut().find(|known| known.type_id == offer.type_id) else {
            self.offers.push(offer);
            return;
        };
        known.groups = known.groups.saturating_add(offer.groups);
        known.best = known.best.min(offer.best);
        known.qualified = known.qualified.saturating_add(offer.qualified);
        known.total = known.total.saturating_add(offer.total);
    }

    /// Adds one candidate.
    pub(super) fn offer_one(&mut self, type_id: TypeId, key: i64, score: i64, count: u64) {
        let qualified = if score > 0 { count } else { 0 };
        self.offer(Offer { type_id, groups: 1, best: key, qualified, total: count });
    }

    /// The candidates of a type.
    pub(super) fn of(&self, type_id: TypeId) -> Option<&Offer> {
        self.offers.iter().find(|offer| offer.type_id == type_id)
    }

    pub(super) fn qualified(&self, type_id: TypeId) -> u64 {
        self.of(type_id).map_or(0, |offer| offer.qualified)
    }
}
