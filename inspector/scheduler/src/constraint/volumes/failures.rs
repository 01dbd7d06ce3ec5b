//! What provisioners say about claims: the latest Event about each.
//!
//! Whoever may create Events in a namespace can say anything about any UID, so a message is only found together with the
//! namespace of the Event, and no namespace can use up the room of another.

use std::sync::Arc;

use imbl::OrdMap;

use super::objects::ClaimFailure;

/// Maximum number of claims per namespace.
const MOST: usize = 1_000;

/// By UID of the claim.
type OfNamespace = OrdMap<Arc<str>, Arc<ClaimFailure>>;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct ClaimFailures {
    /// By namespace.
    latest: OrdMap<Arc<str>, OfNamespace>,
    /// Those, by UID of the Event.
    events: OrdMap<Arc<str>, Arc<ClaimFailure>>,
}

impl ClaimFailures {
    /// Adds the latest Event about a claim; nothing if too many claims of the namespace have one.
    pub(super) fn set(&mut self, failure: ClaimFailure) {
        self.remove(&failure.uid);
        let of = self.latest.entry(failure.namespace.clone()).or_default();
        if of.len() >= MOST && !of.contains_key(&failure.claim) {
            return;
        }
        let failure = Arc::new(failure);
        if let Some(before) = of.insert(failure.claim.clone(), Arc::clone(&failure)) {
            self.events.remove(&before.uid);
        }
        self.events.insert(failure.uid.clone(), failure);
    }

    /// Removes an Event.
    pub(super) fn remove(&mut self, uid: &str) {
        let Some(failure) = self.events.remove(uid) else { return };
        if let Some(of) = self.latest.get_mut(&failure.namespace) {
            of.remove(&failure.claim);
            if of.is_empty() {
                self.latest.remove(&failure.namespace);
            }
        }
    }

    /// The message of the latest Event about a claim.
    pub(super) fn message(&self, namespace: &str, claim: &str) -> Option<&Arc<str>> {
        self.latest.get(namespace)?.get(claim).map(|failure| &failure.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(uid: &str, namespace: &str, claim: &str) -> ClaimFailure {
        ClaimFailure {
            uid: uid.into(),
            namespace: namespace.into(),
            claim: claim.into(),
            message: uid.into(),
        }
    }

    #[test]
    fn no_namespace_says_anything_about_claims_of_another_or_uses_up_its_room() {
        let mut failures = ClaimFailures::default();
        for number in 0..2 * MOST {
            failures.set(failure(&format!("e{number}"), "a", &number.to_string()));
        }
        assert_eq!((failures.latest["a"].len(), failures.events.len()), (MOST, MOST));
        assert_eq!(failures.message("b", "0"), None);
        failures.set(failure("real", "b", "0"));
        failures.set(failure("again", "a", "0"));
        assert_eq!(failures.message("b", "0").map(AsRef::as_ref), Some("real"));
        assert_eq!(failures.message("a", "0").map(AsRef::as_ref), Some("again"));
        failures.remove("e0");
        assert_eq!(failures.message("a", "0").map(AsRef::as_ref), Some("again"), "a later one has come");
        failures.remove("real");
        for number in 1..MOST {
            failures.remove(&format!("e{number}"));
        }
        failures.remove("again");
        assert!(failures.latest.is_empty() && failures.events.is_empty());
    }
}
