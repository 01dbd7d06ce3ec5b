//! List, then watch, then begin again when that ends: what a live view is fed from.

use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};

use super::{Client, Error, Resource, Selection};
use crate::meta::{ListMeta, WatchEvent};

/// One step of following a kind of objects.
#[derive(Debug)]
pub enum Change<T> {
    /// Everything there is now; what was known before is void.
    All(ListMeta, Vec<T>),
    /// New or changed.
    Set(T),
    Gone(T),
    /// Nothing changed, and the server is alive.
    Alive,
    /// The server is lost; it is tried again by itself.
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

/// Follows the selected objects for as long as the stream is read. It never ends by itself: after
/// [`Change::Lost`] the next item is waited for longer each time (up to 8 s, or what the server asks for).
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
