//! Waiting for something to become true, with a message that says what was seen instead.

use std::future::Future;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::Instant;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Looks again and again until `look` answers `Ok`; after `limit` fails with its last answer.
///
/// `what` completes "waited N s until …". The answer of a look that failed says what was there instead.
pub async fn until<T, F, Fut>(what: &str, limit: Duration, mut look: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T>>,
{
    let end = Instant::now() + limit;
    loop {
        let last = match look().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if Instant::now() >= end {
            bail!("waited {} s until {what}; last seen: {last:#}", limit.as_secs());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Looks for the whole of `time` and fails as soon as `look` does: for what must not happen.
pub async fn throughout<F, Fut>(what: &str, time: Duration, mut look: F) -> Result<()>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let start = Instant::now();
    while start.elapsed() < time {
        if let Err(error) = look().await {
            bail!(
                "{what} did not stay so ({:.1} s of {} s): {error:#}",
                start.elapsed().as_secs_f64(),
                time.as_secs()
            );
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use anyhow::anyhow;

    use super::*;

    #[tokio::test]
    async fn until_returns_the_first_success() {
        let looks = Cell::new(0);
        let look = || {
            looks.set(looks.get() + 1);
            let seen = looks.get();
            async move { if seen < 3 { Err(anyhow!("only {seen}")) } else { Ok(seen) } }
        };
        assert_eq!(until("three", Duration::from_secs(9), look).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn until_says_what_it_saw_last() {
        let look = || async { bail!("0 of 4 bound") };
        let error = until::<(), _, _>("all are bound", Duration::from_secs(1), look).await.unwrap_err();
        assert_eq!(error.to_string(), "waited 1 s until all are bound; last seen: 0 of 4 bound");
    }

    #[tokio::test]
    async fn throughout_fails_on_the_first_failure() {
        let looks = Cell::new(0);
        let look = || {
            looks.set(looks.get() + 1);
            let seen = looks.get();
            async move { if seen == 3 { Err(anyhow!("bound")) } else { Ok(()) } }
        };
        assert!(throughout("unbound", Duration::from_secs(1), look).await.is_err());
        assert!(throughout("unbound", Duration::from_millis(200), || async { Ok(()) }).await.is_ok());
    }
}
