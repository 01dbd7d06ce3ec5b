//! The admission webhook: it does what the chart's admission policies do, on API servers without `MutatingAdmissionPolicy`.
//!
//! Which objects are sent is decided by the webhook's configuration. kube-apiserver presents no certificate, so anybody may
//! ask; an answer only depends on the question and on our scheduler name.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use fluxion_scheduler::marks::{ADMISSION, GATE, RESUMED, SUSPENDED};
use k8s_openapi::ByteString;
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::refusal::Refusal;
use crate::kube::suspendable;

/// Maximum size of a review: an object of the size that API servers accept, twice.
pub(super) const REVIEW_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Deserialize)]
struct Review {
    request: Request,
}

#[derive(Debug, Deserialize)]
struct Request {
    uid: String,
    #[serde(default)]
    object: Value,
}

/// Pods that we bind.
pub(super) async fn bind(State(app): State<App>, body: Bytes) -> Result<Json<Value>, Refusal> {
    let snapshot = app.engine.snapshot();
    let name = snapshot.state.settings().scheduler_names.first().cloned();
    answer(&body, |object| {
        let name = name.as_deref()?;
        is(object, "Pod").then(|| vec![add("/spec/schedulerName", json!(name))])
    })
}

/// Pods that we place and kube-scheduler binds.
pub(super) async fn gate(body: Bytes) -> Result<Json<Value>, Refusal> {
    answer(&body, |object| {
        if !is(object, "Pod") {
            return None;
        }
        let gate = json!({ "name": GATE });
        match object.pointer("/spec/schedulingGates").and_then(Value::as_array) {
            Some(gates) if gates.iter().any(|one| one["name"] == GATE) => None,
            Some(_) => Some(vec![add("/spec/schedulingGates/-", gate)]),
            None => Some(vec![add("/spec/schedulingGates", json!([gate]))]),
        }
    })
}

/// Jobs and the like that are queued before they have Pods.
pub(super) async fn suspend(body: Bytes) -> Result<Json<Value>, Refusal> {
    answer(&body, |object| {
        let field = suspend_field(object)?;
        let mut patch = annotate(object, SUSPENDED);
        let mut path = String::new();
        for (at, name) in field.iter().enumerate() {
            path = format!("{path}/{name}");
            if at + 1 == field.len() {
                patch.push(add(&path, json!(true)));
            } else if !object.pointer(&path).is_some_and(Value::is_object) {
                patch.push(add(&path, json!({})));
            }
        }
        Some(patch)
    })
}

/// What was queued and is resumed, whoever does that.
pub(super) async fn resume(body: Bytes) -> Result<Json<Value>, Refusal> {
    answer(&body, |object| suspend_field(object).map(|_| annotate(object, RESUMED)))
}

/// Names of the fields that lead to the one that suspends the object, if it can be suspended.
fn suspend_field(object: &Value) -> Option<&'static [&'static str]> {
    if is(object, "Job") {
        return Some(&["spec", "suspend"]);
    }
    let kind = suspendable::of(object["apiVersion"].as_str()?, object["kind"].as_str()?)?;
    is(object, kind.kind).then_some(kind.suspend)
}

fn annotate(object: &Value, value: &str) -> Vec<Value> {
    let mut patch = Vec::new();
    if !object.pointer("/metadata/annotations").is_some_and(Value::is_object) {
        patch.push(add("/metadata/annotations", json!({})));
    }
    let key = ADMISSION.replace('/', "~1");
    patch.push(add(&format!("/metadata/annotations/{key}"), json!(value)));
    patch
}

fn is(object: &Value, kind: &str) -> bool {
    object["kind"] == kind && object["spec"].is_object() && object["metadata"].is_object()
}

fn add(path: &str, value: Value) -> Value {
    json!({ "op": "add", "path": path, "value": value })
}

/// Always allows the object, with these changes if any.
fn answer(body: &[u8], patch: impl FnOnce(&Value) -> Option<Vec<Value>>) -> Result<Json<Value>, Refusal> {
    let invalid = |error: serde_json::Error| Refusal::BadRequest(format!("not an AdmissionReview: {error}"));
    let review: Review = serde_json::from_slice(body).map_err(invalid)?;
    let mut response = json!({ "uid": review.request.uid, "allowed": true });
    if let Some(patch) = patch(&review.request.object) {
        let bytes = serde_json::to_vec(&patch).map_err(invalid)?;
        response["patchType"] = json!("JSONPatch");
        response["patch"] = serde_json::to_value(ByteString(bytes)).map_err(invalid)?;
    }
    Ok(Json(json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response })))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn patched(object: Value, answer: impl AsyncFn(Bytes) -> Result<Json<Value>, Refusal>) -> Value {
        let review = json!({ "request": { "uid": "u1", "object": object } });
        let Json(answer) = answer(review.to_string().into()).await.unwrap();
        let response = &answer["response"];
        assert_eq!((&response["uid"], &response["allowed"]), (&json!("u1"), &json!(true)));
        let Some(patch) = response.get("patch") else { return Value::Null };
        let ByteString(patch) = serde_json::from_value(patch.clone()).unwrap();
        serde_json::from_slice(&patch).unwrap()
    }

    #[tokio::test]
    async fn our_gate_is_added_once_to_the_others() {
        let pod = |spec: Value| json!({ "kind": "Pod", "metadata": {}, "spec": spec });
        let alone = patched(pod(json!({})), gate).await;
        assert_eq!(alone, json!([{"op": "add", "path": "/spec/schedulingGates", "value": [{"name": GATE}]}]));
        let another = patched(pod(json!({"schedulingGates": [{"name": "x"}]})), gate).await;
        assert_eq!(another[0]["path"], "/spec/schedulingGates/-");
        for odd in
            [pod(json!({"schedulingGates": [{"name": GATE}]})), json!({"kind": "Job"}), json!([]), json!(1)]
        {
            assert_eq!(patched(odd.clone(), gate).await, Value::Null, "{odd}");
        }
    }

    #[tokio::test]
    async fn a_suspended_job_is_marked_as_ours() {
        let job = json!({"kind": "Job", "metadata": {"annotations": {"a": "b"}}, "spec": {}});
        let key = "/metadata/annotations/fluxion.flux-framework.org~1admission";
        let want = json!([{"op": "add", "path": key, "value": SUSPENDED},
            {"op": "add", "path": "/spec/suspend", "value": true}]);
        assert_eq!(patched(job, suspend).await, want);
        let mpi = json!({"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {}, "spec": {}});
        let patch = patched(mpi, suspend).await;
        assert_eq!(patch[2], json!({"op": "add", "path": "/spec/runPolicy", "value": {}}));
        assert_eq!(patch[3], json!({"op": "add", "path": "/spec/runPolicy/suspend", "value": true}));
        let other = json!({"apiVersion": "example.com/v1", "kind": "MPIJob", "metadata": {}, "spec": {}});
        assert_eq!(patched(other, suspend).await, Value::Null);
        let bare = patched(json!({"kind": "Job", "metadata": {}, "spec": {}}), resume).await;
        assert_eq!(bare[0], json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
        assert_eq!(bare[1]["value"], RESUMED);
    }

    #[tokio::test]
    async fn what_is_no_review_is_refused() {
        for body in ["", "{}", "[]", r#"{"request": {"object": {}}}"#] {
            assert!(gate(Bytes::from(body)).await.is_err(), "{body}");
        }
    }
}
