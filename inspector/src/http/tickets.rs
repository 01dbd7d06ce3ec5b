//! Limits on how many of something there are at once: in all, and of one sender.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::access::peer::sender;

/// Counts what is under way.
#[derive(Debug)]
pub(super) struct Tickets {
    most: usize,
    most_of_one: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_sender: HashMap<IpAddr, usize>,
}

/// One that is under way, until dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    tickets: Arc<Tickets>,
    sender: IpAddr,
}

impl Tickets {
    pub(super) fn new(most: usize, most_of_one: usize) -> Arc<Self> {
        Arc::new(Self { most, most_of_one, taken: Mutex::default() })
    }

    /// One for the sender at this address, where there is one left.
    pub(super) fn take(self: &Arc<Self>, address: IpAddr) -> Option<Ticket> {
        let sender = sender(address);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_one = taken.by_sender.get(&sender).copied().unwrap_or_default();
        if taken.all >= self.most || of_one >= self.most_of_one {
            return None;
        }
        taken.all += 1;
        taken.by_sender.insert(sender, of_one + 1);
        Some(Ticket { tickets: Arc::clone(self), sender })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut taken = self.tickets.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all = taken.all.saturating_sub(1);
        if let Some(count) = taken.by_sender.get_mut(&self.sender) {
            *count -= 1;
            if *count == 0 {
                taken.by_sender.remove(&self.sender);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sender_takes_all_and_what_ends_is_free_again() {
        let tickets = Tickets::new(3, 2);
        let (one, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let held: Vec<_> = (0..5).filter_map(|_| tickets.take(one)).collect();
        assert_eq!(held.len(), 2);
        let last = tickets.take(other).unwrap();
        assert!(tickets.take(other).is_none(), "there are no more");
        drop(held);
        assert!(tickets.take(one).is_some());
        drop(last);
        assert!(tickets.taken.lock().unwrap().by_sender.is_empty());
    }
}
