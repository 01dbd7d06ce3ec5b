//! What is answered when something is wrong: with the engine, the watches, the Lease.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::health::{Leadership, Term, Trouble, Verb, Watched};

/// A term that lasts for as long as a test.
fn lasting() -> Term {
    Term { number: 1, until: tokio::time::Instant::now() + Duration::from_mins(10) }
}

async fn open(server: &Server, path: &str) -> (StatusCode, String) {
    let request = Request::builder().uri(path).header("host", "localhost").body(Body::empty()).unwrap();
    let response = server.send(request).await;
    let status = response.status();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// In a cluster of two nodes whose watch of nodes stands; who leads is told later.
async fn watching() -> (Server, Arc<Health>, Arc<Watched>) {
    let health = Arc::new(Health::default());
    let nodes = health.watch("Node", "nodes");
    let server = Server::with(false, Arc::clone(&health), Arc::new(|| START * 1000));
    assert_eq!(
        open(&server, "/readyz").await,
        (StatusCode::SERVICE_UNAVAILABLE, "not ready: waiting for the initial lists: nodes".to_owned())
    );
    nodes.heard();
    nodes.listed();
    nodes.stands();
    server.engine.set_role(Role::Follower);
    server.tell([node("n1", 4), node("n2", 4), Event::Paused]).await;
    (server, health, nodes)
}

#[tokio::test]
async fn a_standby_that_has_seen_everything_is_ready_and_answers() {
    let (server, health, _) = watching().await;
    let holder = Some("other_1".to_owned());
    health.set_leadership(Leadership { holder, ..Leadership::default() });
    assert_eq!(open(&server, "/readyz").await, (StatusCode::OK, "ok".to_owned()));
    let (status, body) = server.get("fluxionnodes").await;
    assert_eq!((status, body["items"].as_array().unwrap().len()), (StatusCode::OK, 2));
    assert_eq!(body["metadata"]["role"], "follower");
    let warning = body["metadata"]["warning"].as_str().unwrap();
    assert!(warning.contains("not the leader: other_1 is the leader"), "{warning}");
}

#[tokio::test]
async fn reads_go_on_when_the_lease_is_lost_and_say_how_old_they_are() {
    let (server, health, _) = watching().await;
    server.engine.set_role(Role::Leader);
    server.tell([Event::Synced]).await;
    health.set_leadership(Leadership { held: Some(lasting()), ..Leadership::default() });
    let (_, body) = server.get("fluxionnodes").await;
    assert!(body["metadata"]["warning"].is_null());
    let trouble = Trouble { since: START - 75, unreachable: true, why: "connection refused".to_owned() };
    health.set_leadership(Leadership { trouble: Some(trouble), ..Leadership::default() });
    server.engine.set_role(Role::Follower);
    server.tell([Event::Paused]).await;
    let wanted = "not the leader: API server unreachable since 2025-12-31T23:58:45Z";
    for path in ["fluxionnodes", "fluxionjobs", "fluxionqueues", "fluxionaudits", "fluxiongraphs"] {
        let response = server.send(request(Method::GET, path)).await;
        assert_eq!(response.headers()["warning"], format!("299 - \"{wanted}\""), "{path}");
        let (status, body) = read(response).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert_eq!(body["metadata"]["warning"], wanted, "{path}");
        assert_eq!(body["metadata"]["observedAt"], "2025-12-31T23:58:45Z", "{path}");
    }
    let response = server.send(request(Method::GET, "fluxionnodes/n1")).await;
    assert_eq!(response.headers()["fluxion-observed-at"], "2025-12-31T23:58:45Z");
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_refused_watch_is_named_wherever_somebody_looks() {
    let (server, health, nodes) = watching().await;
    health.set_leadership(Leadership { held: Some(lasting()), ..Leadership::default() });
    nodes.failed(Verb::Watch, true, "nodes is forbidden: \"u\" cannot watch".to_owned());
    let (status, text) = open(&server, "/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(text.contains("not allowed to watch nodes"), "{text}");
    let (_, body) = server.get("fluxionaudits/live").await;
    let finding = &body["findings"][0];
    assert_eq!((&finding["class"], &finding["object"]), (&"StaleWatch".into(), &"watch/nodes".into()));
    let (status, body) = server.get("fluxionnodes").await;
    assert_eq!(status, StatusCode::OK);
    let warning = body["metadata"]["warning"].as_str().unwrap();
    assert!(warning.starts_with("binding is paused: not allowed to watch nodes"), "{warning}");
    let response = server.send(request(Method::GET, "/metrics")).await;
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    assert!(text.contains("fluxion_watch_age_seconds{kind=\"Node\"} "), "{text}");
    // The API server is alive while a watch is not.
    assert_eq!(open(&server, "/livez").await.0, StatusCode::OK);
}

#[tokio::test]
async fn an_engine_that_hangs_or_died_fails_the_liveness() {
    let stuck = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stuck);
    let clock: Clock = Arc::new(move || {
        while flag.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
        }
        START * 1000
    });
    let server = Server::with(false, Arc::default(), clock);
    assert_eq!(open(&server, "/livez").await.0, StatusCode::OK);
    stuck.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(3500)).await;
    let (status, text) = open(&server, "/livez").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(text.starts_with("the engine has not responded for "), "{text}");
    stuck.store(false, Ordering::Relaxed);

    let clock: Clock = Arc::new({
        let began = std::time::Instant::now();
        move || {
            assert!(began.elapsed() < Duration::from_millis(500), "planted");
            START * 1000
        }
    });
    let server = Server::with(false, Arc::default(), clock);
    server.engine.failed().await;
    let (status, text) = open(&server, "/livez").await;
    assert_eq!((status, text.as_str()), (StatusCode::INTERNAL_SERVER_ERROR, "the engine panicked: planted"));
}

