//! What a user may do: the API server decides, and what it says holds for some seconds.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::Semaphore;

use super::attributes::{Attributes, What};
use super::error::AccessError;
use super::expiring::Expiring;
use super::user::User;
use crate::logs::kube_error;

/// Decisions that are remembered.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(8192).expect("not zero");
/// Questions at once; others wait.
const AT_ONCE: usize = 32;
/// A review that takes longer, waiting included, is given up.
const LIMIT: Duration = Duration::from_secs(10);
/// Characters of an authoriser's reason.
const LONGEST: usize = 1024;

/// What the API server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub allowed: bool,
    /// Why; often empty.
    pub reason: Arc<str>,
}

/// Asks for decisions.
pub struct Reviews {
    client: Client,
    known: Expiring<(User, Attributes), Decision>,
    free: Semaphore,
}

impl Reviews {
    pub(super) fn new(client: Client, holds: Duration) -> Self {
        Self { client, known: Expiring::new(REMEMBERED, holds), free: Semaphore::new(AT_ONCE) }
    }

    /// Whether the user may do this.
    pub(super) async fn decide(&self, user: &User, attributes: &Attributes) -> Result<Decision, AccessError> {
        let key = (user.clone(), attributes.clone());
        let now = Instant::now();
        if let Some(known) = self.known.get(&key, now) {
            return Ok(known);
        }
        let asked = SubjectAccessReview { spec: spec(user, attributes), ..SubjectAccessReview::default() };
        let review = async {
            // It is never closed.
            let _free = self.free.acquire().await;
            let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
            api.create(&PostParams::default(), &asked).await
        };
        let status = match tokio::time::timeout(LIMIT, review).await {
            Ok(Ok(review)) => review.status.unwrap_or_default(),
            Ok(Err(error)) => {
                tracing::warn!(error = kube_error(&error), "failed to review a permission");
                return Err(AccessError::Unavailable);
            }
            Err(_) => {
                tracing::warn!("failed to review a permission: the API server does not respond");
                return Err(AccessError::Unavailable);
            }
        };
        let reason: String = status.reason.unwrap_or_default().chars().take(LONGEST).collect();
        let decision =
            Decision { allowed: status.allowed && status.denied != Some(true), reason: reason.into() };
        self.known.put(key, decision.clone(), now);
        Ok(decision)
    }
}

fn spec(user: &User, attributes: &Attributes) -> SubjectAccessReviewSpec {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let mut spec = SubjectAccessReviewSpec {
        user: Some(user.name.to_string()),
        uid: some(&user.uid),
        groups: Some(user.groups.clone()),
        extra: Some(user.extra.clone()),
        ..SubjectAccessReviewSpec::default()
    };
    match &attributes.what {
        What::Resource { group, version, namespace, resource, subresource, name } => {
            spec.resource_attributes = Some(ResourceAttributes {
                verb: some(attributes.verb),
                group: some(group),
                version: some(version),
                namespace: some(namespace),
                resource: some(resource),
                subresource: some(subresource),
                name: some(name),
                ..ResourceAttributes::default()
            });
        }
        What::Path(path) => {
            spec.non_resource_attributes =
                Some(NonResourceAttributes { path: some(path), verb: some(attributes.verb) });
        }
    }
    spec
}
