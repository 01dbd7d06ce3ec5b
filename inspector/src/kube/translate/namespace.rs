//! Namespaces: their labels, for the namespace selectors of inter-Pod affinity.

use fluxion_scheduler::event::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Unreadable, labels};

/// The event for a namespace.
pub fn translate(meta: &ObjectMeta) -> Result<Event, Unreadable> {
    match meta.name.as_deref() {
        None | Some("") => Err(Unreadable("name")),
        Some(name) => Ok(Event::Namespace { name: name.into(), labels: labels(meta.labels.as_ref()) }),
    }
}
