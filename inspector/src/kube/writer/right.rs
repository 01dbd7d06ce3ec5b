//! The right to write, which is withdrawn or ends by itself.

use tokio::sync::watch as signal;

use crate::health::Term;

/// The term in which we may write, until it ends, or is withdrawn or prolonged before; none: we may not.
#[derive(Clone, Debug)]
pub struct Right(signal::Receiver<Option<Term>>);

impl Right {
    pub fn new(term: signal::Receiver<Option<Term>>) -> Self {
        Self(term)
    }

    /// The number of the term in which we may write now.
    pub fn term(&self) -> Option<u64> {
        let term = *self.0.borrow();
        term.filter(Term::lasts).map(|term| term.number)
    }

    /// Returns once we may not write any more in the term with this number.
    pub async fn ended(&mut self, number: u64) {
        loop {
            let term = *self.0.borrow_and_update();
            let Some(term) = term.filter(|term| term.number == number && term.lasts()) else { return };
            tokio::select! {
                () = tokio::time::sleep_until(term.until) => {}
                changed = self.0.changed() => if changed.is_err() {
                    // Nobody prolongs it any more.
                    tokio::time::sleep_until(term.until).await;
                    return;
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    fn within(number: u64, milliseconds: u64) -> Term {
        Term { number, until: Instant::now() + Duration::from_millis(milliseconds) }
    }

    #[tokio::test]
    async fn it_ends_by_itself_or_when_it_is_withdrawn_and_may_be_prolonged() {
        let (grant, granted) = signal::channel(None);
        let mut right = Right::new(granted);
        assert_eq!(right.term(), None);
        right.ended(1).await;

        grant.send_replace(Some(within(1, 100)));
        let prolonged = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let term = within(1, 300);
            grant.send_replace(Some(term));
            term.until
        };
        let mut other = right.clone();
        let ((), until) = tokio::join!(other.ended(1), prolonged);
        assert!(Instant::now() >= until && right.term().is_none());

        let until = within(1, 60_000).until;
        grant.send_replace(Some(Term { number: 1, until }));
        assert_eq!(right.term(), Some(1));
        let withdrawn = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            grant.send_replace(None)
        };
        tokio::join!(right.ended(1), withdrawn);
        assert!(Instant::now() < until);

        grant.send_replace(Some(within(1, 100)));
        drop(grant);
        assert_eq!(right.term(), Some(1));
        right.ended(1).await;
        assert_eq!(right.term(), None);
    }

    #[tokio::test]
    async fn the_right_of_a_term_ends_when_another_term_begins() {
        let (grant, granted) = signal::channel(Some(within(1, 60_000)));
        let mut right = Right::new(granted);
        let elected_again = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            grant.send_replace(Some(within(2, 60_000)))
        };
        tokio::time::timeout(Duration::from_secs(20), async { tokio::join!(right.ended(1), elected_again) })
            .await
            .unwrap();
        assert_eq!(right.term(), Some(2));
    }
}
