//! A whole server in standalone mode, and a small collector.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use clap::Parser as _;
use serde_json::{Value, json};

use super::*;
use crate::cli::{Cli, Command};
use crate::standalone;

/// What a collector received: spans, and the resource of the last one.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<(Vec<Value>, Value)>>);

impl Collector {
    /// Listens on a free port, and answers every request with this status.
    async fn start(status: StatusCode) -> (Self, String) {
        let collector = Self::default();
        let take = async move |State(collector): State<Self>, headers: HeaderMap, Json(body): Json<Value>| {
            assert_eq!(headers["content-type"], "application/json");
            let mut received = collector.0.lock().unwrap();
            for resource in body["resourceSpans"].as_array().unwrap() {
                received.1 = resource["resource"].clone();
                for scope in resource["scopeSpans"].as_array().unwrap() {
                    assert_eq!(scope["scope"]["name"], "fluxion-inspector");
                    received.0.extend(scope["spans"].as_array().unwrap().iter().cloned());
                }
            }
            (status, Json(json!({})))
        };
        let router = Router::new().route("/v1/traces", post(take)).with_state(collector.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (collector, url)
    }

    fn spans(&self, name: &str) -> Vec<Value> {
        let received = self.0.lock().unwrap();
        received.0.iter().filter(|span| span["name"] == name).cloned().collect()
    }

    async fn wait_for(&self, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            if let Some(span) = self.spans(name).into_iter().find(|span| fits(span)) {
                return span;
            }
            assert!(began.elapsed() < Duration::from_mins(1), "{name}: {:?}", self.spans(name));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn attributes(of: &Value) -> BTreeMap<String, String> {
    let attribute = |attribute: &Value| {
        let value = &attribute["value"];
        let text = value["stringValue"].as_str().or(value["intValue"].as_str()).unwrap();
        (attribute["key"].as_str().unwrap().to_owned(), text.to_owned())
    };
    of["attributes"].as_array().unwrap().iter().map(attribute).collect()
}

fn nanos(span: &Value, key: &str) -> u128 {
    span[key].as_str().unwrap().parse().unwrap()
}

async fn server(dir: &Path, endpoint: &str) -> standalone::Running {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let arguments = [
        "fluxion-inspector",
        "standalone",
        "--state-dir",
        &dir.display().to_string(),
        "--cluster",
        &examples.join("clusters/small.yaml").display().to_string(),
        "--jobs",
        &examples.join("gang.yaml").display().to_string(),
        "--otlp-endpoint",
        endpoint,
    ]
    .map(str::to_owned);
    let Some(Command::Standalone(options)) = Cli::parse_from(arguments).command else { panic!("standalone") };
    standalone::start(&options, None).await.unwrap()
}

async fn ask(server: &standalone::Running, path: &str, traceparent: Option<&str>) -> u16 {
    let url = format!("{}/apis/fluxion.flux-framework.org/v1alpha1/{path}", server.reached.url);
    let mut request = reqwest::Client::new().get(url).bearer_auth(&server.reached.token);
    if let Some(traceparent) = traceparent {
        request = request.header("traceparent", traceparent);
    }
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_passes_and_starts_of_jobs_are_spans_with_their_parents() {
    let (collector, url) = Collector::start(StatusCode::OK).await;
    let dir = tempfile::tempdir().unwrap();
    let server = server(dir.path(), &url).await;
    let start = collector.wait_for("start job", |_| true).await;
    let pass = collector.wait_for("pass", |pass| pass["spanId"] == start["parentSpanId"]).await;
    assert_eq!(start["traceId"], pass["traceId"]);
    assert_eq!(pass.get("parentSpanId"), None);
    let told = attributes(&start);
    assert_eq!(told["fluxion.job"], "default/job.hello");
    assert_eq!((&*told["fluxion.queue"], &*told["fluxion.members"]), ("default", "3"));
    assert!(!told["fluxion.job.uid"].is_empty());
    assert!(attributes(&pass)["fluxion.jobs.started"].parse::<u32>().unwrap() >= 1);
    assert!(nanos(&pass, "startTimeUnixNano") <= nanos(&start, "startTimeUnixNano"));
    assert!(nanos(&start, "startTimeUnixNano") <= nanos(&start, "endTimeUnixNano"));

    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let job = "namespaces/default/fluxionjobs/job.hello";
    assert_eq!(ask(&server, job, Some(&format!("00-{trace}-{parent}-01"))).await, 200);
    assert_eq!(ask(&server, "fluxionnodes", Some(&format!("00-{trace}-{parent}-00"))).await, 200);
    assert_eq!(ask(&server, "fluxionqueues", Some("invalid")).await, 200);
    assert_eq!(ask(&server, "namespaces/default/fluxionjobs/job.none", None).await, 404);
    let get = collector.wait_for("get fluxionjobs", |span| span["traceId"] == trace).await;
    assert_eq!((&get["parentSpanId"], &get["kind"], &get["flags"]), (&json!(parent), &json!(2), &json!(1)));
    let told = attributes(&get);
    assert_eq!(told["fluxion.job"], "default/job.hello");
    assert_eq!((&*told["http.request.method"], &*told["http.response.status_code"]), ("GET", "200"));
    assert!(told["url.path"].ends_with("/fluxionjobs/job.hello"));
    let list = collector.wait_for("list fluxionqueues", |_| true).await;
    assert!(list.get("parentSpanId").is_none() && list["traceId"] != trace);
    collector
        .wait_for("get fluxionjobs", |span| attributes(span)["http.response.status_code"] == "404")
        .await;
    assert_eq!(collector.spans("list fluxionnodes"), Vec::<Value>::new(), "its sender does not record it");

    let token = server.reached.token.clone();
    server.stop().await.unwrap();
    let received = collector.0.lock().unwrap();
    assert_eq!(attributes(&received.1)["service.name"], "fluxion-inspector");
    assert!(!format!("{received:?}").contains(&token), "spans contain no secrets");
    let ids: std::collections::BTreeSet<&str> =
        received.0.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), received.0.len(), "each span has an ID of its own");
    for span in &received.0 {
        let (trace, id) = (span["traceId"].as_str().unwrap(), span["spanId"].as_str().unwrap());
        assert_eq!((trace.len(), id.len()), (32, 16));
    }
}

/// One that takes connections and never answers, and one that refuses.
#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_takes_nothing_slows_nothing_and_what_is_lost_is_counted() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (_, refusing) = Collector::start(StatusCode::BAD_REQUEST).await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    for (endpoint, lost) in
        [(format!("http://{}", silent.local_addr().unwrap()), "dropped"), (refusing, "failed")]
    {
        let settings = TraceSettings::read(Some(&endpoint), |_| None).unwrap().unwrap();
        let (exporter, tracer) = Exporter::start(settings, &Metrics::new()).unwrap();
        let began = Instant::now();
        for _ in 0..10_000 {
            tracer.start("x", SpanKind::Internal, None).unwrap().set("key", "value");
        }
        assert!(began.elapsed() < Duration::from_secs(5), "nobody waits for the collector");
        while exporter.stats.of(lost) < 1 {
            assert!(began.elapsed() < Duration::from_mins(1));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(exporter.stats.of("sent"), 0);
        let began = Instant::now();
        exporter.finish().await;
        assert!(began.elapsed() < Duration::from_secs(4), "the end does not wait for it either");
    }
}

#[test]
fn nothing_is_recorded_without_an_endpoint() {
    let settings = TraceSettings::read(None, |_| None).unwrap();
    assert!(settings.is_none());
    let tracer = Tracer::default();
    assert!(!tracer.enabled() && tracer.start("x", SpanKind::Internal, None).is_none());
}
