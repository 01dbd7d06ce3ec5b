//! The secure port: who is let through, what is refused and how, and what becomes of a watch whose right is gone.

use futures::StreamExt;

use super::*;
use crate::access::Access;
use crate::access::peer::Peer;
use crate::access::tests::Reviewer;
use crate::http::secure_router;

/// A server with a secure port, in front of a cluster that says who may.
pub(super) struct Secure {
    pub server: Server,
    pub reviewer: Reviewer,
    router: Router,
}

impl Secure {
    pub(super) async fn started() -> Self {
        Self::paced(Duration::from_secs(10), Duration::from_secs(30)).await
    }

    /// Where this deletes the objects of cancelled jobs.
    pub(super) async fn cancelling(cancels: Cancels) -> Self {
        let mut server = Server::started(false).await;
        let settings = HttpSettings { cancels, ..(*server.app.settings).clone() };
        server.app.settings = Arc::new(settings);
        server.router = router(server.app.clone());
        Self::before(server, Duration::from_secs(10), Duration::from_secs(30))
    }

    async fn paced(holds: Duration, recheck: Duration) -> Self {
        Self::before(Server::started(false).await, holds, recheck)
    }

    fn before(server: Server, holds: Duration, recheck: Duration) -> Self {
        let reviewer = Reviewer::default();
        let access = Access::paced(reviewer.client(), Vec::new(), holds, recheck);
        let router = secure_router(server.app.clone(), Arc::new(access), None);
        Self { server, reviewer, router }
    }

