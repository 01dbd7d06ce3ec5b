//! Pods with their `PersistentVolumeClaims` and `PersistentVolumes`: a Pod with an unbound volume can't be placed, and a
//! bound volume may only be accessible from some nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fluxion_scheduler::constraint::Term;
use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::{PodSpec, SharedStr, Unsupported};
use futures::Stream;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::runtime::watcher::{self, Event as WatchEvent};

use crate::kube::translate::{Unreadable, affinity, pod};

use super::follow::{Follow, identity};
use super::known::Known;

/// Maximum number of combined node affinity terms.
const TERMS_MAX: usize = 256;

/// Namespace and name of a claim.
type Claim = (SharedStr, SharedStr);

#[derive(Default)]
struct Content {
    /// Claims, with the volumes of bound ones.
    claims: BTreeMap<Claim, Option<SharedStr>>,
    /// Nodes from which a volume is accessible; `None`: all.
    volumes: BTreeMap<SharedStr, Option<Vec<Term>>>,
    /// Pods with claims that are not bound to a node yet, by UID; sent again when a claim or its volume changes.
    waiting: BTreeMap<SharedStr, (PodSpec, Vec<SharedStr>)>,
    users: BTreeMap<Claim, BTreeSet<SharedStr>>,
}

/// State shared by the watches. It stays locked while an event is sent, so that the latest one is sent last.
#[derive(Default)]
pub(super) struct Volumes(Mutex<Content>);

impl Volumes {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    fn pod(&mut self, spec: PodSpec, claims: Vec<SharedStr>) -> PodSpec {
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

    fn forget(&mut self, uid: &SharedStr) {
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

    /// The Pod with the effects of its volumes: unbound, or accessible from some nodes only.
    fn judged(&self, spec: &PodSpec, claims: &[SharedStr]) -> PodSpec {
        let mut spec = spec.clone();
        for claim in claims {
            let problem = match self.claims.get(&(spec.namespace.clone(), claim.clone())) {
                None => Some(Unsupported::MissingClaim(claim.clone())),
                Some(None) => Some(Unsupported::UnboundVolume(claim.clone())),
                Some(Some(volume)) => match self.volumes.get(volume) {
                    None => Some(Unsupported::MissingVolume(claim.clone(), volume.clone())),
                    Some(None) => None,
                    Some(Some(reachable)) => {
                        (!narrow(&mut spec, reachable)).then(|| Unsupported::WideVolume(claim.clone()))
                    }
                },
            };
            spec.unsupported.extend(problem);
        }
        spec
    }

    /// A claim is bound to a volume, not bound yet, or deleted; returns the Pods that use it, if this is a change.
    fn claim(&mut self, claim: Claim, state: Option<Option<SharedStr>>) -> Vec<PodSpec> {
        let before = match state.clone() {
            Some(volume) => self.claims.insert(claim.clone(), volume),
            None => self.claims.remove(&claim),
        };
        if before == state { Vec::new() } else { self.affected(&claim) }
    }

    /// A volume is accessible from these nodes, or deleted; returns the Pods that use it, if this is a change.
    fn volume(&mut self, name: &SharedStr, reachable: Option<Option<Vec<Term>>>) -> Vec<PodSpec> {
        let before = match reachable.clone() {
            Some(reachable) => self.volumes.insert(name.clone(), reachable),
            None => self.volumes.remove(name),
        };
        if before == reachable {
            return Vec::new();
        }
        let claims = self
            .users
            .keys()
            .filter(|claim| self.claims.get(*claim).is_some_and(|at| at.as_ref() == Some(name)));
        claims.flat_map(|claim| self.affected(claim)).collect()
    }

    fn affected(&self, claim: &Claim) -> Vec<PodSpec> {
        let users = self.users.get(claim).into_iter().flatten();
        users
            .filter_map(|uid| self.waiting.get(uid))
            .map(|(spec, claims)| self.judged(spec, claims))
            .collect()
    }
}

/// Restricts the Pod to nodes from which the volume is accessible; false if that would need too many terms.
fn narrow(spec: &mut PodSpec, reachable: &[Term]) -> bool {
    let constraint = Arc::make_mut(&mut spec.constraint);
    let Some(own) = &constraint.affinity else {
        constraint.affinity = Some(reachable.to_vec());
        return true;
    };
    if own.len().saturating_mul(reachable.len()) > TERMS_MAX {
        return false;
    }
    let both = |a: &Term, b: &Term| {
        // An empty term matches nothing, and must not match because of added expressions.
        let empty = |term: &Term| term.labels.is_empty() && term.fields.is_empty();
        (!empty(a) && !empty(b)).then(|| Term {
            labels: a.labels.iter().chain(&b.labels).cloned().collect(),
            fields: a.fields.iter().chain(&b.fields).cloned().collect(),
        })
    };
    let product = own.iter().flat_map(|a| reachable.iter().filter_map(move |b| both(a, b))).collect();
    constraint.affinity = Some(product);
    true
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
    let tell = |object: &Known, state: Option<Option<SharedStr>>| {
        let mut content = volumes.lock();
        for spec in content.claim((object.namespace.clone(), object.name.clone()), state) {
            engine.send(Event::Pod(Box::new(spec)));
        }
        Vec::new()
    };
    let translate = |object: &PersistentVolumeClaim| {
        let bound = object.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
        let volume = object.spec.as_ref().and_then(|spec| spec.volume_name.as_deref());
        Ok(tell(&identity(object), Some(volume.filter(|_| bound).map(SharedStr::from))))
    };
    follow.run(claims, translate, |object| tell(object, None)).await;
}

pub(super) async fn follow_volumes(
    follow: Follow,
    persistent: impl Stream<Item = watcher::Result<WatchEvent<PersistentVolume>>> + Send,
    volumes: Arc<Volumes>,
) {
    let engine = follow.engine.clone();
    let tell = |name: &SharedStr, reachable| {
        let mut content = volumes.lock();
        for spec in content.volume(name, reachable) {
            engine.send(Event::Pod(Box::new(spec)));
        }
        Vec::new()
    };
    let translate = |object: &PersistentVolume| {
        let affinity = object.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
        let required = affinity.and_then(|affinity| affinity.required.as_ref()).map(affinity::terms);
        Ok(tell(&identity(object).name, Some(required)))
    };
    follow.run(persistent, translate, |object| tell(&object.name, None)).await;
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(node: Option<&str>, affinity: &Value) -> (PodSpec, Vec<SharedStr>) {
        let object: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "a", "uid": "u"},
            "spec": {"containers": [], "nodeName": node, "affinity": affinity, "volumes": [
                {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}}))
        .unwrap();
        (pod::translate(&object).unwrap(), pod::claims(&object))
    }

