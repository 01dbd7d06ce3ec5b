//! The objects of standalone mode: like the storage of an API server.
//!
//! In memory, with a list of changes since the last call; the journal and the engine receive these. Knows how objects
//! are related (names, owners), but not what happens to them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::scheduling::v1::PriorityClass;

use super::admission::{self, Refused};
use super::metadata::{Uid, controller_uid, time};
use super::object::Object;
use super::packed::{Brief, Packed, Texts};

/// Maximum number of objects: limits memory use and the size of the state file.
pub const OBJECTS_MAX: usize = 200_000;
/// Seconds that a virtual Pod takes to terminate.
const GRACE: i64 = 1;

/// Identifies an object: resource (`pods`, `podgroups.scheduling.k8s.io`), namespace, name.
pub type NameKey = (String, String, String);

/// Why an object was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("{0} already exists")]
    Exists(String),
    #[error("{object} is invalid: {refused}")]
    Invalid { object: String, refused: Refused },
    #[error("the limit of {OBJECTS_MAX} objects has been reached: wait until some finish, or cancel some")]
    Full,
}

/// A change of an object since the changes were last taken.
#[derive(Clone, Debug)]
pub enum Change {
    /// Created or updated; look it up.
    Set(Uid),
    /// Deleted; its last state.
    Gone(Box<Packed>),
}

/// All objects. They are only changed through its methods.
#[derive(Debug, Default)]
pub struct Store {
    objects: BTreeMap<Uid, Packed>,
    texts: Texts,
    /// By resource, namespace and name, separated by a zero byte.
    names: BTreeMap<Box<str>, Uid>,
    /// UIDs of controllers to their dependents.
    owned: BTreeMap<Uid, BTreeSet<Uid>>,
    changes: BTreeMap<Uid, Change>,
    /// Incremented with every change; used for resourceVersions and UIDs.
    sequence: u64,
}

impl Store {
    /// Restores an object from the journal, unchanged.
    pub fn restore(&mut self, object: Object) {
        let version = object.meta().resource_version.as_deref().and_then(|text| text.parse().ok());
        self.sequence = self.sequence.max(version.unwrap_or(0));
        self.index(object);
    }

    /// Creates an object: validates it, sets defaults and a UID. `names` are our scheduler names.
    pub fn create(&mut self, mut object: Object, now: i64, ours: &[Arc<str>]) -> Result<Uid, StoreError> {
        if self.objects.len() >= OBJECTS_MAX {
            return Err(StoreError::Full);
        }
        self.sequence += 1;
        let priority = |class: Option<&str>| self.priority(class);
        admission::admit(&mut object, now, self.sequence, ours, &priority)
            .map_err(|refused| StoreError::Invalid { object: called(&object), refused })?;
        if self.names.contains_key(&joined(&name_key(&object))) || self.objects.contains_key(object.uid()) {
            return Err(StoreError::Exists(called(&object)));
        }
        object.meta_mut().resource_version = Some(self.sequence.to_string());
        let uid = self.index(object);
        self.changes.insert(uid.clone(), Change::Set(uid.clone()));
        Ok(uid)
    }

    fn index(&mut self, object: Object) -> Uid {
        let uid: Uid = object.uid().into();
        self.names.insert(joined(&name_key(&object)), uid.clone());
        if let Some(owner) = controller_uid(&object) {
            self.owned.entry(owner).or_default().insert(uid.clone());
        }
        let mut packed = Packed::of(object, &mut self.texts);
        packed.keep_as(&uid);
        self.objects.insert(uid.clone(), packed);
        uid
    }

    /// The value of a `PriorityClass`; without a name, that of the default class.
    fn priority(&self, class: Option<&str>) -> Option<i32> {
        let key = |name: &str| joined(&("priorityclasses".to_owned(), String::new(), name.to_owned()));
        let value = |uid: &Uid, wanted: fn(&PriorityClass) -> bool| match self.objects.get(uid)?.whole()? {
            Object::PriorityClass(class) if wanted(class) => Some(class.value.unwrap_or(0)),
            _ => None,
        };
        match class {
            Some(class) => value(self.names.get(&key(class))?, |_| true),
            // If there are several, the smallest applies, as in a cluster.
            None => self
                .names
                .range(key("")..)
                .take_while(|(name, _)| name.starts_with("priorityclasses\0"))
                .filter_map(|(_, uid)| value(uid, |class| class.global_default == Some(true)))
                .min(),
        }
    }

