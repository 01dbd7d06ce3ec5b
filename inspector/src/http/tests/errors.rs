//! What errors say they are about.

use serde_json::json;

use super::*;

#[tokio::test]
async fn errors_say_what_they_are_about_as_kube_apiserver_does() {
    let server = Server::started(false).await;
    let group = "fluxion.flux-framework.org";
    for (method, path, code, details) in [
        (
            Method::GET,
            "namespaces/team/fluxionjobs/job.none",
            404,
            json!({"name": "job.none", "group": group, "kind": "fluxionjobs"}),
        ),
        (
            Method::GET,
            "fluxionnodes/none",
            404,
            json!({"name": "none", "group": group, "kind": "fluxionnodes"}),
        ),
        (
            Method::DELETE,
            "namespaces/team/fluxionjobs/job.a",
            405,
            json!({"name": "job.a", "group": group, "kind": "fluxionjobs"}),
        ),
        (Method::PUT, "fluxionqueues", 405, json!({"group": group, "kind": "fluxionqueues"})),
        (
            Method::GET,
            "fluxionjobs?resourceVersionMatch=Exact",
            422,
            json!({
                "group": "meta.k8s.io",
                "kind": "ListOptions",
                "causes": [{
                    "reason": "FieldValueInvalid",
                    "message": "Exact requires a resourceVersion other than 0",
                    "field": "resourceVersionMatch",
                }],
            }),
        ),
        (
            Method::GET,
            "fluxionjobs?resourceVersion=9000000000000000000",
            504,
            json!({
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                "retryAfterSeconds": 1,
            }),
        ),
        (Method::GET, "fluxionjobs?limit=x", 400, Value::Null),
        (Method::GET, "/apis/none", 404, Value::Null),
        (Method::GET, "fluxionjobs?pretty=true&limit=x", 400, Value::Null),
    ] {
        let (status, body) = read(server.send(request(method, path)).await).await;
        assert_eq!((status.as_u16(), &body["details"]), (code, &details), "{path}: {body}");
        assert_eq!((&body["kind"], &body["status"]), (&json!("Status"), &json!("Failure")), "{path}");
    }
}

#[tokio::test]
async fn an_error_that_was_completed_is_whole() {
    let server = Server::started(false).await;
    let response =
        server.send(request(Method::DELETE, "namespaces/team/fluxionjobs/job.a?pretty=true")).await;
    let length = response.headers().get("content-length").cloned();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    assert!(length.is_none_or(|length| length.to_str().unwrap() == body.len().to_string()));
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["details"]["name"], "job.a");
}