    fn claim() -> Claim {
        ("a".into(), "data".into())
    }

    fn term(key: &str) -> Term {
        let selector =
            json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "Exists"}]}]});
        affinity::terms(&serde_json::from_value(selector).unwrap()).remove(0)
    }

    #[test]
    fn a_pod_is_said_again_when_its_claim_is_bound_and_the_volume_known() {
        let mut content = Content::default();
        let (spec, claims) = read(None, &Value::Null);
        let missing = vec![Unsupported::MissingClaim("data".into())];
        let unbound = vec![Unsupported::UnboundVolume("data".into())];
        assert_eq!(content.pod(spec, claims).unsupported, missing);
        assert_eq!(content.claim(claim(), Some(None))[0].unsupported, unbound);
        let bound = || Some(Some(SharedStr::from("pv")));
        let no_volume = vec![Unsupported::MissingVolume("data".into(), "pv".into())];
        assert_eq!(content.claim(claim(), bound())[0].unsupported, no_volume);
        assert_eq!(content.volume(&"pv".into(), Some(None))[0].unsupported, []);
        assert!(content.claim(claim(), bound()).is_empty(), "no news");
        assert_eq!(content.claim(claim(), Some(None))[0].unsupported, unbound);
        assert_eq!(content.claim(claim(), None)[0].unsupported, missing);
    }

    #[test]
    fn a_volume_of_too_many_terms_is_told_from_one_that_is_not_bound() {
        let mut content = Content::default();
        content.claim(claim(), Some(Some("pv".into())));
        content.volume(&"pv".into(), Some(Some(vec![term("rack"); TERMS_MAX + 1])));
        let own = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}]}}});
        let (spec, claims) = read(None, &own);
        assert_eq!(content.pod(spec, claims).unsupported, [Unsupported::WideVolume("data".into())]);
    }

    #[test]
    fn a_volume_narrows_the_nodes() {
        let mut content = Content::default();
        content.claim(claim(), Some(Some("pv".into())));
        content.volume(&"pv".into(), Some(Some(vec![term("rack-1"), term("rack-2")])));
        let (spec, claims) = read(None, &Value::Null);
        assert_eq!(content.pod(spec, claims).constraint.affinity, Some(vec![term("rack-1"), term("rack-2")]));
        let own = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}, {}]}}});
        let (spec, claims) = read(None, &own);
        let narrowed = content.pod(spec, claims);
        let terms = narrowed.constraint.affinity.as_ref().unwrap();
        assert_eq!((terms.len(), terms[0].labels.len(), narrowed.unsupported.len()), (2, 2, 0));
    }

    #[test]
    fn a_pod_on_a_node_or_gone_is_not_said_again() {
        let mut content = Content::default();
        for (spec, claims) in [read(None, &Value::Null), read(Some("n1"), &Value::Null)] {
            content.pod(spec, claims);
        }
        assert!(content.claim(claim(), Some(Some("pv".into()))).is_empty());
        assert!(content.waiting.is_empty() && content.users.is_empty());
    }
}
