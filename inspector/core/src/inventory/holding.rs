//! Who holds what on which node, since when, and until when it is planned.

use std::sync::Arc;

use super::book::Held;
use super::{Inventory, NodeId, Quantities};
use crate::constraint::{HostPort, NodeConstraint, eligible};
use crate::request::Shape;
use crate::resources::ResourceList;

/// Why something is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HoldKind {
    /// Bound by us.
    Bound,
    /// Decided by us, not seen bound yet.
    Assumed,
    /// Bound by somebody else.
    Foreign,
    /// Kept free for a Pod of somebody else that is not bound yet.
    Nominated,
    /// Kept free for the replacement of a member that a started gang lost.
    Kept,
}

/// One holder's share of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// How much.
    pub needs: Arc<ResourceList>,
    /// Host ports that it occupies.
    pub ports: Arc<[HostPort]>,
    /// Since when, epoch seconds.
    pub from: i64,
    /// When it is planned to be released, epoch seconds; none means no end is known. Passing it frees nothing.
    pub until: Option<i64>,
    /// Why it is held.
    pub kind: HoldKind,
    /// It never leaves the node (Pods of a `DaemonSet`, static Pods): no job can wait for its end.
    pub permanent: bool,
    /// The job that it belongs to, if one of ours.
    pub job: Option<u32>,
}

impl Inventory {
    /// Holds a share of a node, which need not exist (yet). The holder's former share, on whatever node, is given
    /// up; holding the same again changes nothing.
    pub fn hold(&mut self, holder: Arc<str>, node: &str, hold: Hold) {
        let id = self.open(&Arc::from(node));
        let before = self.holders.get(&holder).copied();
        if let Some(old) = before.and_then(|at| self.book(at)).and_then(|book| book.find(&holder)) {
            if before == Some(id) && old.hold == hold {
                return;
            }
            // One of ours that is seen where it was put frees nothing.
            let arrived = before == Some(id) && same_share(&old.hold, &hold);
            if !arrived {
                self.freed += 1;
            }
        }
        if let Some(at) = before {
            self.take_out(&holder, at);
        }
        let needs: Quantities = {
            let mut needs: Vec<_> = hold
                .needs
                .iter()
                .filter(|(_, quantity)| *quantity > 0)
                .map(|(resource, quantity)| (self.columns.intern(resource), quantity))
                .collect();
            needs.sort_unstable_by_key(|(kind, _)| *kind);
            needs.into()
        };
        self.holders.insert(holder.clone(), id);
        let touched = needs.clone();
        if let Some(book) = self.book_mut(id) {
            book.insert(holder, Held { hold, needs });
        }
        self.refresh_all(id, &touched);
        if let Some(at) = before {
            self.close_unless_used(at);
        }
    }

    /// Gives up what the holder has; whether it had anything.
    pub fn release(&mut self, holder: &str) -> bool {
        let Some(id) = self.holders.get(holder).copied() else { return false };
        self.take_out(holder, id);
        self.close_unless_used(id);
        self.freed += 1;
        true
    }

    /// Whether one slot of this shape could be held on the node now, whatever is promised there.
    pub fn fits(&self, node: &str, shape: &Shape) -> bool {
        let Some(book) = self.id(node).and_then(|id| self.book(id)).filter(|book| book.spec.is_some()) else {
            return false;
        };
        let room = |(resource, quantity): (&Arc<str>, u64)| {
            quantity == 0
                || self.columns.kind(resource).is_some_and(|kind| book.balance(kind) >= i128::from(quantity))
        };
        eligible(&shape.constraint, &book.facts).is_ok()
            && shape.needs.iter().all(room)
            && !book.clashes(&shape.ports, |_| true)
    }

    /// Whether the node is there and takes Pods with this constraint now, whatever it has free.
    pub fn takes(&self, node: &str, constraint: &NodeConstraint) -> bool {
        let book = self.id(node).and_then(|id| self.book(id)).filter(|book| book.spec.is_some());
        book.is_some_and(|book| eligible(constraint, &book.facts).is_ok())
    }

    /// Whether what is held on the node as such a slot may stay there: the node takes such work, and has no deficit of
    /// what the slot needs.
    pub fn still_fits(&self, node: &str, shape: &Shape) -> bool {
        let book = self.id(node).and_then(|id| self.book(id)).filter(|book| book.spec.is_some());
        book.is_some_and(|book| {
            let mut kinds = shape.needs.iter().filter_map(|(resource, _)| self.columns.kind(resource));
            eligible(&shape.constraint, &book.facts).is_ok() && kinds.all(|kind| book.balance(kind) >= 0)
        })
    }

    /// Changes when the holder's share is planned to be released; whether it has one.
    pub fn retime(&mut self, holder: &str, until: Option<i64>) -> bool {
        let Some((node, mut hold)) = self.holding(holder) else { return false };
        if hold.until != until {
            hold.until = until;
            self.hold(Arc::from(holder), &node, hold);
        }
        true
    }

    /// The holder's node and share.
    pub fn holding(&self, holder: &str) -> Option<(Arc<str>, Hold)> {
        let book = self.book(*self.holders.get(holder)?)?;
        Some((book.name.clone(), book.find(holder)?.hold.clone()))
    }

    /// Every holder with its node and share, in order of the holders' keys.
    pub fn holdings(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>, &Hold)> {
        self.holders.iter().filter_map(|(holder, id)| {
            let book = self.book(*id)?;
            Some((holder, &book.name, &book.find(holder)?.hold))
        })
    }

    fn take_out(&mut self, holder: &str, id: NodeId) {
        self.holders.remove(holder);
        let Some(held) = self.book_mut(id).and_then(|book| book.remove(holder)) else { return };
        self.refresh_all(id, &held.needs);
    }

    fn refresh_all(&mut self, id: NodeId, needs: &Quantities) {
        for (kind, _) in needs.iter() {
            self.refresh(id, *kind);
        }
    }
}

/// Whether only the kind or the beginning differ.
fn same_share(a: &Hold, b: &Hold) -> bool {
    a.needs == b.needs && a.ports == b.ports && a.until == b.until && a.permanent == b.permanent
}
