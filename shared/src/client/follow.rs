//! List and watch with automatic retries, for live views.

use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};

use super::{Client, Error, Resource, Selection};
use crate::meta::{ListMeta, WatchEvent};

/// A change to the followed objects.
#[derive(Debug)]
pub enum Change<T> {
    /// The complete list of objects; replaces everything received before.
    All(ListMeta, Vec<T>),
    /// An object was added or modified.
    Set(T),
    Gone(T),
    /// No change, but the server responded.
    Alive,
    /// The connection was lost; it is retried automatically.
    Lost(Error),
}

type Events<T> = Pin<Box<dyn Stream<Item = Result<WatchEvent<T>, Error>> + Send>>;

struct Follower<T> {
    client: Client,
    selection: Selection,
    events: Option<Events<T>>,
    wait: Duration,
}

const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// Follows the selected objects for as long as the stream is polled. The stream never ends: after
/// [`Change::Lost`] it retries with exponential backoff (up to 8 s), honoring `Retry-After` up to that limit.
pub fn follow<T: Resource>(client: Client, selection: Selection) -> impl Stream<Item = Change<T>> + Send {
    let follower = Follower { client, selection, events: None, wait: Duration::ZERO };
    stream::unfold(follower, |mut follower| async move {
        let change = follower.step().await;
        Some((change, follower))
    })
}

impl<T: Resource> Follower<T> {
    async fn step(&mut self) -> Change<T> {
        loop {
            let Some(events) = &mut self.events else {
                match self.begin().await {
                    Ok(change) => return change,
                    Err(error) => return self.lost(error),
                }
            };
            match events.next().await {
                Some(Ok(event)) => {
                    self.wait = Duration::ZERO;
                    return match event.type_.as_str() {
                        "ADDED" | "MODIFIED" => Change::Set(event.object),
                        "DELETED" => Change::Gone(event.object),
                        _ => Change::Alive,
                    };
                }
                // Too old a position is no loss: a fresh list mends it.
                Some(Err(Error::Expired { .. })) | None => {
                    self.events = None;
                    self.wait = self.wait.max(FIRST_WAIT);
                }
                Some(Err(error)) => return self.lost(error),
            }
        }
    }

    async fn begin(&mut self) -> Result<Change<T>, Error> {
        if !self.wait.is_zero() {
            tokio::time::sleep(self.wait).await;
        }
        let list = self.client.list::<T>(&self.selection).await?;
        let events = self.client.watch::<T>(&self.selection, &list.metadata.resource_version).await?;
        self.events = Some(Box::pin(events));
        Ok(Change::All(list.metadata, list.items))
    }

    fn lost(&mut self, error: Error) -> Change<T> {
        self.events = None;
        self.wait = (self.wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
        if let Error::NotReady { retry_after: Some(seconds), .. } = &error {
            self.wait = self.wait.max(Duration::from_secs(*seconds)).min(LONGEST_WAIT);
        }
        Change::Lost(error)
    }
}
