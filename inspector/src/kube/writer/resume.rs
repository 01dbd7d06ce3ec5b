//! Resumes a Job that was suspended when it was created; from then on, its user decides whether it is suspended.

use fluxion_scheduler::event::BindOutcome;
use fluxion_scheduler::marks::{ADMISSION, RESUMED};
use fluxion_scheduler::model::ObjectRef;
use kube::Client;
use serde_json::json;

use super::api::{Write, WriteError, segment};
use crate::failpoint;

/// Resumes the Job with this UID.
pub(super) async fn job(client: &Client, object: &ObjectRef) -> Result<(), WriteError> {
    let path =
        format!("/apis/batch/v1/namespaces/{}/jobs/{}", segment(&object.namespace), segment(&object.name));
    let patch = json!({
        "metadata": {"uid": &*object.uid, "annotations": {ADMISSION: RESUMED}},
        "spec": {"suspend": false},
    });
    failpoint::reached("resume");
    let written = Write::patch(path, "application/merge-patch+json", &patch).send(client).await;
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
        Err(WriteError::Gone) => BindOutcome::Gone("the Job no longer exists".into()),
        Err(WriteError::Refused(why)) => BindOutcome::Refused(why.as_str().into()),
        Err(error) => BindOutcome::Transient(error.to_string().into()),
    }
}