    /// An object by uid.
    pub fn get(&self, uid: &str) -> Option<Cow<'_, Object>> {
        self.objects.get(uid).map(Packed::open)
    }

    /// A stored object by UID.
    pub fn packed(&self, uid: &str) -> Option<&Packed> {
        self.objects.get(uid)
    }

    /// The UID of the object with this key.
    pub fn named(&self, key: &NameKey) -> Option<&Uid> {
        self.names.get(&joined(key))
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Number of objects changed since the changes were last taken.
    pub fn changed(&self) -> usize {
        self.changes.len()
    }

    /// The UIDs of all objects, in order.
    pub fn uids(&self) -> impl Iterator<Item = &Uid> {
        self.objects.keys()
    }

    /// All objects, ordered by UID.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, Object>> {
        self.objects.values().map(Packed::open)
    }

    /// The Pods of this controller, ordered by UID.
    pub fn pods_of(&self, uid: &str) -> impl Iterator<Item = &Brief> {
        self.owned.get(uid).into_iter().flatten().filter_map(|uid| self.objects.get(uid)?.brief())
    }

    /// Number of objects owned by this controller.
    pub fn owned_by(&self, uid: &str) -> usize {
        self.owned.get(uid).map_or(0, BTreeSet::len)
    }

    /// The controller of an object, if it exists and is not a Pod.
    pub fn controller_of(&self, object: &Object) -> Option<&Object> {
        self.objects.get(&controller_uid(object)?)?.whole()
    }

    /// Whether an object could replace the one of the same name; its priority etc. are not checked.
    pub fn check(object: &Object, now: i64, ours: &[Arc<str>]) -> Result<(), StoreError> {
        admission::check_early(object, now, ours)
            .map_err(|refused| StoreError::Invalid { object: called(object), refused })
    }

    /// Updates an object in place. `change` must not modify its name, UID and owners.
    pub fn update(&mut self, uid: &str, change: impl FnOnce(&mut Object)) {
        let Some(key) = self.objects.get_key_value(uid).map(|(key, _)| key.clone()) else { return };
        let Some(packed) = self.objects.get_mut(uid) else { return };
        self.sequence += 1;
        let mut object = packed.open().into_owned();
        change(&mut object);
        object.meta_mut().resource_version = Some(self.sequence.to_string());
        let mut new = Packed::of(object, &mut self.texts);
        new.keep_as(&key);
        let old = std::mem::replace(packed, new);
        self.texts.release(&old);
        self.changes.insert(key.clone(), Change::Set(key));
    }

    /// Deletes an object and its dependents. Running Pods get time to terminate, and their owners are deleted with the
    /// last of them; [`Store::remove`] completes this.
    pub fn delete(&mut self, uid: &str, now: i64) {
        let mut open = vec![Uid::from(uid)];
        // According to manifests, two objects may own each other.
        let mut seen = BTreeSet::new();
        let mut order = Vec::new();
        while let Some(uid) = open.pop() {
            if seen.insert(uid.clone()) {
                open.extend(self.owned.get(&uid).into_iter().flatten().cloned());
                order.push(uid);
            }
        }
        for uid in order.into_iter().rev() {
            let Some(packed) = self.objects.get(&uid) else { continue };
            let waits = packed.brief().map_or_else(|| self.owned.contains_key(&uid), Brief::holds_a_node);
            if waits {
                self.terminate(&uid, now);
            } else {
                self.remove(&uid);
            }
        }
    }

    fn terminate(&mut self, uid: &str, now: i64) {
        let deleted = |packed: &Packed| match (packed.brief(), packed.whole()) {
            (Some(pod), _) => pod.deleting,
            (None, object) => object.is_some_and(|object| object.meta().deletion_timestamp.is_some()),
        };
        if self.objects.get(uid).is_some_and(|packed| !deleted(packed)) {
            self.update(uid, |object| {
                object.meta_mut().deletion_timestamp = time(now.saturating_add(GRACE));
                object.meta_mut().deletion_grace_period_seconds = Some(GRACE);
            });
        }
    }

    /// Removes an object immediately, and its controller if that is being deleted and this was its last dependent.
    pub fn remove(&mut self, uid: &str) {
        let mut next = Some(Uid::from(uid));
        while let Some((uid, packed)) = next.take().and_then(|uid| self.objects.remove_entry(&uid)) {
            self.sequence += 1;
            self.names.remove(&joined(&name_key(&packed.open())));
            self.texts.release(&packed);
            if let Some(owner) = packed.owner()
                && let Some(owned) = self.owned.get_mut(&owner)
            {
                owned.remove(&uid);
                if owned.is_empty() {
                    self.owned.remove(&owner);
                    let deleting = |owner: &Object| owner.meta().deletion_timestamp.is_some();
                    next = self
                        .objects
                        .get(&owner)
                        .and_then(Packed::whole)
                        .is_some_and(deleting)
                        .then_some(owner);
                }
            }
            self.changes.insert(uid, Change::Gone(Box::new(packed)));
        }
    }

    /// The changes since the last call, ordered by UID.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes).into_values().collect()
    }
}

