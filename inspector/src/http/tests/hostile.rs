//! Requests that are wrong, on purpose or not.

use super::*;

fn failure(answer: &(StatusCode, Value)) -> (u16, &str) {
    let (status, body) = answer;
    assert_eq!(body["kind"], "Status", "{body}");
    assert_eq!(body["code"], status.as_u16());
    assert!(body["message"].as_str().is_some_and(|message| message.len() > 10), "{body}");
    (status.as_u16(), body["reason"].as_str().unwrap())
}

#[tokio::test]
async fn impossible_queries_are_refused() {
    let server = Server::started(true).await;
    let huge = format!("fluxionjobs?labelSelector={}", "a%3Db%2C".repeat(6_000));
    for path in [
        "fluxionjobs?limit=-1",
        "fluxionjobs?limit=1e9",
        "fluxionjobs?continue=rubbish",
        "fluxionjobs?continue=%00%FF%2F",
        "fluxionjobs?continue=9999999999999999999999%3Aa%2Fb",
        "fluxionjobs?resourceVersion=abc&watch=true",
        "fluxionjobs?watch=perhaps",
        "fluxionjobs?sendInitialEvents=true",
        "fluxionjobs?labelSelector=a%20like%20b",
        "fluxionjobs?fieldSelector=spec.color%3Dred",
        "fluxionnodes?fieldSelector=spec.queue%3Da",
        huge.as_str(),
    ] {
        assert_eq!(failure(&server.get(path).await), (400, "BadRequest"), "{path}");
    }
}

#[tokio::test]
async fn odd_but_harmless_queries_are_answered() {
    let server = Server::started(true).await;
    for path in [
        "fluxionjobs?limit=1000000000",
        "fluxionjobs?limit=0&unknown=1&unknown",
        "fluxionjobs?&&==&%zz=%",
        "fluxionjobs?labelSelector=&fieldSelector=,,",
        "namespaces/%F0%9F%98%80/fluxionjobs",
        "namespaces/a%2F..%2Fb/fluxionjobs",
    ] {
        let (status, body) = server.get(path).await;
        assert_eq!((status, &body["kind"]), (StatusCode::OK, &"FluxionJobList".into()), "{path}");
    }
}

#[tokio::test]
async fn names_that_nothing_has_are_not_found() {
    let server = Server::started(true).await;
    for path in [
        "namespaces/a/fluxionjobs/job.x",
        "namespaces/a/fluxionjobs/%2e%2e%2f%2e%2e",
        "namespaces/a/fluxionjobs/x/explain",
        "fluxionnodes/n3",
        "fluxionnodes/n1%00",
        "fluxionqueues/none",
        "fluxiongraphs/dead",
        "fluxiontimelines/x",
        "fluxionaudits/x",
        "nothing",
        "fluxionjobs/x",
        "namespaces/a/fluxionjobs/x/cancel/now",
        "/apis/other.example",
        "/",
        "/..",
    ] {
        assert_eq!(failure(&server.get(path).await), (404, "NotFound"), "{path}");
    }
    assert_eq!(failure(&server.get("namespaces/%FF/fluxionjobs/x").await), (400, "BadRequest"));
    assert_eq!(failure(&server.post("namespaces/a/fluxionjobs/x/cancel", "{}").await), (404, "NotFound"));
    let (_, body) = server.get(&format!("fluxionnodes/{}", "n".repeat(5000))).await;
    assert_eq!(body["reason"], "NotFound");
}

#[tokio::test]
async fn other_methods_are_told_what_to_do_instead() {
    let server = Server::started(true).await;
    for (method, path) in [
        (Method::DELETE, "namespaces/a/fluxionjobs/job.x"),
        (Method::DELETE, "namespaces/a/fluxionjobs"),
        (Method::PATCH, "namespaces/a/fluxionjobs/job.x"),
        (Method::PUT, "namespaces/a/fluxionjobs/job.x"),
        (Method::GET, "namespaces/a/fluxionjobs/job.x/cancel"),
        (Method::DELETE, "namespaces/a/fluxionjobs/job.x/cancel"),
    ] {
        let response = server.send(request(method.clone(), path)).await;
        assert!(response.headers().contains_key("allow"), "{method} {path}");
        let answer = read(response).await;
        assert_eq!(failure(&answer), (405, "MethodNotAllowed"), "{method} {path}");
        assert!(answer.1["message"].as_str().unwrap().contains("kubectl fluxion cancel"), "{}", answer.1);
    }
    for (method, path) in
        [(Method::DELETE, "fluxionnodes/n1"), (Method::POST, "fluxionaudits"), (Method::PUT, "/healthz")]
    {
        let answer = read(server.send(request(method, path)).await).await;
        assert_eq!(failure(&answer), (405, "MethodNotAllowed"), "{path}");
    }
}

#[tokio::test]
async fn bodies_are_bounded_and_read_with_care() {
    let server = Server::started(true).await;
    let path = "namespaces/a/fluxionjobs/job.x/cancel";
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(70_000));
    assert_eq!(failure(&server.post(path, &large).await), (413, "RequestEntityTooLarge"));
    let deep = "[".repeat(60_000);
    for bad in ["nonsense", "[]", "{", "\u{0}", deep.as_str(), "{\"alsoDelete\": \"yes\"}"] {
        assert_eq!(
            failure(&server.post(path, bad).await),
            (400, "BadRequest"),
            "{}",
            &bad[..bad.len().min(20)]
        );
    }
    for fine in ["", "  ", "{}", "{\"kind\":\"DeleteOptions\",\"x\":[1]}"] {
        assert_eq!(failure(&server.post(path, fine).await), (404, "NotFound"), "{fine}");
    }
    assert_eq!(
        failure(&server.post("namespaces/a/fluxionjobs/x/cancel?dryRun=some", "{}").await),
        (400, "BadRequest")
    );
}

#[tokio::test]
async fn documents_cannot_be_watched() {
    let server = Server::started(true).await;
    assert_eq!(failure(&server.get("fluxiongraphs?watch=true").await), (405, "MethodNotAllowed"));
}

#[tokio::test]
async fn a_panic_is_an_answer_without_its_text() {
    let router = Router::new()
        .route("/", axum::routing::get(|| async { panic!("secret inner text") as () }))
        .layer(axum::middleware::from_fn(crate::http::guard::bounded));
    let response = router.oneshot(request(Method::GET, "/")).await.unwrap();
    let answer = read(response).await;
    assert_eq!(failure(&answer), (500, "InternalError"));
    assert!(!answer.1.to_string().contains("secret"));
}

#[tokio::test]
async fn an_answer_that_never_comes_is_given_up() {
    let router = Router::new().route("/", axum::routing::get(std::future::pending::<()>)).layer(
        axum::middleware::from_fn(|request, next| {
            crate::http::guard::within(std::time::Duration::from_millis(20), request, next)
        }),
    );
    let answer = read(router.oneshot(request(Method::GET, "/")).await.unwrap()).await;
    assert_eq!(failure(&answer), (504, "Timeout"));
}
