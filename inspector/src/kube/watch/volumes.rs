//! Pods together with the claims they mount: a Pod whose volume is not bound yet can't be placed by us.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fluxion_core::event::Event;
use fluxion_core::model::{PodSpec, Text, Unsupported};
use futures::Stream;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::runtime::watcher::{self, Event as WatchEvent};

use crate::kube::translate::{Unreadable, pod};

use super::follow::Follow;
use super::known::Known;

/// Namespace and name of a claim.
type Claim = (Text, Text);

#[derive(Default)]
struct Content {
    bound: BTreeSet<Claim>,
    /// Pods that mount claims and are not on a node yet, by uid; said again when a claim changes.
    waiting: BTreeMap<Text, (PodSpec, Vec<Text>)>,
    users: BTreeMap<Claim, BTreeSet<Text>>,
}

/// What both watches share. It stays locked while an event is handed over, so that the engine hears the latest last.
#[derive(Default)]
pub(super) struct Volumes(Mutex<Content>);

impl Volumes {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    fn pod(&mut self, spec: PodSpec, claims: Vec<Text>) -> PodSpec {
        self.forget(&spec.uid);
        if claims.is_empty() || spec.node.is_some() {
            return spec;
        }
        for claim in &claims {
            self.users.entry((spec.namespace.clone(), claim.clone())).or_default().insert(spec.uid.clone());
        }
        let judged = self.judged(&spec, &claims);
        self.waiting.insert(spec.uid.clone(), (spec, claims));
        judged
    }

    fn forget(&mut self, uid: &Text) {
        let Some((spec, claims)) = self.waiting.remove(uid) else { return };
        for claim in claims {
            let key = (spec.namespace.clone(), claim);
            if let Some(users) = self.users.get_mut(&key) {
                users.remove(uid);
                if users.is_empty() {
                    self.users.remove(&key);
                }
            }
        }
    }

    fn judged(&self, spec: &PodSpec, claims: &[Text]) -> PodSpec {
        let mut spec = spec.clone();
        let unbound = |claim: &&Text| !self.bound.contains(&(spec.namespace.clone(), (*claim).clone()));
        let more: Vec<_> = claims.iter().filter(unbound).cloned().map(Unsupported::UnboundVolume).collect();
        spec.unsupported.extend(more);
        spec
    }

    /// A claim is bound or not; the Pods that mount it, if that is news.
    fn claim(&mut self, claim: Claim, bound: bool) -> Vec<PodSpec> {
        let news = if bound { self.bound.insert(claim.clone()) } else { self.bound.remove(&claim) };
        let users = if news { self.users.get(&claim) } else { None };
        users
            .into_iter()
            .flatten()
            .filter_map(|uid| self.waiting.get(uid))
            .map(|(spec, claims)| self.judged(spec, claims))
            .collect()
    }
}

pub(super) async fn follow_pods(
    follow: Follow,
    pods: impl Stream<Item = watcher::Result<WatchEvent<Pod>>> + Send,
    volumes: Arc<Volumes>,
) {
    let engine = follow.engine.clone();
    let translate = |object: &Pod| -> Result<Vec<Event>, Unreadable> {
        let (spec, claims) = (pod::translate(object)?, pod::claims(object));
        let mut content = volumes.lock();
        let judged = content.pod(spec, claims);
        engine.send(Event::Pod(Box::new(judged)));
        Ok(Vec::new())
    };
    let gone = |object: &Known| {
        let mut content = volumes.lock();
        content.forget(&object.uid);
        engine.send(Event::PodGone(object.uid.clone()));
        Vec::new()
    };
    follow.run(pods, translate, gone).await;
}

pub(super) async fn follow_claims(
    follow: Follow,
    claims: impl Stream<Item = watcher::Result<WatchEvent<PersistentVolumeClaim>>> + Send,
    volumes: Arc<Volumes>,
) {
    let engine = follow.engine.clone();
    let tell = |claim: Claim, bound: bool| {
        let mut content = volumes.lock();
        for spec in content.claim(claim, bound) {
            engine.send(Event::Pod(Box::new(spec)));
        }
    };
    let translate = |object: &PersistentVolumeClaim| {
        let phase = object.status.as_ref().and_then(|status| status.phase.as_deref());
        let claim = super::follow::identity(object);
        tell((claim.namespace, claim.name), phase == Some("Bound"));
        Ok(Vec::new())
    };
    let gone = |object: &Known| {
        tell((object.namespace.clone(), object.name.clone()), false);
        Vec::new()
    };
    follow.run(claims, translate, gone).await;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(node: Option<&str>) -> (PodSpec, Vec<Text>) {
        let object: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "a", "uid": "u"},
            "spec": {"containers": [], "nodeName": node, "volumes": [
                {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}}))
        .unwrap();
        (pod::translate(&object).unwrap(), pod::claims(&object))
    }

    #[test]
    fn a_pod_is_said_again_when_its_claim_is_bound() {
        let mut content = Content::default();
        let claim: Claim = ("a".into(), "data".into());
        let (spec, claims) = read(None);
        let unbound = vec![Unsupported::UnboundVolume("data".into())];
        assert_eq!(content.pod(spec, claims).unsupported, unbound);
        assert_eq!(content.claim(claim.clone(), true)[0].unsupported, []);
        assert!(content.claim(claim.clone(), true).is_empty(), "no news");
        assert_eq!(content.claim(claim, false)[0].unsupported, unbound);
    }

    #[test]
    fn a_pod_on_a_node_or_gone_is_not_said_again() {
        let mut content = Content::default();
        for (spec, claims) in [read(None), read(Some("n1"))] {
            content.pod(spec, claims);
        }
        assert!(content.claim(("a".into(), "data".into()), true).is_empty());
        assert!(content.waiting.is_empty() && content.users.is_empty());
    }
}