/// METRICS.md lists all metrics. `UPDATE_METRICS=1` writes it anew.
#[tokio::test]
async fn every_metric_is_listed_with_its_help() {
    let server = Server::started(false).await;
    let app = server.app.clone().with_health(Arc::default());
    let listed = app.metrics.listed();
    let mut text = include_str!("../../../METRICS.md").split_once("| Name |").unwrap().0.to_owned();
    text += "| Name | Type | Meaning |\n|---|---|---|\n";
    for metric in &listed {
        assert!(!metric.help.is_empty() && !metric.help.ends_with('.'), "{metric:?}");
        writeln!(text, "| `{}` | {} | {} |", metric.name, metric.kind, metric.help).unwrap();
    }
    let names: std::collections::BTreeSet<_> = listed.iter().map(|metric| &metric.name).collect();
    assert_eq!(names.len(), listed.len(), "a name is taken twice");
    if std::env::var_os("UPDATE_METRICS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/METRICS.md"), &text).unwrap();
    } else {
        assert_eq!(text, include_str!("../../../METRICS.md"), "run it with UPDATE_METRICS=1");
    }
}

#[tokio::test]
async fn what_jobs_go_through_and_what_is_refused_is_counted() {
    let server = Server::started(false).await;
    server.tell([Event::Pod(Box::new(pod("team", "a")))]).await;
    server.tell(gang("team", "large", 2, 4, 600)).await;
    let mut bound = pod("team", "a");
    bound.node = Some("n1".into());
    bound.phase = Phase::Running;
    server.tell([Event::Pod(Box::new(bound))]).await;
    let mut stranger = request(Method::GET, "fluxionjobs");
    stranger.headers_mut().remove("authorization");
    server.send(stranger).await;
    assert_eq!(server.get("fluxionjobs").await.0, StatusCode::OK);
    let response = server.send(request(Method::GET, "/metrics")).await;
    let body = to_bytes(response.into_body(), 1 << 24).await.unwrap();
    let text = std::str::from_utf8(&body).unwrap();
    for sample in [
        "fluxion_schedule_attempts_total{queue=\"default\",result=\"scheduled\"} 1",
        "fluxion_schedule_attempts_total{queue=\"default\",result=\"unschedulable\"}",
        "fluxion_job_phase_seconds_count{phase=\"queue\"} 1",
        "fluxion_job_phase_seconds_count{phase=\"placement\"} 1",
        "fluxion_job_phase_seconds_count{phase=\"binding\"} 1",
        "fluxion_job_phase_seconds_count{phase=\"end_to_end\"} 1",
        "fluxion_pass_seconds_count",
        "fluxion_jobs{queue=\"default\",state=\"Running\"} 1",
        "fluxion_audit_findings{class=\"Invariant\"} 0",
        "fluxion_audit_findings{class=\"StaleWatch\"} 0",
        "fluxion_snapshot_age_seconds",
        "fluxion_http_requests_total{resource=\"fluxionjobs\",verb=\"list\",code=\"401\"} 1",
        "fluxion_http_requests_rejected_total{reason=\"Unauthorized\"} 1",
        "fluxion_http_request_seconds_count{resource=\"fluxionjobs\",verb=\"list\"} 2",
    ] {
        assert!(text.contains(sample), "no {sample} in {text}");
    }
}
