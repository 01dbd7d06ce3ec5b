//! A server on a free port of this machine, and the plugin run against it.

use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::Router;
use axum::extract::{Path, Query, Request};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use fluxion_api::{CancelAnswer, CancelOutcome, FluxionExplanation, FluxionJob, JobState, List, Status};

use crate::sample;

pub(crate) const TOKEN: &str = "s3cret";
const ROOT: &str = "/apis/fluxion.flux-framework.org/v1alpha1";

type Parameters = Query<std::collections::HashMap<String, String>>;

/// A running server; it ends with the test.
pub(crate) struct Mock {
    pub(crate) url: String,
    /// `METHOD path?query` of every request.
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
    _runtime: tokio::runtime::Runtime,
}

impl Mock {
    /// Serves the sample.
    pub(crate) fn sample() -> Self {
        Self::serve(sample_router())
    }

    /// Serves what a test made up.
    pub(crate) fn serve(router: Router) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = requests.clone();
        let router = router.layer(middleware::from_fn(move |request: Request, next: Next| {
            log.lock().unwrap().push(format!("{} {}", request.method(), request.uri()));
            next.run(request)
        }));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { url: format!("http://{address}"), requests, _runtime: runtime }
    }

    /// Runs the plugin against this server with the right token.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
        let mut command = plugin();
        command.args(arguments).args(["--server", &self.url]).arg("--token-file").arg(&token);
        Ran::of(&mut command)
    }
}

/// The plugin without anything that this machine's user has set up.
pub(crate) fn plugin() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-fluxion"));
    command.env_clear().env("TZ", "UTC").env("HOME", "/nonexistent").stdin(Stdio::null());
    command
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.output().unwrap();
        Self {
            code: status.code().unwrap_or(-1),
            out: String::from_utf8(stdout).unwrap(),
            err: String::from_utf8(stderr).unwrap(),
        }
    }
}

pub(crate) fn failure(code: u16, reason: &str, message: &str) -> Response {
    (StatusCode::from_u16(code).unwrap(), Json(Status::failure(code, reason, message))).into_response()
}

fn sample_router() -> Router {
    let all = |Query(query): Parameters| async move { Json(page(&sample::jobs(), &query)) };
    let some = |Path(namespace): Path<String>, Query(query): Parameters| async move {
        let jobs: Vec<FluxionJob> = sample::jobs()
            .into_iter()
            .filter(|job| job.metadata.namespace.as_deref() == Some(&namespace))
            .collect();
        Json(page(&jobs, &query))
    };
    let one = |Path((namespace, name)): Path<(String, String)>| async move {
        find(&namespace, &name).map(Json).map_err(|error| *error)
    };
    let explain = |Path((namespace, name)): Path<(String, String)>| async move {
        let job = find(&namespace, &name).map_err(|error| *error)?;
        Ok::<_, Response>(Json(FluxionExplanation {
            metadata: job.metadata.clone(),
            job,
            ..Default::default()
        }))
    };
    let nodes = || async { Json(sample::list(sample::nodes())) };
    let queues = || async { Json(sample::list(sample::queues())) };
    Router::new()
        .route(&format!("{ROOT}/fluxionjobs"), get(all))
        .route(&format!("{ROOT}/namespaces/{{namespace}}/fluxionjobs"), get(some))
        .route(&format!("{ROOT}/namespaces/{{namespace}}/fluxionjobs/{{name}}"), get(one))
        .route(&format!("{ROOT}/namespaces/{{namespace}}/fluxionjobs/{{name}}/explain"), get(explain))
        .route(&format!("{ROOT}/namespaces/{{namespace}}/fluxionjobs/{{name}}/cancel"), post(cancel))
        .route(&format!("{ROOT}/fluxionnodes"), get(nodes))
        .route(&format!("{ROOT}/fluxionqueues"), get(queues))
        .route(&format!("{ROOT}/fluxiongraphs/live"), get(|| async { Json(sample::graph()) }))
        .route(&format!("{ROOT}/fluxionaudits/live"), get(|| async { Json(sample::audit()) }))
        .route("/version", get(|| async { Json(serde_json::json!({"version": "9.9.9"})) }))
        .layer(middleware::from_fn(|request: Request, next: Next| async {
            let expected = format!("Bearer {TOKEN}");
            if request.headers().get("authorization").is_some_and(|value| *value == expected) {
                next.run(request).await
            } else {
                failure(401, "Unauthorized", "the token is not the one in server.json")
            }
        }))
}

/// Two jobs a page, so that pages are always followed.
fn page(jobs: &[FluxionJob], query: &std::collections::HashMap<String, String>) -> List<FluxionJob> {
    let from: usize = query.get("continue").map_or(0, |text| text.parse().unwrap());
    let mut list = sample::list(jobs.iter().skip(from).take(2).cloned().collect());
    if from + 2 < jobs.len() {
        list.metadata.continue_ = (from + 2).to_string();
    }
    list
}

fn find(namespace: &str, name: &str) -> Result<FluxionJob, Box<Response>> {
    sample::jobs()
        .into_iter()
        .find(|job| job.metadata.name == name && job.metadata.namespace.as_deref() == Some(namespace))
        .ok_or_else(|| Box::new(failure(404, "NotFound", &format!("no job named {name} in {namespace}"))))
}

async fn cancel(
    Path((namespace, name)): Path<(String, String)>,
    Query(query): Parameters,
) -> Result<Json<CancelAnswer>, Response> {
    let job = find(&namespace, &name).map_err(|error| *error)?;
    if job.metadata.name == "podgroup.train" {
        return Err(failure(403, "Forbidden", "you may not cancel podgroup/train"));
    }
    let dry_run = query.get("dryRun").is_some_and(|value| value == "All");
    let outcome = match job.status.state {
        JobState::Completed => CancelOutcome::AlreadyEnded,
        JobState::Gathering => CancelOutcome::AlreadyEnding,
        _ if dry_run => CancelOutcome::DryRun,
        _ => CancelOutcome::Cancelled,
    };
    if !dry_run
        && job.metadata.name == "job.sweep"
        && query.get("alsoDelete").is_none_or(|value| value != "true")
    {
        return Err(failure(409, "Conflict", "this would also delete job/other"));
    }
    let also_deletes =
        if job.metadata.name == "job.sweep" { vec!["job/other".to_owned()] } else { Vec::new() };
    Ok(Json(CancelAnswer {
        api_version: fluxion_api::API_VERSION.into(),
        kind: "CancelAnswer".into(),
        metadata: job.metadata.clone(),
        outcome,
        message: String::new(),
        targets: Vec::new(),
        also_deletes,
        frees: job.status.request.clone(),
        starts_next: vec!["podgroup/train".into()],
        pods: 4,
    }))
}
