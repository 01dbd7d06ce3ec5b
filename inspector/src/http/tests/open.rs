//! What answers without data, without a token, and to whom.

use super::*;

#[tokio::test]
async fn health_is_open_and_readiness_follows_the_engine() {
    let server = Server::unready(true);
    let open = |path: &str| {
        let request = Request::builder().uri(path).header("host", "localhost").body(Body::empty()).unwrap();
        server.send(request)
    };
    assert_eq!(open("/healthz").await.status(), StatusCode::OK);
    assert_eq!(open("/livez").await.status(), StatusCode::OK);
    assert_eq!(open("/readyz").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    server.tell([Event::Synced]).await;
    assert_eq!(open("/readyz").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn data_waits_for_the_engine_and_discovery_does_not() {
    let server = Server::unready(true);
    for path in [
        "fluxionjobs",
        "fluxionjobs?watch=true",
        "namespaces/a/fluxionjobs/job.x",
        "namespaces/a/fluxionjobs/job.x/explain",
        "fluxionnodes",
        "fluxionqueues/default",
        "fluxiongraphs/live",
        "fluxionaudits",
    ] {
        let response = server.send(request(Method::GET, path)).await;
        assert_eq!(response.headers()["retry-after"], "1", "{path}");
        let (status, body) = read(response).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert_eq!(body["reason"], "ServiceUnavailable");
    }
    assert_eq!(
        server.post("namespaces/a/fluxionjobs/x/cancel", "{}").await.0,
        StatusCode::SERVICE_UNAVAILABLE
    );
    let openapi = format!("/openapi/v3{BASE}");
    let paths =
        ["/apis", "/apis/fluxion.flux-framework.org", BASE, "/version", "/metrics", "/openapi/v3", &openapi];
    for path in paths {
        assert_eq!(server.get(path).await.0, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn discovery_in_both_forms() {
    let server = Server::unready(true);
    insta::assert_json_snapshot!("discovery_resources", server.get(BASE).await.1);
    let mut aggregated = request(Method::GET, "/apis");
    let accept = "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io, application/json";
    aggregated.headers_mut().insert("accept", accept.parse().unwrap());
    let response = server.send(aggregated).await;
    assert_eq!(
        response.headers()["content-type"],
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    insta::assert_json_snapshot!("discovery_aggregated", read(response).await.1);
    let (_, plain) = server.get("/apis").await;
    assert_eq!(plain["kind"], "APIGroupList");
}

#[tokio::test]
async fn only_the_token_opens_the_rest() {
    let server = Server::started(true).await;
    for value in ["", "Bearer ", "Bearer wrong", "Basic c2VjcmV0", "secret"] {
        for path in ["/apis", "/metrics", "/nowhere", &format!("{BASE}/fluxionjobs")] {
            let mut request = request(Method::GET, path);
            request.headers_mut().insert("authorization", value.parse().unwrap());
            let response = server.send(request).await;
            assert_eq!(response.headers()["www-authenticate"], "Bearer");
            let (status, body) = read(response).await;
            assert_eq!(
                (status, &body["reason"]),
                (StatusCode::UNAUTHORIZED, &"Unauthorized".into()),
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn names_that_a_web_page_chose_are_refused() {
    let server = Server::started(true).await;
    for host in ["evil.example", "evil.example:8181", "127.0.0.1.evil.example"] {
        let mut request = request(Method::GET, "/healthz");
        request.headers_mut().insert("host", host.parse().unwrap());
        assert_eq!(server.send(request).await.status(), StatusCode::FORBIDDEN, "{host}");
    }
}

#[tokio::test]
async fn metrics_count_requests_and_show_the_snapshot() {
    let server = Server::started(true).await;
    server.get("fluxionjobs").await;
    server.get("nowhere").await;
    let response = server.send(request(Method::GET, "/metrics")).await;
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    assert!(
        text.contains(r#"fluxion_http_requests_total{resource="fluxionjobs",verb="list",code="200"} 1"#),
        "{text}"
    );
    assert!(
        text.contains(r#"fluxion_http_requests_total{resource="other",verb="get",code="404"} 1"#),
        "{text}"
    );
    assert!(text.contains("fluxion_nodes 2"), "{text}");
}

#[tokio::test]
async fn metrics_tell_what_waits_why_and_what_is_held() {
    let server = Server::started(true).await;
    let mut huge = pod("team", "huge");
    huge.needs = Ok(Arc::new(resources(&[("cpu", 9_000_000), ("pods", 1)])));
    server.tell([Event::Pod(Box::new(pod("team", "a"))), Event::Pod(Box::new(huge))]).await;
    for (accept, content_type) in [
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text", "application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ] {
        let mut request = request(Method::GET, "/metrics");
        request.headers_mut().insert("accept", accept.parse().unwrap());
        let response = server.send(request).await;
        assert_eq!(response.headers()["content-type"], content_type);
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        for line in [
            r#"fluxion_waiting_jobs{queue="default",reason="Unsatisfiable"} 1"#,
            r#"fluxion_resource_allocated{resource="cpu"} 1.0"#,
            r#"fluxion_job_wait_seconds_count{queue="default"} 1"#,
            "# HELP fluxion_resource_allocated Resources allocated to Pods on nodes",
            "fluxion_build_info{",
        ] {
            assert!(text.contains(line), "no {line} in {text}");
        }
    }
}

#[tokio::test]
async fn discovery_is_sent_once() {
    let server = Server::unready(true);
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let ask = |accept: &str, known: Option<&str>| {
        let mut request = request(Method::GET, "/apis");
        request.headers_mut().insert("accept", accept.parse().unwrap());
        if let Some(known) = known {
            request.headers_mut().insert("if-none-match", known.parse().unwrap());
        }
        server.send(request)
    };
    let first = ask(accept, None).await;
    let tag = first.headers()["etag"].to_str().unwrap().to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    assert!(first.headers().get_all("vary").iter().any(|value| value == "Accept"));
    for known in [tag.as_str(), "*", &format!("\"x\", W/{tag}")] {
        let again = ask(accept, Some(known)).await;
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(again.headers()["etag"], tag.as_str());
        assert!(to_bytes(again.into_body(), 100).await.unwrap().is_empty());
    }
    assert_eq!(ask(accept, Some("\"x\"")).await.status(), StatusCode::OK);
    // The other form is another answer.
    assert_eq!(ask("application/json", Some(&tag)).await.status(), StatusCode::OK);
    for old in
        ["application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList, application/json", "*/*"]
    {
        assert_eq!(read(ask(old, None).await).await.1["kind"], "APIGroupList", "{old}");
    }
}

#[tokio::test]
async fn openapi_is_found_from_its_root() {
    let server = Server::unready(true);
    let (_, root) = server.get("/openapi/v3").await;
    let url = root["paths"][&BASE[1..]]["serverRelativeURL"].as_str().unwrap();
    let response = server.send(request(Method::GET, url)).await;
    assert_eq!(response.headers()["cache-control"], "public, max-age=31536000, immutable");
    let tag = response.headers()["etag"].to_str().unwrap().to_owned();
    assert!(url.ends_with(tag.trim_matches('"')), "{url} {tag}");
    let (_, document) = read(response).await;
    let gvk = serde_json::json!({ "group": "fluxion.flux-framework.org", "version": "v1alpha1", "kind": "FluxionJob" });
    let path = format!("{BASE}/namespaces/{{namespace}}/fluxionjobs/{{name}}");
    assert_eq!(document["paths"][path]["get"]["x-kubernetes-group-version-kind"], gvk);
    let schema = &document["components"]["schemas"]["org.flux-framework.fluxion.v1alpha1.FluxionJob"];
    assert_eq!(schema["x-kubernetes-group-version-kind"], serde_json::json!([gvk]));
    let old = server.send(request(Method::GET, &format!("/openapi/v3{BASE}?hash=OLD"))).await;
    assert_eq!(
        (old.status(), &old.headers()["cache-control"]),
        (StatusCode::OK, &"no-cache, private".parse().unwrap())
    );
}
