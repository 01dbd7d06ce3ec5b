//! Stores identical values of many objects once: labels, requests and constraints of Pods with the same template, and
//! strings such as namespaces and node names. As delivered, each Pod has its own copies (several kilobytes).

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use fluxion_scheduler::constraint::volumes::PodVolumes;
use fluxion_scheduler::constraint::{HostPort, NodeConstraint, PodTerms, Preferences};
use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::{ControllerRef, Marks, OwnerDetail, PodSpec, SharedStr};
use fluxion_scheduler::resources::ResourceList;

/// Below this number of entries, unused ones are not removed.
const FEW: usize = 1024;

/// A value in shared memory.
trait Shared: Clone + Eq + Hash {
    /// Its number of references.
    fn users(&self) -> usize;
}

impl<T: ?Sized + Eq + Hash> Shared for Arc<T> {
    fn users(&self) -> usize {
        Self::strong_count(self)
    }
}

impl Shared for Marks {
    fn users(&self) -> usize {
        self.users()
    }
}

/// The known values of one type.
#[derive(Debug)]
struct Known<T> {
    values: HashSet<T>,
    /// Number of entries at which unused ones are removed.
    full: usize,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self { values: HashSet::new(), full: FEW }
    }
}

impl<T: Shared> Known<T> {
    /// Replaces the value by the known equal one; returns whether there was one.
    fn share(&mut self, value: &mut T) -> bool {
        let Some(known) = self.values.get(value) else { return false };
        value.clone_from(known);
        true
    }

    fn share_or_learn(&mut self, value: &mut T) {
        if !self.share(value) {
            self.learn(value.clone());
        }
    }

    fn learn(&mut self, value: T) {
        if self.values.len() >= self.full {
            self.values.retain(|known| known.users() > 1);
            self.full = self.values.len().saturating_mul(2).max(FEW);
        }
        self.values.insert(value);
    }
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    words: Known<SharedStr>,
    marks: Known<Marks>,
    needs: Known<Arc<ResourceList>>,
    constraints: Known<Arc<NodeConstraint>>,
    ports: Known<Arc<[HostPort]>>,
    terms: Known<Arc<PodTerms>>,
    preferences: Known<Arc<Preferences>>,
    volumes: Known<Arc<PodVolumes>>,
}

impl Sharing {
    /// Replaces the values of an event by known equal ones. Its content does not change.
    pub(super) fn share(&mut self, event: &mut Event) {
        match event {
            Event::Pod(pod) => self.pod(pod),
            Event::Owner(owner) => {
                self.marks(&mut owner.labels);
                self.marks(&mut owner.annotations);
                match &mut owner.detail {
                    OwnerDetail::Job { template: Some(template), .. } => self.pod(Arc::make_mut(template)),
                    OwnerDetail::Sets { sets, .. } if sets.iter().any(|set| set.template.is_some()) => {
                        *sets = sets
                            .iter()
                            .cloned()
                            .map(|mut set| {
                                set.template.iter_mut().for_each(|pod| self.pod(Arc::make_mut(pod)));
                                set
                            })
                            .collect();
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn pod(&mut self, pod: &mut PodSpec) {
        self.marks(&mut pod.labels);
        self.marks(&mut pod.annotations);
        if let Ok(needs) = &mut pod.needs {
            self.needs.share_or_learn(needs);
        }
        self.constraints.share_or_learn(&mut pod.constraint);
        self.ports.share_or_learn(&mut pod.ports);
        if let Some(terms) = &mut pod.terms {
            self.terms.share_or_learn(terms);
        }
        if let Some(preferences) = &mut pod.preferences {
            self.preferences.share_or_learn(preferences);
        }
        if let Some(volumes) = &mut pod.volumes {
            self.volumes.share_or_learn(volumes);
        }
        if let Some(ControllerRef { api_version, kind, name, uid }) = &mut pod.controller {
            for word in [api_version, kind, name, uid] {
                self.words.share_or_learn(word);
            }
        }
        let unscheduled = pod.unscheduled.iter_mut().flat_map(|(reason, message)| [reason, message]);
        let named = [&mut pod.node, &mut pod.nominated, &mut pod.scheduling_group, &mut pod.disruption];
        for word in [&mut pod.namespace, &mut pod.scheduler_name]
            .into_iter()
            .chain(named.into_iter().flatten())
            .chain(pod.record.iter_mut().map(|record| &mut record.job))
            .chain(unscheduled)
        {
            self.words.share_or_learn(word);
        }
    }

    fn marks(&mut self, marks: &mut Marks) {
        if self.marks.share(marks) {
            return;
        }
        // A value may be unique to the Pod, such as its index; the rest is from its template.
        *marks = std::mem::take(marks)
            .iter()
            .map(|(key, value)| {
                let (mut key, mut value) = (key.clone(), value.clone());
                self.words.share_or_learn(&mut key);
                self.words.share_or_learn(&mut value);
                (key, value)
            })
            .collect();
        self.marks.learn(marks.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::pod_spec;

    fn pod(name: &str, index: &str) -> PodSpec {
        let mut pod = pod_spec(name);
        for (key, value) in [("app", "solver"), ("index", index)] {
            pod.labels.insert(key.into(), value.into());
        }
        pod.node = Some("n1".into());
        pod
    }

    fn shared(sharing: &mut Sharing, pod: PodSpec) -> PodSpec {
        let mut event = Event::Pod(Box::new(pod));
        sharing.share(&mut event);
        let Event::Pod(pod) = event else { panic!() };
        *pod
    }

    #[test]
    fn pods_of_one_template_share_what_they_say_alike() {
        let mut sharing = Sharing::default();
        let [a, b, c] =
            [("a", "0"), ("b", "0"), ("c", "1")].map(|(name, index)| shared(&mut sharing, pod(name, index)));
        assert_eq!((&b, &c), (&pod("b", "0"), &pod("c", "1")), "they say what they said");
        assert_eq!((a.labels.users(), c.labels.users()), (3, 2), "and the table has them too");
        assert!(Arc::ptr_eq(&a.labels["app"], &c.labels["app"]));
        assert!(Arc::ptr_eq(a.needs.as_ref().unwrap(), c.needs.as_ref().unwrap()));
        assert!(Arc::ptr_eq(&a.constraint, &c.constraint) && Arc::ptr_eq(&a.namespace, &c.namespace));
        assert!(Arc::ptr_eq(a.node.as_ref().unwrap(), c.node.as_ref().unwrap()));
    }

    #[test]
    fn what_nobody_uses_any_more_is_forgotten() {
        let mut sharing = Sharing::default();
        let kept = shared(&mut sharing, pod("kept", "kept"));
        for index in 0..10 * FEW {
            shared(&mut sharing, pod("p", &index.to_string()));
        }
        assert!(sharing.marks.values.len() <= FEW && sharing.words.values.len() <= 3 * FEW);
        assert_eq!(shared(&mut sharing, pod("again", "kept")).labels.users(), 3);
        drop(kept);
    }
}
