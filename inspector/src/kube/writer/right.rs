//! The right to write, which is withdrawn or ends by itself.

use tokio::sync::watch as signal;
use tokio::time::Instant;

/// Until when we may write, unless that is withdrawn or prolonged before; none: not at all.
#[derive(Clone, Debug)]
pub struct Right(signal::Receiver<Option<Instant>>);

impl Right {
    pub fn new(until: signal::Receiver<Option<Instant>>) -> Self {
        Self(until)
    }

    /// Whether we may write now.
    pub fn holds(&self) -> bool {
        self.0.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// Returns once we may not write any more.
    pub async fn ended(&mut self) {
        loop {
            let until = *self.0.borrow_and_update();
            let Some(until) = until.filter(|until| Instant::now() < *until) else { return };
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                changed = self.0.changed() => if changed.is_err() {
                    // Nobody prolongs it any more.
                    tokio::time::sleep_until(until).await;
                    return;
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn within(milliseconds: u64) -> Instant {
        Instant::now() + Duration::from_millis(milliseconds)
    }

    #[tokio::test]
    async fn it_ends_by_itself_or_when_it_is_withdrawn_and_may_be_prolonged() {
        let (grant, granted) = signal::channel(None);
        let mut right = Right::new(granted);
        assert!(!right.holds());
        right.ended().await;

        grant.send_replace(Some(within(100)));
        let prolonged = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let until = within(300);
            grant.send_replace(Some(until));
            until
        };
        let mut other = right.clone();
        let ((), until) = tokio::join!(other.ended(), prolonged);
        assert!(Instant::now() >= until && !right.holds());

        let until = within(60_000);
        grant.send_replace(Some(until));
        assert!(right.holds());
        let withdrawn = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            grant.send_replace(None)
        };
        tokio::join!(right.ended(), withdrawn);
        assert!(Instant::now() < until);

        grant.send_replace(Some(within(100)));
        drop(grant);
        assert!(right.holds());
        right.ended().await;
        assert!(!right.holds());
    }
}
