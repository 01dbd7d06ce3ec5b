//! Watches of a server of which each answer is prepared.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Request, State as Given};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::*;
use crate::engine::{Engine, Role, system_clock};
use crate::metrics::Kind;

/// Lists are empty; whether the watches of one resource are granted, and what goes over those that are, the test says.
struct Server {
    resource: &'static str,
    refuse: bool,
    /// Its watches that were granted, with their queries.
    open: Vec<(String, mpsc::UnboundedSender<String>)>,
    watches: usize,
}

type Shared = Arc<Mutex<Server>>;

async fn answer(Given(server): Given<Shared>, request: Request) -> Response {
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    if path == "/apis" {
        return Json(json!({"kind": "APIGroupList", "groups": []})).into_response();
    }
    if !query.contains("watch=true") {
        let list =
            json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "7"}, "items": []});
        return Json(list).into_response();
    }
    assert!(query.contains("allowWatchBookmarks=true") && query.contains("timeoutSeconds=30"), "{query}");
    let mut server = server.lock().unwrap();
    let prepared = path.strip_suffix(server.resource).is_some_and(|path| path.ends_with('/'));
    if prepared {
        server.watches += 1;
    }
    if prepared && server.refuse {
        let resource = server.resource;
        let message = format!("{resource} is forbidden: User \"u\" cannot watch resource \"{resource}\"");
        let status = json!({"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": message});
        return (StatusCode::FORBIDDEN, Json(status)).into_response();
    }
    let (sender, receiver) = mpsc::unbounded_channel::<String>();
    if prepared {
        server.open.push((query.to_owned(), sender));
    } else {
        // Held open, and silent.
        std::mem::forget(sender);
    }
    let lines = UnboundedReceiverStream::new(receiver).map(Ok::<_, std::convert::Infallible>);
    Body::from_stream(lines).into_response()
}

struct Watching {
    server: Shared,
    health: Health,
    metrics: Arc<Metrics>,
    engine: EngineHandle,
    _tasks: Tasks,
}

fn watch(resource: &'static str, refuse: bool) -> Watching {
    let server = Shared::new(Mutex::new(Server { resource, refuse, open: Vec::new(), watches: 0 }));
    let client = Client::new(Router::new().fallback(answer).with_state(Arc::clone(&server)), "default");
    let metrics = Arc::new(Metrics::new());
    let engine = Engine {
        state: fluxion_scheduler::state::State::new(fluxion_scheduler::state::Settings::default()),
        role: Role::Follower,
        clock: system_clock(),
        metrics: Arc::clone(&metrics),
    };
    let (engine, _effects) = engine.start().unwrap();
    let health = Health::default();
    let tasks = start(&client, &engine, &metrics, &health);
    Watching { server, health, metrics, engine, _tasks: tasks }
}

impl Watching {
    async fn until(&self, what: &str, right: impl Fn(&Health) -> bool) {
        let began = Instant::now();
        while !right(&self.health) {
            assert!(began.elapsed() < Duration::from_secs(20), "{what}: {:?}", self.health.unready());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn age(&self) -> Duration {
        let watches = self.health.watches();
        let nodes = watches.iter().find(|watched| watched.kind() == "Node").unwrap();
        nodes.age(Instant::now()).unwrap()
    }

    fn say(&self, kind: &str, object: &Value) {
        // In the order in which an API server writes them.
        let line = format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
        self.server.lock().unwrap().open.last().unwrap().1.send(line).unwrap();
    }

    /// Whether a watch with this in its query is open.
    fn is_open(&self, query: &str) -> bool {
        self.server.lock().unwrap().open.iter().any(|(of, _)| of.contains(query))
    }
}

#[tokio::test]
async fn a_watch_that_is_refused_while_its_list_works_is_noticed_and_named() {
    let cluster = watch("nodes", true);
    let others = |health: &Health| health.unready().is_some_and(|text| text.contains("forbidden"));
    cluster.until("refused", others).await;
    let problem = cluster.health.problems().remove(0);
    assert_eq!(problem.resource, "nodes");
    assert_eq!(
        problem.text,
        "not allowed to watch nodes: nodes is forbidden: User \"u\" cannot watch resource \"nodes\""
    );
    assert!(!cluster.health.synced(), "a list alone is not enough");
    cluster.server.lock().unwrap().refuse = false;
    cluster.until("granted", Health::synced).await;
    assert_eq!(cluster.health.problems(), []);
    cluster.engine.stop();
}

#[tokio::test]
async fn bookmarks_and_the_end_of_a_watch_are_signs_of_life_and_errors_are_not() {
    let cluster = watch("nodes", false);
    cluster.until("synced", Health::synced).await;
    let rest = Duration::from_millis(400);
    tokio::time::sleep(rest).await;
    assert!(cluster.age() >= rest, "that it was granted says nothing");
    let metadata = json!({"resourceVersion": "9", "creationTimestamp": null});
    cluster.say("BOOKMARK", &json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}}));
    tokio::time::sleep(rest / 4).await;
    assert!(cluster.age() < rest, "{:?}", cluster.age());

    // Ended at its time: begun anew, without another list.
    tokio::time::sleep(rest).await;
    let before = cluster.server.lock().unwrap().watches;
    cluster.server.lock().unwrap().open.clear();
    tokio::time::sleep(rest / 2).await;
    assert!(cluster.age() < rest, "{:?}", cluster.age());
    assert_eq!(cluster.server.lock().unwrap().watches, before + 1);

    tokio::time::sleep(rest).await;
    let age = cluster.age();
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "etcd is away", "reason": "InternalError", "code": 500});
    cluster.say("ERROR", &status);
    tokio::time::sleep(rest / 4).await;
    assert!(cluster.age() >= age, "{:?}", cluster.age());
    cluster.engine.stop();
}

#[test]
fn only_a_watch_that_is_needed_pauses_binding() {
    let health = Health::default();
    assert!(health.watch("Node", "nodes").needed() && !Health::aside("Event", "events").needed());
    assert_eq!(follow::until_permitted(true), "binding is paused until RBAC permits it");
    assert!(follow::until_permitted(false).starts_with("scheduling continues"));
}

#[tokio::test]
async fn refused_events_hold_nothing_up_and_are_asked_for_again() {
    let cluster = watch("events", true);
    cluster.until("synced without them", Health::synced).await;
    let failures = cluster.metrics.watch_failures.get_or_create(&Kind { kind: "Event" }).clone();
    cluster.until("refused", |_| failures.get() >= 2).await;
    assert_eq!((cluster.health.problems(), cluster.health.unready()), (Vec::new(), None));

    cluster.server.lock().unwrap().refuse = false;
    cluster.until("granted", |_| cluster.is_open("reason%3DFailedCreate")).await;
    cluster.engine.stop();
}
