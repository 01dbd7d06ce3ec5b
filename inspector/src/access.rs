//! Who asks over the secure port, and what they may do: the API server of the cluster knows both.
//!
//! Users come through kube-apiserver's front proxy ([`front_proxy`]), with a bearer token of their own ([`token`]), or by way
//! of another inspector that forwards their requests ([`replica`]). What they may do is asked by `SubjectAccessReview`
//! ([`review`]). Knows nothing of routes and controllers.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;

pub mod attributes;
mod error;
mod expiring;
pub mod front_proxy;
pub mod headers;
pub mod peer;
mod rate;
pub mod replica;
pub mod review;
pub mod token;
pub mod user;

use attributes::{Attributes, RESOURCE_JOBS, RESOURCE_NODES};
pub use error::AccessError;
pub(crate) use expiring::Expiring;
use front_proxy::FrontProxy;
use peer::Peer;
use replica::Replicas;
use review::{Decision, Reviews};
use token::Tokens;
use user::User;

use crate::tls::replica::ReplicaTls;

/// How long answers of the API server hold: a right that was taken away, or a revoked token, is good for as long.
const HOLDS: Duration = Duration::from_secs(10);
/// An answer that lasts is only for as long as its user has the right to it: that is looked at this often.
const RECHECK: Duration = Duration::from_secs(30);

/// How a user was recognised, so that it can be done again.
#[derive(Clone)]
pub enum Credential {
    /// kube-apiserver vouches for the user for as long as it keeps the connection.
    FrontProxy,
    /// Another inspector vouches for the user, and looks at the user's credential again while it keeps the connection.
    Replica,
    /// A bearer token; it may be revoked.
    Token(Arc<str>),
}

impl std::fmt::Debug for Credential {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::FrontProxy => "FrontProxy",
            Self::Replica => "Replica",
            Self::Token(_) => "Token",
        })
    }
}

/// What a user may see beside the object asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Jobs of all namespaces.
    pub all_namespaces: bool,
    /// What is known of nodes: their labels.
    pub nodes: bool,
}

/// Answers who asks and what they may, for one cluster.
pub struct Access {
    front_proxy: Arc<FrontProxy>,
    replicas: Replicas,
    tokens: Tokens,
    reviews: Reviews,
    recheck: Duration,
}

impl Access {
    /// Asks the cluster of `client`. Tokens must be meant for one of `audiences`; empty: for the API server.
    pub fn new(client: Client, audiences: Vec<String>) -> Self {
        Self::paced(client, audiences, HOLDS, RECHECK)
    }

    /// The same, where answers hold for as long, and are looked at again as often, as is said.
    pub(crate) fn paced(client: Client, audiences: Vec<String>, holds: Duration, recheck: Duration) -> Self {
        Self {
            front_proxy: Arc::default(),
            replicas: Replicas::default(),
            tokens: Tokens::new(client.clone(), audiences, holds),
            reviews: Reviews::new(client, holds),
            recheck,
        }
    }

    /// Believes other inspectors that show a certificate which this trusts.
    #[must_use]
    pub fn with_replicas(mut self, tls: Arc<ReplicaTls>) -> Self {
        self.replicas = Replicas::new(tls);
        self
    }

    /// The other inspectors.
    pub fn replicas(&self) -> &Replicas {
        &self.replicas
    }

    /// How often [`still`](Self::still) and [`authorise`](Self::authorise) are to be asked of an answer that lasts.
    pub fn recheck(&self) -> Duration {
        self.recheck
    }

    /// Whom the front proxy's certificate is compared with.
    pub fn front_proxy(&self) -> &Arc<FrontProxy> {
        &self.front_proxy
    }

    /// Who sends these headers over a connection of this peer.
    pub async fn identify(
        &self,
        peer: &Peer,
        headers: &http::HeaderMap,
    ) -> Result<(User, Credential), AccessError> {
        if let Some(user) = self.front_proxy.user(peer, headers) {
            return Ok((user, Credential::FrontProxy));
        }
        if self.replicas.is(peer) {
            // Never by a token: what it vouches for is in the headers.
            let user = self.replicas.user(peer, headers).ok_or(AccessError::Unauthenticated)?;
            return Ok((user, Credential::Replica));
        }
        let token = token::bearer(headers).ok_or(AccessError::Unauthenticated)?;
        let user = self.tokens.user(token, peer.address.ip()).await?;
        Ok((user, Credential::Token(Arc::from(token))))
    }

    /// Fails unless the credential is still good for this user.
    pub async fn still(&self, peer: &Peer, user: &User, credential: &Credential) -> Result<(), AccessError> {
        match credential {
            Credential::FrontProxy | Credential::Replica => Ok(()),
            Credential::Token(token) if self.tokens.user(token, peer.address.ip()).await? == *user => Ok(()),
            Credential::Token(_) => Err(AccessError::Unauthenticated),
        }
    }

    /// Fails with the text of kube-apiserver unless the user may do this.
    pub async fn authorise(&self, user: &User, attributes: &Attributes) -> Result<(), AccessError> {
        if attributes.verb.is_empty() {
            // No authoriser has a word for such a method.
            return Err(AccessError::Forbidden(attributes.forbidden(user, "")));
        }
        match self.reviews.decide(user, attributes).await? {
            Decision { allowed: true, .. } => Ok(()),
            Decision { reason, .. } => Err(AccessError::Forbidden(attributes.forbidden(user, &reason))),
        }
    }

    /// What the user may see of others.
    pub async fn sight(&self, user: &User) -> Result<Sight, AccessError> {
        let all = self.reviews.decide(user, &Attributes::list(RESOURCE_JOBS)).await?.allowed;
        let nodes = all || self.reviews.decide(user, &Attributes::list(RESOURCE_NODES)).await?.allowed;
        Ok(Sight { all_namespaces: all, nodes })
    }
}

#[cfg(test)]
pub(crate) mod tests;
