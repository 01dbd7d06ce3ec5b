//! Asking by way of kube-apiserver, and what is said where that does not lead to an inspector.

use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use http::StatusCode;
use serde_json::json;

use crate::cancelling_in_a_cluster::kubeconfig;
use crate::mock::{Mock, Ran, failure, plugin};
use crate::sample;

const JOBS: &str = "/apis/fluxion.flux-framework.org/v1alpha1/namespaces/default/fluxionjobs";
const REGISTRATION: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.fluxion.flux-framework.org";

fn jobs(cluster: Router, further: &[&str]) -> Ran {
    let mock = Mock::serve(cluster);
    let kubeconfig = kubeconfig(&mock.url);
    Ran::of(plugin().args(["jobs", "-o", "name"]).args(further).env("KUBECONFIG", kubeconfig.path()))
}

fn plain(code: u16, text: &'static str) -> Response {
    (StatusCode::from_u16(code).unwrap(), [("content-type", "text/plain")], text).into_response()
}

#[test]
fn a_cluster_without_the_api_is_told_how_to_get_it() {
    let status = || async { failure(404, "NotFound", "the server could not find the requested resource") };
    let text = || async { plain(404, "404 page not found\n") };
    for cluster in [Router::new().fallback(any(status)), Router::new().fallback(any(text))] {
        let ran = jobs(cluster, &[]);
        assert_eq!(ran.code, 5, "{}", ran.err);
        assert!(ran.err.contains("does not serve fluxion.flux-framework.org/v1alpha1"), "{}", ran.err);
        assert!(ran.err.contains("helm install") && ran.err.contains("--server"), "{}", ran.err);
    }
}

#[test]
fn an_api_that_is_down_is_told_with_its_condition() {
    let condition = json!({ "status": { "conditions": [{
        "type": "Available", "status": "False", "reason": "MissingEndpoints",
        "message": "endpoints for service/fluxion-inspector in \"fluxion-system\" have no addresses",
    }] } });
    let registered = move || {
        let condition = condition.clone();
        async move { Json(condition) }
    };
    for text in [
        "service unavailable\n",
        "error trying to reach service: dial tcp 10.0.0.1:8443: connect: connection refused",
    ] {
        let down = move || async move { plain(503, text) };
        let ran =
            jobs(Router::new().route(JOBS, get(down)).route(REGISTRATION, get(registered.clone())), &[]);
        assert_eq!(ran.code, 5, "{}", ran.err);
        assert!(
            ran.err.contains("is not available (MissingEndpoints: endpoints for service/"),
            "{}",
            ran.err
        );
        // Who may not read it learns where to look.
        let forbidden = || async { failure(403, "Forbidden", "apiservices is forbidden") };
        let ran = jobs(Router::new().route(JOBS, get(down)).route(REGISTRATION, get(forbidden)), &[]);
        assert_eq!(ran.code, 5, "{}", ran.err);
        assert!(ran.err.contains("kubectl describe apiservice v1alpha1.fluxion"), "{}", ran.err);
    }
    // The inspector's own answer is told as it is.
    let own = || async { failure(503, "ServiceUnavailable", "the cluster has not been fully read yet") };
    let ran = jobs(Router::new().route(JOBS, get(own)), &[]);
    assert!(ran.err.contains("the cluster has not been fully read yet"), "{}", ran.err);
}

#[test]
fn a_token_replaces_the_user_of_the_kubeconfig() {
    let who = |headers: http::HeaderMap| async move {
        match headers.get("authorization").and_then(|value| value.to_str().ok()) {
            Some("Bearer another") => {
                Json(sample::list(vec![sample::job("Job", "a", "Running")])).into_response()
            }
            other => failure(403, "Forbidden", &format!("{other:?} may not")),
        }
    };
    let cluster = || Router::new().route(JOBS, get(who));
    assert_eq!(jobs(cluster(), &["--token", "another"]).out, "job/a\n");
    assert_eq!(jobs(cluster(), &[]).code, 4);
}
