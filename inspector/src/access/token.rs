//! Bearer tokens: the API server reviews them, and what it says holds for some seconds.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use http::{HeaderMap, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use kube::api::PostParams;
use kube::{Api, Client};
use sha2::{Digest, Sha256};

use super::error::AccessError;
use super::expiring::Expiring;
use super::rate::Rate;
use super::user::User;
use crate::logs::kube_error;

/// Tokens whose review is remembered.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(4096).expect("not zero");
/// Longer texts are no tokens (bytes).
const LONGEST: usize = 32 * 1024;
/// A review that takes longer is given up.
const LIMIT: Duration = Duration::from_secs(10);

/// Reviews tokens.
pub(super) struct Tokens {
    client: Client,
    audiences: Vec<String>,
    known: Expiring<[u8; 32], Option<User>>,
    rate: Rate,
}

impl Tokens {
    pub(super) fn new(client: Client, audiences: Vec<String>, holds: Duration) -> Self {
        Self { client, audiences, known: Expiring::new(REMEMBERED, holds), rate: Rate::default() }
    }

    /// Whose token this is; `from` sent it.
    pub(super) async fn user(&self, token: &str, from: IpAddr) -> Result<User, AccessError> {
        if token.len() > LONGEST {
            return Err(AccessError::Unauthenticated);
        }
        let key = Sha256::digest(token.as_bytes()).into();
        let now = Instant::now();
        if let Some(known) = self.known.get(&key, now) {
            return known.ok_or(AccessError::Unauthenticated);
        }
        if !self.rate.allows(from, now) {
            return Err(AccessError::TooManyReviews);
        }
        let user = self.review(token).await?;
        self.known.put(key, user.clone(), now);
        user.ok_or(AccessError::Unauthenticated)
    }

    async fn review(&self, token: &str) -> Result<Option<User>, AccessError> {
        let asked = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                audiences: (!self.audiences.is_empty()).then(|| self.audiences.clone()),
            },
            ..TokenReview::default()
        };
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let answer = tokio::time::timeout(LIMIT, api.create(&PostParams::default(), &asked)).await;
        let status = match answer {
            Ok(Ok(review)) => review.status.unwrap_or_default(),
            Ok(Err(error)) => {
                tracing::warn!(error = kube_error(&error), "failed to review a token");
                return Err(AccessError::Unavailable);
            }
            Err(_) => {
                tracing::warn!("failed to review a token: the API server does not respond");
                return Err(AccessError::Unavailable);
            }
        };
        // Whoever answers without audiences knows none: such a token is meant for the API server.
        let audiences = status.audiences.unwrap_or_default();
        let meant =
            self.audiences.is_empty() || self.audiences.iter().any(|wanted| audiences.contains(wanted));
        let good = status.authenticated == Some(true) && meant;
        Ok(status.user.filter(|_| good).and_then(user))
    }
}

fn user(info: UserInfo) -> Option<User> {
    let name = info.username.filter(|name| !name.is_empty())?;
    let extra = info.extra.unwrap_or_default();
    Some(User {
        name: name.into(),
        uid: info.uid.unwrap_or_default(),
        groups: info.groups.unwrap_or_default(),
        extra: extra.into_iter().map(|(key, values)| (key.to_lowercase(), values)).collect(),
    })
}

/// The bearer token of a request.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
