//! Making slots of what is below a vertex.

use smallvec::SmallVec;

use super::collector::{By, Candidates, Collector, Group, Taken};
use super::walk::Walk;
use crate::graph::{TypeId, VertexId};
use crate::matcher::policy::{Order, Scoring};
use crate::matcher::request::EntryId;

/// How far into the candidates of each type slots have been made.
type Cursors = SmallVec<[(TypeId, usize); 4]>;

impl Walk<'_, '_, '_> {
    /// Makes as many slots as fit below a vertex and adds them to its candidates.
    pub(super) fn build_slots(&mut self, id: VertexId, slot: EntryId, found: &mut Collector, depth: usize) {
        let request = self.ask.request;
        let entry = request.entry(slot);
        let shape = &entry.with;
        let mut parts = Collector::default();
        if !self.explore(id, shape, false, true, &mut parts, entry.count.largest(), depth) {
            self.note_small(id);
            return;
        }
        self.order_parts(&mut parts);
        let wanted: Vec<(TypeId, u64)> = request
            .list(shape)
            .map(|part| (part.type_id, part.count.take(parts.qualified(part.type_id))))
            .collect();
        let fitting = |&(of, count): &(TypeId, u64)| parts.get(of).map_or(0, |list| shares(list, count));
        let count = wanted.iter().map(fitting).min().unwrap_or(0);
        if count == 0 {
            self.note_small(id);
        }
        let mut cursors = Cursors::new();
        for _ in 0..count {
            let Some(group) = form(&parts, &wanted, &mut cursors) else { return };
            found.add(entry.type_id, group);
        }
    }

    /// Puts what slots are made of in the order of the policy.
    pub(super) fn order_parts(&self, parts: &mut Collector) {
        let order = match self.ask.policy.scoring {
            Scoring::Id(order) => order,
            Scoring::Locality | Scoring::Variation => Order::Descending,
        };
        let ranking = self.ranking(By::Score(order));
        for (_, list) in parts.lists_mut() {
            list.arrange(&ranking);
        }
    }
}

/// How many shares of so many can be made of whole groups, from the front.
fn shares(list: &Candidates, count: u64) -> u64 {
    if count == 0 {
        return 0;
    }
    let (mut made, mut sum) = (0, 0_u64);
    for group in &list.groups {
        sum = sum.saturating_add(group.count);
        if sum >= count {
            made += 1;
            sum = 0;
        }
    }
    made
}

/// One slot, of the next groups that are left; none when they run out.
pub(super) fn form(parts: &Collector, wanted: &[(TypeId, u64)], cursors: &mut Cursors) -> Option<Group> {
    let mut slot = Group { score: 1, count: 1, taken: SmallVec::new() };
    for &(of, count) in wanted {
        let list = parts.get(of)?;
        let known = cursors.iter().position(|(known, _)| *known == of);
        let at = known.unwrap_or_else(|| {
            cursors.push((of, 0));
            cursors.len() - 1
        });
        let cursor = &mut cursors[at].1;
        let mut sum = 0_u64;
        while sum < count {
            let group = list.groups.get(*cursor)?;
            *cursor += 1;
            sum = sum.saturating_add(group.count);
            slot.score = slot.score.saturating_add(group.score);
            let part = group.taken.iter().map(|taken| Taken { needs: group.count, ..*taken });
            slot.taken.extend(part);
        }
    }
    // What is in a slot is for it alone.
    slot.taken.iter_mut().for_each(|taken| taken.exclusive = true);
    Some(slot)
}
