//! Detects a stuck loop, on its own thread, so that nothing that hangs can block it.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::{Failure, Liveness};

/// Maximum time for an orderly shutdown after a loop was found stuck.
const LAST_CHANCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// If a sleep takes longer by this much, the whole process was suspended.
const OVERSLEPT: Duration = Duration::from_secs(5);

/// Reports which loop is stuck.
#[derive(Clone, Debug)]
pub struct Watchdog(watch::Receiver<Option<Failure>>);

impl Watchdog {
    /// Watches these loops from now on. If one is stuck, the process is terminated unless it shuts down in time.
    ///
    /// # Errors
    /// The system can't start another thread.
    pub fn start(liveness: Liveness) -> std::io::Result<Self> {
        let (sender, receiver) = watch::channel(None);
        std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            let Some(failure) = look(&liveness, &sender) else { return };
            sender.send_replace(Some(failure.clone()));
            let told = Instant::now();
            while told.elapsed() < LAST_CHANCE {
                std::thread::sleep(LOOK_EVERY);
                if sender.is_closed() {
                    return;
                }
            }
            // The task that should end the process hangs too.
            eprintln!("error: {failure}; the process can't shut down gracefully");
            std::process::exit(1);
        })?;
        Ok(Self(receiver))
    }

    /// Waits until a loop is stuck.
    pub async fn stuck(&mut self) -> Failure {
        match self.0.wait_for(Option::is_some).await {
            Ok(found) => found.clone().unwrap_or_else(|| Failure::Ended("the watchdog".to_owned())),
            Err(_) => Failure::Ended("the watchdog".to_owned()),
        }
    }
}

/// The first stuck loop; none when the receiver is gone.
fn look(liveness: &Liveness, sender: &watch::Sender<Option<Failure>>) -> Option<Failure> {
    // A process that was suspended has missed all heartbeats: only time since it was resumed counts.
    let mut awake = Instant::now();
    loop {
        let before = Instant::now();
        std::thread::sleep(LOOK_EVERY);
        if sender.is_closed() {
            return None;
        }
        if before.elapsed() > OVERSLEPT {
            awake = Instant::now();
        }
        let stuck = liveness.stuck(Some(awake));
        if stuck.is_some() {
            return stuck;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pulse;
    use super::*;

    #[tokio::test]
    async fn a_loop_that_turns_no_more_is_named_and_one_that_turns_is_not() {
        let (alive, stuck) = (Pulse::new("the Lease"), Pulse::new("the engine"));
        let limit = Duration::from_secs(1);
        let liveness = Liveness::new(vec![alive.clone(), stuck], limit);
        let mut watchdog = Watchdog::start(liveness.clone()).unwrap();
        let beating = tokio::spawn(async move {
            loop {
                alive.beat();
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        let began = Instant::now();
        let Failure::Stuck { what, .. } = watchdog.stuck().await else { panic!("another failure") };
        assert!(what == "the engine" && began.elapsed() >= limit);
        assert_eq!(liveness.times(9).stuck(None), None);
        beating.abort();
    }
}
