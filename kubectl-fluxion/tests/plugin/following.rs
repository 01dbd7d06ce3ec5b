//! Watching: what changes, and what happens when the server goes away.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Query;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fluxion_api::client::{Change, Client, Direct, Error, Selection, follow};
use fluxion_api::{FluxionJob, JobState, WatchEvent};
use futures::{StreamExt, stream};
use kubectl_fluxion::cli::Connection;
use kubectl_fluxion::connect::connect;

use crate::mock::{Mock, failure, plugin};
use crate::sample;

fn event(kind: &str, job: FluxionJob) -> String {
    serde_json::to_string(&WatchEvent { type_: kind.to_owned(), object: job }).unwrap() + "\n"
}

fn client(mock: &Mock) -> Client {
    Client::new(Direct::new(&mock.url, None, None).unwrap(), Duration::from_secs(5))
}

/// Every watch says one thing and ends; the third list fails.
fn restless() -> Router {
    let lists = Arc::new(AtomicUsize::new(0));
    Router::new().route(
        "/apis/fluxion.flux-framework.org/v1alpha1/fluxionjobs",
        get(move |Query(query): Query<std::collections::HashMap<String, String>>| {
            let lists = lists.clone();
            async move { answer(&query, &lists) }
        }),
    )
}

fn answer(query: &std::collections::HashMap<String, String>, lists: &AtomicUsize) -> Response {
    if query.contains_key("watch") {
        assert_eq!(query["resourceVersion"], "42");
        let expired = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
        let text = event("MODIFIED", sample::running()) + &event("BOOKMARK", FluxionJob::default()) + expired;
        return Body::from(text).into_response();
    }
    if lists.fetch_add(1, Ordering::SeqCst) == 2 {
        return failure(503, "ServiceUnavailable", "no leader");
    }
    axum::Json(sample::list(vec![sample::running()])).into_response()
}

/// Says that the job which waited has started, and then nothing for good.
fn patient() -> Router {
    let answer = |Query(query): Query<std::collections::HashMap<String, String>>| async move {
        let mut job = sample::reserved();
        if !query.contains_key("watch") {
            return axum::Json(sample::list(vec![job])).into_response();
        }
        job.status.state = JobState::Running;
        let started = stream::iter([Ok::<_, std::io::Error>(event("MODIFIED", job))]);
        Body::from_stream(started.chain(stream::pending())).into_response()
    };
    Router::new()
        .route("/apis/fluxion.flux-framework.org/v1alpha1/namespaces/default/fluxionjobs", get(answer))
}

#[test]
fn a_watched_queue_shows_what_leaves_it_and_waits_for_a_lost_server() {
    let mock = Mock::serve(patient());
    let mut child = plugin()
        .args(["queue", "-w", "--server", &mock.url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut line = || lines.next().unwrap().unwrap();
    assert!(line().starts_with("NAME "));
    assert!(line().starts_with("podgroup/train   Reserved "));
    assert!(line().starts_with("podgroup/train   Running "));
    drop(mock);
    let complaint = BufReader::new(child.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    assert!(complaint.ends_with("waiting for the inspector"), "{complaint}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Accepts one token, and another one from the second list on, as an inspector does that was started anew.
fn restarted(lists: &'static AtomicUsize) -> Router {
    let answer = move |headers: HeaderMap| async move {
        let token = if lists.fetch_add(1, Ordering::SeqCst) == 0 { "Bearer old" } else { "Bearer new" };
        if headers.get("authorization").is_some_and(|value| *value == *token) {
            return axum::Json(sample::list(sample::jobs())).into_response();
        }
        failure(401, "Unauthorized", "the token is not the one in server.json")
    };
    Router::new().fallback(get(answer))
}

#[tokio::test]
async fn a_file_with_a_token_is_read_again_when_the_server_wants_another_one() {
    static LISTS: AtomicUsize = AtomicUsize::new(0);
    let mock = tokio::task::spawn_blocking(|| Mock::serve(restarted(&LISTS))).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, "old").unwrap();
    let flags = Connection {
        server: Some(mock.url.clone()),
        token_file: Some(token_file.clone()),
        ..Connection::default()
    };
    let server = connect(&flags).await.unwrap();
    let all = Selection::default();
    let list = || server.client.list::<FluxionJob>(&all);
    list().await.unwrap();
    assert!(matches!(list().await, Err(Error::Unauthorized { .. })));
    std::fs::write(&token_file, "new\n").unwrap();
    list().await.unwrap();
    assert_eq!(server.client.server(), mock.url);
    tokio::task::spawn_blocking(move || drop(mock)).await.unwrap();
}

#[tokio::test]
async fn following_goes_on_after_every_kind_of_end() {
    let mock = tokio::task::spawn_blocking(|| Mock::serve(restless())).await.unwrap();
    let steps: Vec<String> = follow::<FluxionJob>(client(&mock), Selection::default())
        .take(8)
        .map(|change| match change {
            Change::All(meta, items) => format!("all {} at {}", items.len(), meta.resource_version),
            Change::Set(job) => format!("set {}", job.metadata.name),
            Change::Gone(job) => format!("gone {}", job.metadata.name),
            Change::Alive => "alive".to_owned(),
            Change::Lost(error) => format!("lost: {error}"),
        })
        .collect()
        .await;
    let round = ["all 1 at 42", "set job.lammps", "alive"];
    assert_eq!(steps[..6], [round, round].concat());
    assert!(steps[6].starts_with("lost: the inspector at") && steps[6].ends_with("is not ready: no leader"));
    assert_eq!(steps[7], "all 1 at 42");
    tokio::task::spawn_blocking(move || drop(mock)).await.unwrap();
}
