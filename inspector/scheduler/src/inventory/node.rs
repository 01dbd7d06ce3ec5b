//! Adding, changing and removing nodes. Entries outlive nodes: resources on a removed node are held until they are
//! released.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Inventory;
use super::book::Offer;
use super::id::KindId;
use crate::constraint::TaintEffect;
use crate::inventory::NodeSpec;
use fluxion_text::natural_order;

impl Inventory {
    /// Adds a node or replaces its spec; holders under its name remain.
    pub fn set_node(&mut self, spec: NodeSpec) {
        let id = self.open(&spec.name.clone());
        let known = self.book(id).and_then(|book| book.spec.clone());
        if known.as_deref() == Some(&spec) {
            return;
        }
        let mut offers: BTreeMap<KindId, Offer> = BTreeMap::new();
        for (resource, quantity) in spec.capacity.iter() {
            offers.entry(self.columns.intern(resource)).or_default().capacity = quantity;
        }
        for (resource, quantity) in spec.allocatable.iter() {
            offers.entry(self.columns.intern(resource)).or_default().allocatable = quantity;
        }
        if known.is_none() {
            let at =
                self.order.partition_point(|other| natural_order(&self.name(*other), &spec.name).is_lt());
            Arc::make_mut(&mut self.order).insert(at, id);
            self.ranks.take();
        }
        self.redescribe(id, Some(Arc::new(spec)), offers.into_iter().collect());
    }

    /// Removes a node. Its entry remains until its holders have left.
    pub fn remove_node(&mut self, name: &str) {
        let Some(id) = self.id(name) else { return };
        if self.book(id).is_none_or(|book| book.spec.is_none()) {
            return;
        }
        Arc::make_mut(&mut self.order).retain(|other| *other != id);
        self.ranks.take();
        self.redescribe(id, None, Vec::new());
        self.close_unless_used(id);
    }

    /// The latest spec of the node; `None` if it does not exist.
    pub fn node_spec(&self, name: &str) -> Option<Arc<NodeSpec>> {
        self.book(self.id(name)?)?.spec.clone()
    }

    fn redescribe(&mut self, id: u32, spec: Option<Arc<NodeSpec>>, offers: Vec<(KindId, Offer)>) {
        let startup_taints = self.startup_taints.clone();
        let Some(book) = self.book_mut(id) else { return };
        let mut kinds = book.kinds();
        let offered = |book: &super::book::NodeAllocations, sign: i128| -> Vec<(KindId, i128)> {
            let kinds = book.kinds().into_iter().filter(|_| book.spec.is_some());
            kinds.map(|kind| (kind, sign * i128::from(book.offer(kind).allocatable))).collect()
        };
        let discourages = |book: &super::book::NodeAllocations| {
            let mut taints = book.facts.taints.iter();
            book.spec.is_some() && taints.any(|taint| taint.effect == TaintEffect::PreferNoSchedule)
        };
        let mut changes = offered(book, -1);
        let discouraged = discourages(book);
        book.describe(spec, offers, &startup_taints);
        let discourages = discourages(book);
        kinds.extend(book.kinds());
        changes.extend(offered(book, 1));
        self.discouraging = self.discouraging + usize::from(discourages) - usize::from(discouraged);
        for (kind, amount) in changes {
            self.totals.offer(kind, amount);
        }
        self.intrude(id);
        for kind in kinds {
            self.refresh(id, kind);
        }
        let facts = self.book(id).filter(|book| book.spec.is_some()).map(|book| book.facts.clone());
        self.eligibility.update(id, facts.as_deref());
        self.graph += 1;
        self.free_on(id);
        self.disturb(None);
    }
}
