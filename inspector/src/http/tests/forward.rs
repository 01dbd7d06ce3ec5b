//! A follower and a leader with TLS between them: what users get through the follower.

use std::net::SocketAddr;
use std::time::SystemTime;

use futures::StreamExt;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::*;
use crate::access::Access;
use crate::access::peer::Peer;
use crate::access::tests::Reviewer;
use crate::health::{Leadership, Term};
use crate::http::{Forwarding, listen_secure, secure_router, serve_secure};
use crate::tls::authority::{Authority, Issued};
use crate::tls::replica::{REPLICA, ReplicaTls, ShownCertificates};
use crate::tls::server_config;

/// One inspector with its secure port, and what it knows of who leads.
struct Replica {
    server: Server,
    health: Arc<Health>,
    address: SocketAddr,
    router: Router,
}

impl Replica {
    async fn start(authority: &Authority, reviewer: &Reviewer) -> Self {
        let health = Arc::new(Health::default());
        let server = Server::with(false, Arc::clone(&health), Arc::new(|| START * 1000));
        server.tell([node("n1", 4), node("n2", 4), Event::Synced]).await;
        let tls = Arc::new(ReplicaTls::default());
        tls.set(&authority.bundle, &authority.issue_peer(REPLICA, SystemTime::now()).unwrap()).unwrap();
        let (holds, recheck) = (Duration::from_millis(50), Duration::from_millis(100));
        let access = Access::paced(reviewer.client(), Vec::new(), holds, recheck);
        let access = Arc::new(access.with_replicas(Arc::clone(&tls)));
        let forwarding = Arc::new(Forwarding::new(&server.app, Arc::clone(&tls)));
        let router = secure_router(server.app.clone(), Arc::clone(&access), Some(Arc::clone(&forwarding)));
        let listener = listen_secure("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shown = ShownCertificates { serving: Arc::default(), replica: tls };
        let config = server_config(Arc::new(shown)).unwrap();
        tokio::spawn(serve_secure(listener, config, server.app.clone(), access, Some(forwarding)));
        Self { server, health, address, router }
    }

    /// It holds the Lease for so many seconds, and its engine has been told.
    fn leads(&self, seconds: u64) {
        self.server.engine.lead(1);
        self.holds_lease(seconds);
    }

    fn holds_lease(&self, seconds: u64) {
        let held =
            Some(Term { number: 1, until: tokio::time::Instant::now() + Duration::from_secs(seconds) });
        self.health.set_leadership(Leadership { held, ..Leadership::default() });
    }

    fn follows(&self, leader: Option<SocketAddr>) {
        let holder = leader.map(|_| "leader".to_owned());
        self.health.set_leadership(Leadership { holder, address: leader, ..Leadership::default() });
    }

    /// Asks as a user with a token.
    async fn send(&self, user: &str, mut request: Request<Body>) -> Response {
        request.headers_mut().insert("authorization", format!("Bearer token-of-{user}").parse().unwrap());
        request.extensions_mut().insert(Peer::new("192.0.2.1:1".parse().unwrap(), Vec::new()));
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn ask(&self, user: &str, method: Method, path: &str) -> (StatusCode, Value) {
        read(self.send(user, request(method, path)).await).await
    }
}

struct Pair {
    leader: Replica,
    follower: Replica,
    reviewer: Reviewer,
    authority: Authority,
}

impl Pair {
    /// Only the leader knows of two jobs.
    async fn start() -> Self {
        let (authority, reviewer) = (Authority::create(SystemTime::now()).unwrap(), Reviewer::default());
        reviewer.allow(&["root * * *", "jane * team *"]);
        let leader = Replica::start(&authority, &reviewer).await;
        let follower = Replica::start(&authority, &reviewer).await;
        leader.leads(600);
        follower.follows(Some(leader.address));
        let pods = [pod("team", "a"), pod("other", "canary")].map(|pod| Event::Pod(Box::new(pod)));
        leader.server.tell(pods).await;
        Self { leader, follower, reviewer, authority }
    }
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|job| job["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_follower_gives_the_answers_of_the_leader() {
    let pair = Pair::start().await;
    let (status, list) = pair.follower.ask("root", Method::GET, "fluxionjobs").await;
    assert_eq!((status, names(&list)), (StatusCode::OK, vec!["pod.canary", "pod.a"]));
    let (_, own) = pair.leader.ask("root", Method::GET, "fluxionjobs").await;
    assert_eq!(list["metadata"]["resourceVersion"], own["metadata"]["resourceVersion"]);
    assert_eq!(list["metadata"]["role"], "leader");
    // The leader decides what this user may see, and is told the whole user.
    let (_, list) = pair.follower.ask("jane", Method::GET, "namespaces/team/fluxionjobs").await;
    assert!(names(&list) == ["pod.a"] && !list.to_string().contains("canary"), "{list}");
    let asked = pair.reviewer.asked.lock().unwrap().clone();
    let of_jane: Vec<_> = asked.iter().filter(|review| review["spec"]["user"] == "jane").collect();
    for review in &of_jane {
        let spec = &review["spec"];
        assert_eq!((&spec["uid"], &spec["groups"][0]), (&"u".into(), &"system:authenticated".into()));
        assert_eq!(spec["extra"]["key"][0], "v", "{spec}");
    }
    assert!(of_jane.len() >= 4, "both authorise: {of_jane:?}");
    let (status, denied) = pair.follower.ask("jane", Method::GET, "namespaces/other/fluxionjobs").await;
    assert_eq!((status, &denied["reason"]), (StatusCode::FORBIDDEN, &"Forbidden".into()));

    for (method, path, status) in [
        (Method::GET, "namespaces/team/fluxionjobs/pod.a", StatusCode::OK),
        (Method::GET, "namespaces/team/fluxionjobs/pod.a/explain", StatusCode::OK),
        (Method::GET, "namespaces/team/fluxionjobs/none", StatusCode::NOT_FOUND),
        (Method::POST, "namespaces/team/fluxionjobs/pod.a/cancel?dryRun=All", StatusCode::OK),
        (Method::DELETE, "namespaces/team/fluxionjobs/pod.a", StatusCode::METHOD_NOT_ALLOWED),
        (Method::GET, "fluxiongraphs/live", StatusCode::OK),
        (Method::GET, "fluxionnodes?limit=1", StatusCode::OK),
        (Method::GET, "fluxionjobs?limit=x", StatusCode::BAD_REQUEST),
    ] {
        let through = pair.follower.send("root", request(method.clone(), path)).await;
        let direct = pair.leader.send("root", request(method, path)).await;
        assert_eq!((through.status(), direct.status()), (status, status), "{path}");
        for header in
            ["content-type", "fluxion-role", "fluxion-resource-version", "allow", "retry-after", "vary"]
        {
            assert_eq!(through.headers().get(header), direct.headers().get(header), "{header} of {path}");
        }
        let (through, direct) = (read(through).await.1, read(direct).await.1);
        assert!(through.is_object());
        if status != StatusCode::OK || path.ends_with("cancel?dryRun=All") {
            assert_eq!(through, direct, "{path}");
        }
    }
    // What an answer is wrapped in passes as it is.
    for (path, accept_encoding) in
        [("fluxionjobs?pretty=true", ""), ("fluxiongraphs/live?pretty=true", "gzip")]
    {
        let mut asked = request(Method::GET, path);
        if !accept_encoding.is_empty() {
            asked.headers_mut().insert("accept-encoding", accept_encoding.parse().unwrap());
        }
        let through = pair.follower.send("root", asked).await;
        let encoded = through.headers().get("content-encoding").cloned();
        let body = to_bytes(through.into_body(), 1 << 20).await.unwrap();
        match encoded {
            None => assert!(body.starts_with(b"{\n  \"") && body.ends_with(b"}\n"), "{path}"),
            Some(encoding) => assert!(encoding == "gzip" && body.starts_with(&[0x1f, 0x8b]), "{path}"),
        }
    }
    let metrics = pair.follower.server.app.metrics.encode(crate::metrics::TextFormat::Prometheus);
    assert!(metrics.contains("fluxion_http_requests_forwarded_total{outcome=\"answered\"}"), "{metrics}");
}

#[tokio::test]
async fn without_a_leader_data_is_unavailable_and_the_rest_is_not() {
    let pair = Pair::start().await;
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    // A follower that is taken for the leader does not forward what was forwarded to it.
    let other = Replica::start(&pair.authority, &pair.reviewer).await;
    other.follows(Some(pair.leader.address));
    let stranger = Replica::start(&Authority::create(SystemTime::now()).unwrap(), &pair.reviewer).await;
    stranger.leads(600);
    for (leader, message) in [
        (None, "there is no leader"),
        (Some(closed), "the leader can't be reached"),
        (Some(other.address), "this inspector is not the leader"),
        (Some(stranger.address), "the leader can't be reached"),
    ] {
        pair.follower.follows(leader);
        let answer = pair.follower.send("root", request(Method::GET, "fluxionjobs")).await;
        assert_eq!(answer.headers()["retry-after"], "1");
        let (status, body) = read(answer).await;
        assert_eq!(
            (status, &body["reason"]),
            (StatusCode::SERVICE_UNAVAILABLE, &"ServiceUnavailable".into())
        );
        assert!(body["message"].as_str().unwrap().starts_with(message), "{body}");
        for path in ["/apis", BASE, "/apis/fluxion.flux-framework.org", "/openapi/v3", "/version"] {
            assert_eq!(pair.follower.ask("jane", Method::GET, path).await.0, StatusCode::OK, "{path}");
        }
    }
    let mut open = request(Method::GET, "/readyz");
    open.extensions_mut().insert(Peer::new("192.0.2.1:1".parse().unwrap(), Vec::new()));
    assert_eq!(pair.follower.router.clone().oneshot(open).await.unwrap().status(), StatusCode::OK);
    // Who is not allowed to ask learns nothing of that.
    let (status, _) = pair.follower.ask("nobody", Method::GET, "fluxionjobs").await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn limits_of_the_leader_hold_for_what_is_forwarded() {
    let pair = Pair::start().await;
    let app = &pair.leader.server.app;
    let _taken: Vec<_> = std::iter::from_fn(|| app.watch_ticket(&"root".into()).ok()).collect();
    let answer = pair.follower.send("root", request(Method::GET, "fluxionjobs?watch=true")).await;
    assert_eq!(answer.headers()["retry-after"], "1");
    let (status, body) = read(answer).await;
    assert_eq!((status, &body["reason"]), (StatusCode::TOO_MANY_REQUESTS, &"TooManyRequests".into()));
    let mut large = request(Method::POST, "namespaces/team/fluxionjobs/pod.a/cancel");
    *large.body_mut() = Body::from(vec![b' '; 1 << 20]);
    assert_eq!(pair.follower.send("root", large).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

/// Its snapshots are still those of a follower when it has acquired the Lease.
#[tokio::test]
async fn a_new_leader_answers_with_its_own_snapshots_only() {
    let pair = Pair::start().await;
    pair.follower.server.engine.set_role(Role::Follower);
    pair.follower.server.engine.fresh().await.unwrap();
    pair.follower.holds_lease(600);
    let asked = pair.follower.ask("root", Method::GET, "fluxionjobs");
    let elected = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        pair.follower.server.engine.lead(1);
    };
    let ((status, list), ()) = tokio::join!(asked, elected);
    assert_eq!((status, &list["metadata"]["role"]), (StatusCode::OK, &"leader".into()));
}

/// The events of a watch, each parsed.
struct Events(futures::stream::BoxStream<'static, Value>);

impl Events {
    async fn start(replica: &Replica, user: &str, path: &str) -> Self {
        let answer = replica.send(user, request(Method::GET, path)).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let lines = answer.into_body().into_data_stream().flat_map(|chunk| {
            let chunk = chunk.unwrap();
            let events: Vec<Value> = serde_json::Deserializer::from_slice(&chunk)
                .into_iter::<Value>()
                .map(Result::unwrap)
                .collect();
            futures::stream::iter(events)
        });
        Self(lines.boxed())
    }

    async fn next(&mut self) -> Option<Value> {
        tokio::time::timeout(Duration::from_secs(5), self.0.next()).await.unwrap()
    }

    /// The last event, which says why, and then the end.
    async fn ends_with(&mut self, code: u16) {
        let event = self.next().await.unwrap();
        assert_eq!((&event["type"], &event["object"]["code"]), (&"ERROR".into(), &code.into()), "{event}");
        assert_eq!(self.next().await, None);
    }
}

const WATCH: &str = "namespaces/team/fluxionjobs?watch=true";

#[tokio::test]
async fn a_watch_is_streamed_and_ends_cleanly_when_the_leader_goes() {
    let pair = Pair::start().await;
    let (relay, relayed) = relay(pair.leader.address).await;
    pair.follower.follows(Some(relay));
    let mut events = Events::start(&pair.follower, "jane", WATCH).await;
    assert_eq!(events.next().await.unwrap()["object"]["metadata"]["name"], "pod.a");
    pair.leader.server.tell([Event::Pod(Box::new(pod("team", "b")))]).await;
    assert_eq!(events.next().await.unwrap()["object"]["metadata"]["name"], "pod.b");
    // As if it were killed.
    relayed.abort();
    events.ends_with(410).await;
}

/// A way to an address that can be cut.
async fn relay(to: SocketAddr) -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far = TcpStream::connect(to).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
    });
    (address, task)
}

#[tokio::test]
async fn a_watch_ends_when_another_leads() {
    let pair = Pair::start().await;
    let mut through = Events::start(&pair.follower, "jane", WATCH).await;
    let mut direct = Events::start(&pair.leader, "jane", WATCH).await;
    assert!(through.next().await.is_some() && direct.next().await.is_some());
    pair.follower.follows(Some("127.0.0.1:1".parse().unwrap()));
    through.ends_with(410).await;
    // The term of the leader ends by itself, and its successor is known later.
    let mut through = Events::start(&pair.leader, "jane", WATCH).await;
    assert!(through.next().await.is_some());
    pair.leader.leads(1);
    direct.ends_with(410).await;
    through.ends_with(410).await;
    pair.leader.follows(None);
    let (status, _) = pair.leader.ask("jane", Method::GET, "namespaces/team/fluxionjobs").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_watch_through_a_follower_ends_with_the_right_to_it() {
    let pair = Pair::start().await;
    let mut events = Events::start(&pair.follower, "jane", WATCH).await;
    assert!(events.next().await.is_some());
    pair.reviewer.allow(&["root * * *"]);
    events.ends_with(403).await;
}

/// A request over a TLS connection of its own; status line and body.
async fn raw(
    to: SocketAddr,
    authority: &Authority,
    name: &str,
    issued: Option<&Issued>,
    head: &str,
) -> String {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(authority.bundle.as_bytes()) {
        roots.add(root.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match issued {
        Some(issued) => {
            let certificate = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![certificate], key).unwrap()
        }
        None => builder.with_no_client_auth(),
    };
    let stream = TcpStream::connect(to).await.unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let request = format!("GET {BASE}/fluxionjobs HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{head}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn headers_of_a_forwarded_request_count_only_from_a_replica() {
    let pair = Pair::start().await;
    let (now, ours) = (SystemTime::now(), &pair.authority);
    let other = Authority::create(now).unwrap();
    let forged = "x-remote-user: root\r\nx-remote-group: system:masters\r\n";
    for (what, issued, head, expected) in [
        ("a replica", Some(ours.issue_peer(REPLICA, now).unwrap()), forged, "HTTP/1.1 200 OK"),
        ("nobody", None, forged, "HTTP/1.1 401 Unauthorized"),
        ("a stranger", Some(other.issue_peer(REPLICA, now).unwrap()), forged, "HTTP/1.1 401 Unauthorized"),
        ("another name", Some(ours.issue_peer("x", now).unwrap()), forged, "HTTP/1.1 401 Unauthorized"),
        (
            "a serving certificate",
            Some(ours.issue(&[REPLICA.to_owned()], now).unwrap()),
            forged,
            "HTTP/1.1 401 Unauthorized",
        ),
        (
            "a replica that names nobody, with a token",
            Some(ours.issue_peer(REPLICA, now).unwrap()),
            "authorization: Bearer token-of-root\r\n",
            "HTTP/1.1 401 Unauthorized",
        ),
    ] {
        let status = raw(pair.leader.address, ours, REPLICA, issued.as_ref(), head).await;
        assert_eq!(status, expected, "{what}");
    }
    // A user's own headers are not passed on.
    let mut asked = request(Method::GET, "fluxionjobs");
    asked.headers_mut().insert("x-remote-user", "root".parse().unwrap());
    asked.headers_mut().insert("x-remote-group", "system:masters".parse().unwrap());
    assert_eq!(pair.follower.send("jane", asked).await.status(), StatusCode::FORBIDDEN);
}
