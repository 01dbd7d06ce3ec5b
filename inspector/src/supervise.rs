//! Supervision of tasks and the engine: if one ends unexpectedly, the process exits with an error.

use std::any::Any;
use std::collections::HashMap;
use std::time::Duration;

use tokio::task::{Id, JoinSet};

mod failure;
mod pulse;
mod watchdog;

pub use failure::Failure;
pub use pulse::{Liveness, Pulse};
pub use watchdog::Watchdog;

/// Maximum time for tasks to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Tasks that run as long as the inspector.
#[derive(Debug, Default)]
pub struct Tasks {
    set: JoinSet<()>,
    pulses: HashMap<Id, Pulse>,
}

impl Tasks {
    /// Starts a task; `name` identifies it in errors.
    pub fn spawn(&mut self, name: &str, task: impl Future<Output = ()> + Send + 'static) {
        let pulse = Pulse::new(name);
        let beaten = pulse.clone();
        let id = self.set.spawn(async move { beaten.during(task).await }).id();
        self.pulses.insert(id, pulse);
    }

    /// Their heartbeats: sent by tasks that wait, but not by those that block.
    pub fn pulses(&self) -> impl Iterator<Item = Pulse> {
        self.pulses.values().cloned()
    }

    /// Waits until one of them ends, and returns how. Without tasks, it waits forever.
    pub async fn failed(&mut self) -> Failure {
        let Some(ended) = self.set.join_next_with_id().await else { return std::future::pending().await };
        let (id, error) = match ended {
            Ok((id, ())) => (id, None),
            Err(error) => (error.id(), Some(error)),
        };
        let what =
            self.pulses.remove(&id).map_or_else(|| "a task".to_owned(), |pulse| pulse.what().to_owned());
        match error.and_then(|error| error.try_into_panic().ok()) {
            Some(panic) => Failure::Panicked { what, message: message_of(&*panic).to_owned() },
            None => Failure::Ended(what),
        }
    }

    /// Stops all of them, and waits until they have ended; not long for one that blocks.
    pub async fn shutdown(&mut self) {
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.set.shutdown()).await;
    }
}

/// The message of a panic.
pub fn message_of(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_and_an_end_are_told_by_name() {
        let mut tasks = Tasks::default();
        tasks.spawn("waits", std::future::pending());
        tasks.spawn("the watch of Node", async { panic!("index {} out of bounds", 7) });
        let failure = tasks.failed().await;
        assert_eq!(failure.to_string(), "the watch of Node panicked: index 7 out of bounds");
        tasks.spawn("the writer", async {});
        assert_eq!(tasks.failed().await.to_string(), "the writer stopped unexpectedly");
    }
}
