//! A user's right to what was asked for, and what the user may see with it.

use std::sync::Arc;
use std::time::Duration;

use super::refusal::Refusal;
use crate::access::attributes::Attributes;
use crate::access::peer::Peer;
use crate::access::user::User;
use crate::access::{Access, AccessError, Credential};
use crate::view::Viewer;

/// So many looks at a right may fail in a row because nobody can be asked.
pub(super) const UNANSWERED: u32 = 10;

/// A user's right to what was asked for, to be looked at again while an answer lasts.
pub(super) struct Standing {
    pub access: Arc<Access>,
    pub peer: Peer,
    pub user: User,
    pub credential: Credential,
    pub attributes: Attributes,
    pub viewer: Viewer,
}

impl std::fmt::Debug for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Standing").field("user", &self.user.name).finish_non_exhaustive()
    }
}

impl Standing {
    /// How often to check.
    pub(super) fn every(&self) -> Duration {
        self.access.recheck()
    }

    /// Fails when the right is gone, or what the user may see has changed.
    pub(super) async fn check(&self) -> Result<(), Refusal> {
        self.access.still(&self.peer, &self.user, &self.credential).await?;
        self.access.authorise(&self.user, &self.attributes).await?;
        if viewer(&self.access, &self.user, &self.attributes).await? == self.viewer {
            Ok(())
        } else {
            Err(Refusal::Expired(
                "your permissions have changed: list again and restart the watch".to_owned(),
            ))
        }
    }

    /// Returns the reason when the right is gone, or what the user may see has changed.
    pub(super) async fn lost(&self) -> Refusal {
        let mut unanswered = 0;
        loop {
            tokio::time::sleep(self.every()).await;
            match self.check().await {
                Ok(()) => unanswered = 0,
                Err(Refusal::Unavailable(_) | Refusal::TooManyTokens) if unanswered < UNANSWERED => {
                    unanswered += 1;
                }
                Err(refusal) => return refusal,
            }
        }
    }
}

/// What the user may see: all, or the namespace that the request is about.
pub(super) async fn viewer(access: &Access, user: &User, attributes: &Attributes) -> Result<Viewer, Refusal> {
    let sight = access.sight(user).await?;
    if sight.all_namespaces || attributes.is_all_jobs() {
        return Ok(Viewer::everything());
    }
    let namespace = attributes.jobs_of().map(Into::into);
    Ok(Viewer::namespaces(namespace).with_nodes(sight.nodes))
}

impl From<AccessError> for Refusal {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::Unauthenticated => Self::Unauthenticated,
            AccessError::Forbidden(message) => Self::Forbidden(message),
            AccessError::TooManyReviews => Self::TooManyTokens,
            AccessError::Unavailable => Self::Unavailable("failed to check permissions with the API server"),
        }
    }
}