    pub(super) async fn send(&self, mut request: Request<Body>) -> Response {
        request.extensions_mut().insert(Peer::new("192.0.2.1:1".parse().unwrap(), Vec::new()));
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// As this user.
    pub(super) async fn ask(&self, user: &str, method: Method, path: &str) -> (StatusCode, Value) {
        read(self.send(of(user, method, path)).await).await
    }
}

fn of(user: &str, method: Method, path: &str) -> Request<Body> {
    let mut request = request(method, path);
    let headers = request.headers_mut();
    headers.insert("host", "fluxion-inspector.fluxion-system.svc".parse().unwrap());
    headers.insert("authorization", format!("Bearer token-of-{user}").parse().unwrap());
    request
}

#[tokio::test]
async fn who_is_not_known_learns_only_that_the_server_lives() {
    let secure = Secure::started().await;
    secure.reviewer.allow(&["* * * *", "* * *"]);
    for (token, forged) in [("", false), ("Bearer secret", false), ("Bearer x", true), ("", true)] {
        for path in ["/apis", "/version", "/metrics", "/nowhere", "fluxionjobs"] {
            let mut request = request(Method::GET, path);
            request.headers_mut().insert("authorization", token.parse().unwrap());
            if forged {
                request.headers_mut().insert("x-remote-user", "admin".parse().unwrap());
                request.headers_mut().insert("x-remote-group", "system:masters".parse().unwrap());
            }
            let (status, body) = read(secure.send(request).await).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
            assert_eq!((&body["reason"], &body["message"]), (&"Unauthorized".into(), &"Unauthorized".into()));
        }
    }
    let mut open = request(Method::GET, "/readyz");
    open.headers_mut().remove("authorization");
    assert_eq!(secure.send(open).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn each_request_is_authorised_and_discovery_is_not() {
    let secure = Secure::started().await;
    secure.reviewer.allow(&[
        "jane list team fluxionjobs",
        "jane get team fluxionjobs/explain",
        "prom get /metrics",
    ]);
    secure
        .server
        .tell([Event::Pod(Box::new(pod("team", "a"))), Event::Pod(Box::new(pod("other", "b")))])
        .await;
    for path in ["/apis", "/apis/fluxion.flux-framework.org", BASE, "/version"] {
        assert_eq!(secure.ask("nobody", Method::GET, path).await.0, StatusCode::OK, "{path}");
    }
    assert_eq!(secure.ask("prom", Method::GET, "/metrics").await.0, StatusCode::OK);
    let (status, list) = secure.ask("jane", Method::GET, "namespaces/team/fluxionjobs").await;
    assert_eq!((status, list["items"].as_array().unwrap().len()), (StatusCode::OK, 1));
    let explained = secure.ask("jane", Method::GET, "namespaces/team/fluxionjobs/pod.a/explain").await;
    assert_eq!(explained.0, StatusCode::OK);
    for (method, path, message) in [
        (
            Method::GET,
            "fluxionjobs",
            r#"User "jane" cannot list resource "fluxionjobs" in API group "fluxion.flux-framework.org" at the cluster scope"#,
        ),
        (Method::GET, "fluxionjobs?watch=true", r#"User "jane" cannot watch"#),
        (Method::GET, "namespaces/other/fluxionjobs", r#"in the namespace "other""#),
        (
            Method::GET,
            "namespaces/other/fluxionjobs/none",
            r#"fluxionjobs.fluxion.flux-framework.org "none" is forbidden"#,
        ),
        (Method::GET, "namespaces/team/fluxionjobs?watch=1", r#"User "jane" cannot watch"#),
        (
            Method::POST,
            "namespaces/team/fluxionjobs/pod.a/cancel",
            r#"cannot create resource "fluxionjobs/cancel""#,
        ),
        (
            Method::GET,
            "namespaces/team/fluxionjobs/pod.a/cancel",
            r#"cannot get resource "fluxionjobs/cancel""#,
        ),
        (Method::DELETE, "namespaces/team/fluxionjobs/pod.a", r#"cannot delete resource "fluxionjobs""#),
        (Method::GET, "fluxionnodes", r#"cannot list resource "fluxionnodes""#),
        (Method::GET, "/metrics", r#"forbidden: User "jane" cannot get path "/metrics""#),
        (Method::GET, "/nowhere", r#"forbidden: User "jane" cannot get path "/nowhere""#),
    ] {
        let (status, body) = secure.ask("jane", method, path).await;
        assert_eq!((status, &body["reason"]), (StatusCode::FORBIDDEN, &"Forbidden".into()), "{path}");
        assert!(body["message"].as_str().unwrap().contains(message), "{path}: {body}");
    }
    *secure.reviewer.broken.lock().unwrap() = true;
    let response = secure.send(of("ann", Method::GET, "fluxionjobs")).await;
    assert_eq!(
        (response.status(), &response.headers()["retry-after"]),
        (StatusCode::SERVICE_UNAVAILABLE, &"1".parse().unwrap())
    );
}

#[tokio::test]
async fn a_watch_ends_when_its_right_is_gone() {
    let blink = Duration::from_millis(50);
    let secure = Secure::paced(blink / 2, blink).await;
    secure.reviewer.allow(&["jane watch team fluxionjobs"]);
    secure.server.tell([Event::Pod(Box::new(pod("team", "a")))]).await;
    let response = secure.send(of("jane", Method::GET, "namespaces/team/fluxionjobs?watch=true")).await;
    assert_eq!(response.status(), StatusCode::OK);
    let mut lines = response.into_body().into_data_stream();
    let first = lines.next().await.unwrap().unwrap();
    assert!(first.starts_with(br#"{"type":"ADDED""#));
    assert!(tokio::time::timeout(blink * 4, lines.next()).await.is_err(), "it stands while the right does");
    secure.reviewer.allow(&[]);
    let last = tokio::time::timeout(Duration::from_secs(10), lines.next()).await.unwrap().unwrap().unwrap();
    let event: Value = serde_json::from_slice(&last).unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&"ERROR".into(), &403.into()), "{event}");
    assert!(lines.next().await.is_none());

    // Who sees more or less than before has to list again; while nobody can be asked, it stands.
    secure.reviewer.allow(&["jane watch team fluxionjobs"]);
    tokio::time::sleep(blink).await;
    let response = secure.send(of("jane", Method::GET, "namespaces/team/fluxionjobs?watch=true")).await;
    let mut lines = response.into_body().into_data_stream();
    lines.next().await.unwrap().unwrap();
    *secure.reviewer.broken.lock().unwrap() = true;
    assert!(tokio::time::timeout(blink * 3, lines.next()).await.is_err());
    secure.reviewer.allow(&["jane watch team fluxionjobs", "jane list - fluxionjobs"]);
    *secure.reviewer.broken.lock().unwrap() = false;
    let last = tokio::time::timeout(Duration::from_secs(10), lines.next()).await.unwrap().unwrap().unwrap();
    let event: Value = serde_json::from_slice(&last).unwrap();
    assert_eq!(event["object"]["code"], 410, "{event}");
}
