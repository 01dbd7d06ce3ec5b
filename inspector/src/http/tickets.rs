//! Limits on how many of something there are at once: in all, and of one holder. Who has shown no right yet makes way.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// Counts what is under way, by holder.
#[derive(Debug)]
pub(super) struct Tickets<K> {
    most: usize,
    most_of_one: usize,
    taken: Mutex<Taken<K>>,
}

#[derive(Debug)]
struct Taken<K> {
    next: u64,
    /// By number, so the oldest is first.
    held: BTreeMap<u64, Held<K>>,
    by_holder: HashMap<K, usize>,
}

#[derive(Debug)]
struct Held<K> {
    holder: K,
    /// It stays whatever comes.
    proven: bool,
    ended: CancellationToken,
}

/// One that is under way, until dropped.
#[derive(Debug)]
pub(super) struct Ticket<K: Hash + Eq> {
    tickets: Arc<Tickets<K>>,
    number: u64,
    ended: CancellationToken,
}

impl<K: Hash + Eq + Clone> Tickets<K> {
    pub(super) fn new(most: usize, most_of_one: usize) -> Arc<Self> {
        let taken = Taken { next: 0, held: BTreeMap::new(), by_holder: HashMap::new() };
        Arc::new(Self { most, most_of_one, taken: Mutex::new(taken) })
    }

    /// One for this holder. Where there is none left, the oldest that is not [proven](Ticket::prove) ends: one of the same
    /// holder, or, when there are too many in all, of the holder that has most. `None` if all are proven.
    pub(super) fn take(self: &Arc<Self>, holder: K) -> Option<Ticket<K>> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.by_holder.get(&holder).is_some_and(|count| *count >= self.most_of_one) {
            let own = taken.held.iter().find(|(_, held)| !held.proven && held.holder == holder);
            let number = *own?.0;
            taken.end(number);
        } else if taken.held.len() >= self.most {
            let number = taken.least_missed()?;
            taken.end(number);
        }
        let number = taken.next;
        taken.next += 1;
        *taken.by_holder.entry(holder.clone()).or_default() += 1;
        let ended = CancellationToken::new();
        taken.held.insert(number, Held { holder, proven: false, ended: ended.clone() });
        Some(Ticket { tickets: Arc::clone(self), number, ended })
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).held.is_empty()
    }

    /// How many there may be in all.
    pub(super) fn most(&self) -> usize {
        self.most
    }
}

impl<K: Hash + Eq> Taken<K> {
    /// The oldest that is not proven, of the holder that has most of these.
    fn least_missed(&self) -> Option<u64> {
        let mut oldest: HashMap<&K, (usize, u64)> = HashMap::new();
        for (number, held) in self.held.iter().filter(|(_, held)| !held.proven) {
            oldest.entry(&held.holder).or_insert((0, *number)).0 += 1;
        }
        let of_most = oldest.into_values().max_by_key(|(count, number)| (*count, std::cmp::Reverse(*number)));
        of_most.map(|(_, number)| number)
    }

    fn end(&mut self, number: u64) {
        let Some(held) = self.held.remove(&number) else { return };
        held.ended.cancel();
        if let Some(count) = self.by_holder.get_mut(&held.holder) {
            *count -= 1;
            if *count == 0 {
                self.by_holder.remove(&held.holder);
            }
        }
    }
}

impl<K: Hash + Eq> Ticket<K> {
    /// From now on, it makes way for no other.
    pub(super) fn prove(&self) {
        let mut taken = self.tickets.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = taken.held.get_mut(&self.number) {
            held.proven = true;
        }
    }

    /// Waits until it has to make way for another one.
    pub(super) fn ended(&self) -> WaitForCancellationFuture<'_> {
        self.ended.cancelled()
    }
}

impl<K: Hash + Eq> Drop for Ticket<K> {
    fn drop(&mut self) {
        let mut taken = self.tickets.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.end(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_ended(ticket: &Ticket<&str>) -> bool {
        ticket.ended.is_cancelled()
    }

    #[test]
    fn no_holder_takes_all_and_what_ends_is_free_again() {
        let tickets = Tickets::new(3, 2);
        let proven = |holder| tickets.take(holder).inspect(Ticket::prove);
        let held: Vec<_> = (0..5).filter_map(|_| proven("one")).collect();
        assert_eq!(held.len(), 2);
        let last = proven("other").unwrap();
        assert!(proven("other").is_none() && proven("third").is_none(), "there are no more");
        drop(held);
        assert!(proven("one").is_some());
        assert!(!has_ended(&last));
        drop(last);
        assert!(tickets.is_idle() && tickets.taken.lock().unwrap().by_holder.is_empty());
    }

    #[test]
    fn the_oldest_that_has_proved_nothing_makes_way() {
        let tickets = Tickets::new(4, 3);
        let first = tickets.take("one").unwrap();
        first.prove();
        let (second, third) = (tickets.take("one").unwrap(), tickets.take("one").unwrap());
        let fourth = tickets.take("one").unwrap();
        assert!(!has_ended(&first) && has_ended(&second) && !has_ended(&third));
        drop(second);
        // In all: the holder with most of them, though another one's is older.
        let other = tickets.take("other").unwrap();
        let third_holder = tickets.take("third").unwrap();
        assert!(has_ended(&third) && !has_ended(&fourth) && !has_ended(&other));
        for ticket in [&fourth, &other, &third_holder] {
            ticket.prove();
        }
        assert!(tickets.take("new").is_none());
        drop((first, third, fourth, other, third_holder));
        assert!(tickets.is_idle());
    }
}
