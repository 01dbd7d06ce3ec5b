//! Resumes what was suspended when it was created; from then on, its user decides whether it is suspended.

use fluxion_scheduler::event::BindOutcome;
use fluxion_scheduler::marks::{ADMISSION, RESUMED};
use fluxion_scheduler::model::ObjectRef;
use kube::Client;
use serde_json::json;

use super::api::{Write, WriteError, segment};
use super::fence;
use crate::failpoint;
use crate::kube::suspendable;

/// Resumes the object with this UID, in the term with this number: a Job, or another kind that can be suspended.
pub(super) async fn object(client: &Client, object: &ObjectRef, term: u64) -> Result<(), WriteError> {
    let of_job = ("jobs", &["spec", "suspend"][..]);
    let (plural, field) =
        suspendable::of(&object.api_version, &object.kind).map_or(of_job, |kind| (kind.plural, kind.suspend));
    let (namespace, name) = (segment(&object.namespace), segment(&object.name));
    let path = format!("/apis/{}/namespaces/{namespace}/{plural}/{name}", object.api_version);
    let suspend = field.iter().rev().fold(json!(false), |value, name| json!({ *name: value }));
    let mut patch = json!({
        "metadata": {"uid": &*object.uid, "annotations": {ADMISSION: RESUMED}},
    });
    patch["spec"] = suspend["spec"].clone();
    failpoint::reached("resume");
    let written =
        Write::patch(fence::path(&path, term), "application/merge-patch+json", &patch).send(client).await;
    failpoint::reached("resumed");
    match written {
        Ok(_) => Ok(()),
        Err(WriteError::Refused(why)) if why.contains("metadata.uid") => Err(WriteError::Gone),
        Err(error) => Err(error),
    }
}

/// What the engine is told.
pub(super) fn outcome(done: &Result<(), WriteError>) -> BindOutcome {
    match done {
        Ok(()) => BindOutcome::Done,
        Err(WriteError::Gone) => BindOutcome::Gone("it no longer exists".into()),
        Err(WriteError::Refused(why)) => BindOutcome::Refused(why.as_str().into()),
        Err(error) => BindOutcome::Transient(error.to_string().into()),
    }
}
