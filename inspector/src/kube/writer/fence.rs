//! The fence around decisions of earlier terms, of which kube-apiserver's part is the chart's `fence.yaml`.
//!
//! Requests that a leader has sent may arrive late, after another inspector has taken over and decided otherwise. So
//! each decision names its term, as its field manager: unlike an annotation, that is not stored in a Pod when it is
//! bound. kube-apiserver refuses it if the Lease contains a later term. Deletions have no field manager: those that an
//! eviction falls back to are judged by that of the condition which was written before (see `evict.rs`).

use crate::kube::lease::TERM;

/// What the number of the term is appended to.
const FIELD_MANAGER: &str = "fluxion-inspector.term-";

/// The path of a decision (without a query) in the term with this number.
pub(super) fn path(path: &str, term: u64) -> String {
    format!("{path}?fieldManager={FIELD_MANAGER}{term}")
}

/// Whether the message of a response says that the fence has refused the request.
pub(super) fn refused(message: &str) -> bool {
    message.contains(&format!("{TERM}: the request is "))
}
