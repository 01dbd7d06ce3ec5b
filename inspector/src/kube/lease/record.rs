//! What a holder records in annotations of the Lease: its process, its address, its term.
//!
//! The annotations about a holder start with its identity, so that those of an earlier holder are not taken for it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use k8s_openapi::api::coordination::v1::Lease as Object;

/// The holder's process, for a successor on the same machine.
pub(super) const HOLDER_PROCESS: &str = "fluxion.flux-framework.org/holder-process";
/// Where other inspectors reach the holder.
const HOLDER_ADDRESS: &str = "fluxion.flux-framework.org/holder-address";
/// The number of the current or last term; the chart's fence reads it.
pub(crate) const TERM: &str = "fluxion.flux-framework.org/term";

/// A new term is at least this much later than the one before (milliseconds): a leader may publish 2^20 snapshots per
/// millisecond before its numbers reach those of its successor.
const TERM_STEP: u64 = 1 << 10;
/// Later terms are not believed: their snapshots' numbers would not be valid resource versions. This is the year 2109.
const TERM_MAX: u64 = 1 << 42;

fn get<'a>(lease: &'a Object, annotation: &str) -> Option<&'a str> {
    lease.metadata.annotations.as_ref()?.get(annotation).map(String::as_str)
}

fn set(lease: &mut Object, annotation: &str, value: Option<String>) {
    let annotations = lease.metadata.annotations.get_or_insert_with(BTreeMap::new);
    match value {
        Some(value) => drop(annotations.insert(annotation.to_owned(), value)),
        None => drop(annotations.remove(annotation)),
    }
}

/// The value of an annotation that was written by this holder.
fn of_holder<'a>(lease: &'a Object, annotation: &str, holder: &str) -> Option<&'a str> {
    let (signer, value) = get(lease, annotation)?.split_once(' ')?;
    (signer == holder).then_some(value)
}

/// The process of the holder with this identity.
pub(super) fn process<'a>(lease: &'a Object, holder: &str) -> Option<&'a str> {
    of_holder(lease, HOLDER_PROCESS, holder)
}

/// The address of the holder with this identity.
pub(super) fn address(lease: &Object, holder: &str) -> Option<SocketAddr> {
    of_holder(lease, HOLDER_ADDRESS, holder)?.parse().ok()
}

/// The number of the current or last term.
pub(super) fn term(lease: &Object) -> Option<u64> {
    get(lease, TERM)?.parse().ok().filter(|term| *term <= TERM_MAX)
}

/// The number of a term that follows the one before and starts now (epoch milliseconds).
pub(super) fn next_term(before: Option<u64>, now: i64) -> u64 {
    let earliest = before.map_or(1, |before| before.saturating_add(TERM_STEP));
    earliest.max(u64::try_from(now).unwrap_or(0)).min(TERM_MAX)
}

/// Records a holder.
pub(super) fn sign(
    lease: &mut Object,
    holder: &str,
    process: Option<String>,
    address: Option<SocketAddr>,
    term: u64,
) {
    set(lease, HOLDER_PROCESS, process.map(|process| format!("{holder} {process}")));
    set(lease, HOLDER_ADDRESS, address.map(|address| format!("{holder} {address}")));
    set(lease, TERM, Some(term.to_string()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_holder_recorded_is_not_taken_for_that_of_the_holder() {
        let mut lease = Object::default();
        let at = "192.0.2.1:8443".parse().unwrap();
        sign(&mut lease, "a", Some("process".to_owned()), Some(at), 7);
        assert_eq!((process(&lease, "a"), address(&lease, "a")), (Some("process"), Some(at)));
        assert_eq!((process(&lease, "b"), address(&lease, "b"), term(&lease)), (None, None, Some(7)));
        sign(&mut lease, "b", None, None, 8);
        assert_eq!((process(&lease, "a"), address(&lease, "a"), address(&lease, "b")), (None, None, None));
        set(&mut lease, HOLDER_ADDRESS, Some("b nonsense".to_owned()));
        assert_eq!(address(&lease, "b"), None);
    }

    #[test]
    fn terms_increase_whatever_the_clock_says() {
        let now = 1_767_225_600_000;
        let first = next_term(None, now);
        assert_eq!(first, 1_767_225_600_000);
        let set_back = next_term(Some(first), now - 3_600_000);
        assert!(set_back > first + 1000 && set_back < first + 2000);
        assert_eq!(next_term(Some(set_back), now + 3_600_000), first + 3_600_000);
        assert_eq!(next_term(Some(first), i64::MIN), set_back);
        let mut lease = Object::default();
        for (text, known) in [("", None), ("-1", None), ("99999999999999999", None), ("12", Some(12))] {
            set(&mut lease, TERM, Some(text.to_owned()));
            assert_eq!(term(&lease), known, "{text}");
        }
        // The numbers of snapshots have to fit the signed numbers of clients.
        assert!(i64::try_from(u128::from(next_term(Some(TERM_MAX), i64::MAX)) << 20).is_ok());
    }
}