/// `Kind/namespace/name` for messages.
pub fn called(object: &Object) -> String {
    match object.namespace() {
        "" => format!("{} {}", object.kind(), object.name()),
        namespace => format!("{} {namespace}/{}", object.kind(), object.name()),
    }
}

/// The same for an object by UID.
pub fn called_of(store: &Store, uid: &str) -> String {
    store.get(uid).map_or_else(|| uid.to_owned(), |object| called(&object))
}

/// The key of an object.
pub fn name_key(object: &Object) -> NameKey {
    let resource = match object {
        Object::PodGroup(_) => {
            let group = object.api_version().split_once('/').map_or("", |(group, _)| group);
            format!("podgroups.{group}")
        }
        Object::PriorityClass(_) => "priorityclasses".to_owned(),
        _ => format!("{}s", object.kind().to_lowercase()),
    };
    (resource, object.namespace().to_owned(), object.name().to_owned())
}

fn joined((resource, namespace, name): &NameKey) -> Box<str> {
    format!("{resource}\0{namespace}\0{name}").into()
}

/// The name as submitted; for a generated name, its prefix.
pub fn submission_key(object: &Object) -> NameKey {
    let (resource, namespace, name) = name_key(object);
    let namespace =
        if namespace.is_empty() && object.namespaced() { "default".to_owned() } else { namespace };
    let start = object.meta().generate_name.as_deref().unwrap_or_default();
    let name = if name.is_empty() { format!("{start}*") } else { name };
    (resource, namespace, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: i64 = 1_700_000_000;

    fn object(value: serde_json::Value) -> Object {
        Object::from_value(value).unwrap()
    }

    fn pod(name: &str) -> Object {
        object(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c"}]}}),
        )
    }

    #[test]
    fn two_of_one_name_are_refused_and_a_successor_is_another_object() {
        let mut store = Store::default();
        let first = store.create(pod("p"), NOW, &["fluxion".into()]).unwrap();
        assert_eq!(
            store.create(pod("p"), NOW, &["fluxion".into()]),
            Err(StoreError::Exists("Pod default/p".to_owned()))
        );
        store.delete(&first, NOW);
        assert!(store.get(&first).is_none(), "a Pod that holds no node goes at once");
        let second = store.create(pod("p"), NOW, &["fluxion".into()]).unwrap();
        assert_ne!(first, second);
        assert_eq!(store.take_changes().len(), 2);
        assert!(store.take_changes().is_empty());
    }

    #[test]
    fn what_is_restored_keeps_its_uid_and_the_sequence_goes_on() {
        let mut store = Store::default();
        let uid = store.create(pod("p"), NOW, &["fluxion".into()]).unwrap();
        let kept = store.get(&uid).unwrap().into_owned();
        let mut again = Store::default();
        again.restore(kept.clone());
        assert_eq!(again.get(&uid).as_deref(), Some(&kept));
        assert!(again.take_changes().is_empty(), "nothing changed by that");
        let other = again.create(pod("q"), NOW, &["fluxion".into()]).unwrap();
        let version =
            |object: &Object| object.meta().resource_version.clone().unwrap().parse::<u64>().unwrap();
        assert!(version(&again.get(&other).unwrap()) > version(&kept));
    }
}
