//! The log on stderr, and a limit on how often one thing is said in it.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tracing_subscriber::EnvFilter;

use crate::cli::LogFormat;

/// Starts the log; `RUST_LOG` filters it, else `level` does. A second call changes nothing.
pub fn start(format: LogFormat, level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    if started.is_err() {
        tracing::debug!("the log was started before");
    }
}

/// Lets something be said once in a while, and counts what was left out.
#[derive(Debug)]
pub struct Seldom {
    every: Duration,
    last: Mutex<(Option<Instant>, u64)>,
}

impl Seldom {
    /// Once in `every`.
    pub const fn new(every: Duration) -> Self {
        Self { every, last: Mutex::new((None, 0)) }
    }

    /// `Some(n)`: say it now; it was left out n times since it was last said.
    pub fn now(&self) -> Option<u64> {
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if last.0.is_some_and(|said| said.elapsed() < self.every) {
            last.1 += 1;
            return None;
        }
        let left_out = last.1;
        *last = (Some(Instant::now()), 0);
        Some(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_too_often_is_counted() {
        let seldom = Seldom::new(Duration::from_millis(30));
        assert_eq!(seldom.now(), Some(0));
        assert_eq!((seldom.now(), seldom.now()), (None, None));
        std::thread::sleep(Duration::from_millis(40));
        assert_eq!(seldom.now(), Some(2));
    }
}
