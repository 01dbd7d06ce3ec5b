//! Known objects of one kind, to detect deletions that were missed while a watch was broken.

use std::collections::BTreeMap;

use fluxion_scheduler::model::SharedStr;

/// A known object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Known {
    pub(super) namespace: SharedStr,
    pub(super) name: SharedStr,
    pub(super) uid: SharedStr,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct KnownObjects {
    uids: BTreeMap<(SharedStr, SharedStr), SharedStr>,
    /// While a list is being received: its objects so far.
    listed: Option<BTreeMap<(SharedStr, SharedStr), SharedStr>>,
}

impl KnownObjects {
    /// A list starts.
    pub(super) fn list_begins(&mut self) {
        self.listed = Some(BTreeMap::new());
    }

    /// An object exists. Returns the object of the same name that it replaced, if that was a different one.
    pub(super) fn there(&mut self, object: Known) -> Option<Known> {
        let key = (object.namespace, object.name);
        if let Some(listed) = &mut self.listed {
            listed.insert(key.clone(), object.uid.clone());
        }
        let before = self.uids.insert(key.clone(), object.uid.clone())?;
        (before != object.uid).then_some(Known { namespace: key.0, name: key.1, uid: before })
    }

    /// An object was deleted. A late deletion of an earlier object with the same name has no effect.
    pub(super) fn gone(&mut self, object: &Known) {
        let key = (object.namespace.clone(), object.name.clone());
        if self.uids.get(&key) == Some(&object.uid) {
            self.uids.remove(&key);
        }
        if let Some(listed) = &mut self.listed {
            listed.remove(&key);
        }
    }

    /// The list is complete: objects that it does not contain were deleted.
    pub(super) fn list_ends(&mut self) -> Vec<Known> {
        let Some(listed) = self.listed.take() else { return Vec::new() };
        let before = std::mem::replace(&mut self.uids, listed);
        before
            .into_iter()
            .filter(|(key, _)| !self.uids.contains_key(key))
            .map(|((namespace, name), uid)| Known { namespace, name, uid })
            .collect()
    }

    /// Removes and returns all objects.
    pub(super) fn all_gone(&mut self) -> Vec<Known> {
        self.list_begins();
        self.list_ends()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, uid: &str) -> Known {
        Known { namespace: "a".into(), name: name.into(), uid: uid.into() }
    }

    #[test]
    fn what_a_new_list_does_not_name_is_gone() {
        let mut known = KnownObjects::default();
        known.list_begins();
        for name in ["x", "y", "z"] {
            assert_eq!(known.there(object(name, name)), None);
        }
        assert_eq!(known.list_ends(), []);
        known.list_begins();
        known.there(object("y", "y"));
        // Recreated under the same name while the watch was broken.
        assert_eq!(known.there(object("z", "z2")), Some(object("z", "z")));
        assert_eq!(known.list_ends(), [object("x", "x")]);
        assert_eq!(known.all_gone(), [object("y", "y"), object("z", "z2")]);
    }

    #[test]
    fn a_late_word_about_an_earlier_object_is_ignored() {
        let mut known = KnownObjects::default();
        known.there(object("x", "old"));
        assert_eq!(known.there(object("x", "new")), Some(object("x", "old")));
        known.gone(&object("x", "old"));
        assert_eq!(known.all_gone(), [object("x", "new")]);
    }

    #[test]
    fn a_list_that_begins_anew_counts_from_the_start() {
        let mut known = KnownObjects::default();
        known.list_begins();
        known.there(object("x", "x"));
        known.list_begins();
        assert_eq!(known.list_ends(), [object("x", "x")]);
    }
}
