//! What the API server answers, and what the engine hears of it.

use std::collections::VecDeque;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use fluxion_scheduler::model::{AllocationRecord, ObjectRef, Pin, ReservationRecord};
use serde_json::{Value, json};

use super::*;
use crate::health::Term;

/// Answers prepared for bindings and for reads of the Pod, in order; and what was sent.
#[derive(Default)]
struct Server {
    bindings: VecDeque<(u16, &'static str)>,
    pod: Option<Value>,
    /// Answer to an eviction.
    eviction: Option<(u16, &'static str)>,
    /// Answers prepared for deletions, in order.
    deletions: VecDeque<(u16, &'static str)>,
    sent: Vec<(Method, String, Value)>,
    /// The queries of these requests.
    queries: Vec<String>,
}

type Shared = Arc<Mutex<Server>>;

fn status(code: u16, message: &str) -> Response {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": if code < 300 { "Success" } else { "Failure" },
        "code": code, "message": message, "reason": "Because"});
    (StatusCode::from_u16(code).unwrap(), axum::Json(body)).into_response()
}

async fn answer(State(server): State<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let mut server = server.lock().unwrap();
    let path = parts.uri.path().to_owned();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    server.sent.push((parts.method.clone(), path.clone(), body));
    server.queries.push(parts.uri.query().unwrap_or_default().to_owned());
    if path.ends_with("/binding") {
        let (code, message) = server.bindings.pop_front().unwrap_or((201, ""));
        return status(code, message);
    }
    if path.ends_with("/eviction") {
        let (code, message) = server.eviction.unwrap_or((201, ""));
        return status(code, message);
    }
    if parts.method == Method::DELETE {
        let (code, message) = server.deletions.pop_front().unwrap_or((200, ""));
        return status(code, message);
    }
    if path.ends_with("/status") {
        let version = server.sent.len().to_string();
        return axum::Json(json!({"metadata": {"resourceVersion": version}})).into_response();
    }
    match (&parts.method, &server.pod) {
        (&Method::GET, Some(pod)) => axum::Json(pod.clone()).into_response(),
        (&Method::GET, None) => status(404, "not found"),
        _ => status(200, ""),
    }
}

fn client(server: &Shared) -> Client {
    Client::new(Router::new().fallback(answer).with_state(Arc::clone(server)), "default")
}

fn pod() -> ObjectRef {
    let (namespace, kind, api_version) = ("a".into(), "Pod".into(), "v1".into());
    ObjectRef { namespace, kind, api_version, name: "p".into(), uid: "u1".into() }
}

/// The number of our term.
const TERM: u64 = 7;
const OF_TERM: &str = "fieldManager=fluxion-inspector.term-7";
/// What kube-apiserver answers by order of the chart's fence.
const FENCED: &str = "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'fluxion-inspector-term' with binding \
    'fluxion-inspector-term' denied request: fluxion.flux-framework.org/term: the request is of term 7, but the \
    current term is 8";

async fn bind_with(bindings: &[(u16, &'static str)], found: Option<Value>) -> (BindOutcome, Shared) {
    let server = Server { bindings: bindings.iter().copied().collect(), pod: found, ..Server::default() };
    let server: Shared = Arc::new(Mutex::new(server));
    let record =
        AllocationRecord { job: "job.x".into(), start: 1, planned_end: Some(61), size: 2, pin: None };
    (bind::bind(&client(&server), &pod(), "n1", &record, TERM).await, server)
}

fn on(node: &str, uid: &str) -> Value {
    json!({"metadata": {"name": "p", "uid": uid}, "spec": {"containers": [], "nodeName": node}})
}

#[tokio::test]
async fn a_binding_names_the_uid_and_carries_the_record() {
    let (outcome, server) = bind_with(&[(201, "")], None).await;
    assert_eq!(outcome, BindOutcome::Done);
    let (method, path, body) = server.lock().unwrap().sent[0].clone();
    assert_eq!((method, path.as_str()), (Method::POST, "/api/v1/namespaces/a/pods/p/binding"));
    assert_eq!((&body["metadata"]["uid"], &body["target"]["name"]), (&json!("u1"), &json!("n1")));
    let record = body["metadata"]["annotations"]["fluxion.flux-framework.org/allocation"].as_str().unwrap();
    assert_eq!(record, r#"{"job":"job.x","start":1,"plannedEnd":61,"size":2}"#);
}

#[tokio::test]
async fn on_a_conflict_the_pod_itself_says_what_is_the_case() {
    let conflict = [(409, "conflict")];
    let outcome = async |found| bind_with(&conflict, found).await.0;
    assert_eq!(outcome(Some(on("n1", "u1"))).await, BindOutcome::Done);
    assert_eq!(outcome(Some(on("n2", "u1"))).await, BindOutcome::Elsewhere("n2".into()));
    assert!(matches!(outcome(Some(on("n1", "u2"))).await, BindOutcome::Gone(_)));
    assert!(matches!(outcome(None).await, BindOutcome::Gone(_)));
    let deleting = json!({"metadata": {"uid": "u1", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    assert!(matches!(outcome(Some(deleting)).await, BindOutcome::Gone(_)));
    let gated = json!({"metadata": {"uid": "u1"}, "spec": {"schedulingGates": [{"name": "g"}]}});
    assert!(matches!(outcome(Some(gated)).await, BindOutcome::Refused(_)));
    assert!(matches!(outcome(Some(json!({"metadata": {"uid": "u1"}}))).await, BindOutcome::Transient(_)));
}

async fn pin_with(found: Option<Value>) -> (BindOutcome, Option<Value>) {
    let server: Shared = Arc::new(Mutex::new(Server { pod: found, ..Server::default() }));
    let at = Pin { node: "n1".into(), at: 1 };
    let record =
        AllocationRecord { job: "job.x".into(), start: 1, planned_end: None, size: 2, pin: Some(at) };
    let outcome = pin::pin(&client(&server), &pod(), "n1", &record, TERM).await;
    let server = server.lock().unwrap();
    let patch = server.sent.iter().position(|(method, ..)| *method == Method::PATCH);
    assert!(patch.is_none_or(|at| server.queries[at] == OF_TERM), "{:?}", server.queries);
    (outcome, patch.map(|at| server.sent[at].2.clone()))
}

#[tokio::test]
async fn a_pin_its_record_and_the_end_of_the_gate_are_one_write() {
    const OURS: &str = "fluxion.flux-framework.org/gate";
    let gated = json!({"metadata": {"name": "p", "uid": "u1", "resourceVersion": "7"},
        "spec": {"containers": [], "schedulingGates": [{"name": OURS}]}});
    let (outcome, patch) = pin_with(Some(gated.clone())).await;
    let patch = patch.unwrap();
    assert_eq!(outcome, BindOutcome::Done);
    assert_eq!(
        (&patch["metadata"]["uid"], &patch["metadata"]["resourceVersion"]),
        (&json!("u1"), &json!("7"))
    );
    assert_eq!(patch["spec"]["schedulingGates"], json!([]));
    let record = patch["metadata"]["annotations"]["fluxion.flux-framework.org/allocation"].as_str().unwrap();
    assert!(record.contains(r#""pin":{"node":"n1","at":1}"#), "{record}");

    // Pinned before, by an attempt whose answer was lost.
    let mut pinned = gated.clone();
    pinned["spec"] = json!({"containers": [], "affinity": patch["spec"]["affinity"]});
    pinned["metadata"]["annotations"] = patch["metadata"]["annotations"].clone();
    assert_eq!(pin_with(Some(pinned.clone())).await, (BindOutcome::Done, None));
    // The record alone proves nothing.
    pinned["spec"]["affinity"] = Value::Null;
    assert!(matches!(pin_with(Some(pinned)).await, (BindOutcome::Gone(_), None)));
    assert!(matches!(pin_with(None).await, (BindOutcome::Gone(_), None)));
    assert!(matches!(pin_with(Some(on("n2", "u1"))).await, (BindOutcome::Elsewhere(_), None)));
    let mut another = gated;
    another["metadata"]["uid"] = json!("u2");
    assert!(matches!(pin_with(Some(another)).await, (BindOutcome::Gone(_), None)));
}

#[tokio::test]
async fn what_passes_is_tried_again_and_what_does_not_is_not() {
    let (outcome, server) = bind_with(&[(500, "x"), (429, "x"), (201, "")], None).await;
    assert_eq!((outcome, server.lock().unwrap().sent.len()), (BindOutcome::Done, 3));
    let (outcome, server) = bind_with(&[(503, "down"); 9], None).await;
    assert_eq!((outcome, server.lock().unwrap().sent.len()), (BindOutcome::Transient("down".into()), 4));
    let (outcome, server) = bind_with(&[(403, "forbidden")], None).await;
    assert_eq!((outcome, server.lock().unwrap().sent.len()), (BindOutcome::Refused("forbidden".into()), 1));
    assert!(matches!(bind_with(&[(404, "")], None).await.0, BindOutcome::Gone(_)));
}

#[tokio::test]
async fn conditions_and_deletions_are_fenced_by_uid() {
    let server = Shared::default();
    let client = client(&server);
    condition::unscheduled(&client, &pod(), "FluxionQueued", "text", true).await.unwrap();
    condition::unscheduled(&client, &pod(), "Unschedulable", "text", false).await.unwrap();
    delete::object(&client, &pod()).await.unwrap();
    let slots = vec![(0, "n1".into(), 2)];
    let record = ReservationRecord { at: 1, start: 2, assumed: false, domain: None, slots };
    condition::reserved(&client, &pod(), Some(&record)).await.unwrap();
    condition::reserved(&client, &pod(), None).await.unwrap();
    let sent = server.lock().unwrap();
    let conditions = |n: usize| &sent.sent[n].2["status"]["conditions"][0];
    assert_eq!(
        (&sent.sent[0].0, sent.sent[0].1.as_str()),
        (&Method::PATCH, "/api/v1/namespaces/a/pods/p/status")
    );
    assert_eq!(
        (&sent.sent[0].2["metadata"]["uid"], &conditions(0)["reason"]),
        (&json!("u1"), &json!("FluxionQueued"))
    );
    assert!(conditions(0)["lastTransitionTime"].is_null() && conditions(1)["lastTransitionTime"].is_string());
    assert_eq!((&sent.sent[2].0, &sent.sent[2].2["preconditions"]["uid"]), (&Method::DELETE, &json!("u1")));
    assert_eq!(conditions(3)["message"], json!(r#"{"at":1,"start":2,"slots":[[0,"n1",2]]}"#));
    assert_eq!(
        (&conditions(4)["$patch"], &sent.sent[4].2["metadata"]["uid"]),
        (&json!("delete"), &json!("u1"))
    );
}

/// The fence is no policy of the cluster's against a node or a Pod: nothing else is tried instead.
#[tokio::test]
async fn every_decision_names_its_term_and_a_refusal_for_it_is_none_by_the_cluster() {
    let (outcome, server) = bind_with(&[(403, FENCED); 4], None).await;
    assert!(matches!(&outcome, BindOutcome::Transient(why) if why.contains("not the leader")), "{outcome:?}");
    assert_eq!(server.lock().unwrap().queries, [OF_TERM; 4]);
    assert_eq!(bind_with(&[(403, FENCED), (201, "")], None).await.0, BindOutcome::Done);

    let (result, sent) = evict_with((403, FENCED)).await;
    assert!(matches!(result, Err(WriteError::Transient(_))), "{result:?}");
    assert!(sent.iter().all(|(method, ..)| *method != Method::DELETE));

    let server = Shared::default();
    let job = ObjectRef { kind: "Job".into(), api_version: "batch/v1".into(), ..pod() };
    resume::object(&client(&server), &job, TERM).await.unwrap();
    evict::pod(&client(&server), &pod(), "why", None, TERM).await.unwrap();
    assert_eq!(server.lock().unwrap().queries, [OF_TERM; 3], "the second one marks the Pod");

    let server = Shared::default();
    let (client, one, node) = (client(&server), pod(), "n1");
    storage::select(&client, &one, node, 1, TERM).await.unwrap();
    storage::deselect(&client, &one, node, TERM).await.unwrap();
    storage::reserve(&client, &one, "7", &one, TERM).await.unwrap();
    storage::free(&client, &one, &one, TERM).await.unwrap();
    assert_eq!(server.lock().unwrap().queries, [OF_TERM; 4]);
}

async fn evict_with(answer: (u16, &'static str)) -> (Result<(), WriteError>, Vec<(Method, String, Value)>) {
    let server: Shared = Arc::new(Mutex::new(Server { eviction: Some(answer), ..Server::default() }));
    let result = evict::pod(&client(&server), &pod(), "why", None, TERM).await;
    let sent = std::mem::take(&mut server.lock().unwrap().sent);
    (result, sent)
}

#[tokio::test]
async fn who_is_let_go_is_marked_as_disrupted_before_the_eviction() {
    let (result, sent) = evict_with((201, "")).await;
    result.unwrap();
    assert_eq!(sent.len(), 2);
    let condition = &sent[0].2["status"]["conditions"][0];
    assert_eq!((&sent[0].0, sent[0].1.as_str()), (&Method::PATCH, "/api/v1/namespaces/a/pods/p/status"));
    assert_eq!((&condition["type"], &condition["status"]), (&json!("DisruptionTarget"), &json!("True")));
    assert_eq!(condition["reason"], "FluxionGangReleased");
    assert_eq!((&sent[1].0, sent[1].1.as_str()), (&Method::POST, "/api/v1/namespaces/a/pods/p/eviction"));
    assert_eq!(sent[1].2["deleteOptions"]["preconditions"]["uid"], "u1");
}

#[tokio::test]
async fn without_the_right_to_evict_a_pod_is_deleted_but_not_against_a_disruption_budget() {
    let (result, sent) = evict_with((403, "forbidden")).await;
    result.unwrap();
    assert_eq!(sent.last().unwrap().0, Method::DELETE);
    let (result, sent) = evict_with((429, "would violate the budget")).await;
    assert!(matches!(result, Err(WriteError::Transient(_))));
    assert!(sent.iter().all(|(method, ..)| *method != Method::DELETE));
}

/// A deletion names no term, but the version of the Pod as it was marked in that term.
#[tokio::test]
async fn a_deletion_requires_the_mark_of_its_term_and_a_changed_pod_is_marked_again() {
    const CHANGED: &str = "Operation cannot be fulfilled on Pod \"p\": the ResourceVersion in the precondition (1) does \
        not match the ResourceVersion in record (2). The object might have been modified";
    const ANOTHER: &str = "Precondition failed: UID in precondition: u1, UID in object meta: u2";
    let delete_with = async |deletions: &[(u16, &'static str)]| {
        let eviction = Some((403, "forbidden"));
        let deletions = deletions.iter().copied().collect();
        let server: Shared = Arc::new(Mutex::new(Server { eviction, deletions, ..Server::default() }));
        let result = evict::pod(&client(&server), &pod(), "why", None, TERM).await;
        let sent = std::mem::take(&mut server.lock().unwrap().sent);
        let deletions = sent.into_iter().filter(|(method, ..)| *method == Method::DELETE);
        let versions = deletions.map(|(.., body)| body["preconditions"]["resourceVersion"].clone());
        (result, versions.collect::<Vec<_>>())
    };
    let (result, versions) = delete_with(&[(409, CHANGED), (200, "")]).await;
    result.unwrap();
    assert_eq!(versions, ["1", "4"]);
    let (result, versions) = delete_with(&[(409, ANOTHER)]).await;
    assert!(matches!(result, Err(WriteError::Gone)) && versions == ["1"], "{result:?} {versions:?}");
    let (result, versions) = delete_with(&[(403, FENCED); 9]).await;
    assert!(matches!(result, Err(WriteError::Transient(_))) && versions.len() == 4, "{result:?}");
    let (result, versions) = delete_with(&[(409, CHANGED); 9]).await;
    assert!(matches!(result, Err(WriteError::Conflict(_))) && versions.len() == 5, "{result:?}");
}

/// A running writer with an engine of its own.
struct Writing {
    writer: Writer,
    engine: EngineHandle,
    effects: mpsc::Sender<Vec<Effect>>,
    grant: tokio::sync::watch::Sender<Option<Term>>,
}

impl Writing {
    fn start(client: Client, until: tokio::time::Instant) -> Self {
        let metrics = Arc::new(Metrics::new());
        let engine = crate::engine::Engine {
            state: fluxion_scheduler::state::State::new(fluxion_scheduler::state::Settings::default()),
            role: crate::engine::Role::Leader,
            clock: crate::engine::system_clock(),
            metrics: Arc::clone(&metrics),
        };
        let (engine, _) = engine.start().unwrap();
        let (effects, receiver) = mpsc::channel(1);
        let (grant, granted) = tokio::sync::watch::channel(Some(Term { number: TERM, until }));
        let right = Right::new(granted);
        let writer = Writer::start(client, engine.clone(), metrics, receiver, right, "i".to_owned());
        Self { writer, engine, effects, grant }
    }

    /// Queues bindings of so many Pods.
    async fn bind(&self, pods: usize) {
        let bind = |index: usize| {
            let record =
                AllocationRecord { job: "job.x".into(), start: 1, planned_end: None, size: 1, pin: None };
            let pod = ObjectRef { uid: format!("u{index}").into(), ..pod() };
            Effect::Bind { pod, node: "n1".into(), record }
        };
        self.effects.send((0..pods).map(bind).collect()).await.unwrap();
    }

    fn unsent(&self) -> usize {
        let lanes = self.writer.shared.lock();
        lanes.busy() + lanes.len()
    }
}

/// A leader whose right ends while the API server keeps it waiting.
#[tokio::test]
async fn what_is_being_sent_when_the_right_ends_is_broken_off_and_nothing_more_is_sent() {
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let answer = move |request: Request| {
        let arrived = arrived.clone();
        async move {
            arrived.send(request.uri().path().to_owned()).unwrap();
            std::future::pending::<Response>().await
        }
    };
    let client = Client::new(Router::new().fallback(answer), "default");
    let until = tokio::time::Instant::now() + Duration::from_secs(1);
    let writing = Writing::start(client, until);
    writing.bind(IN_FLIGHT + 10).await;
    for _ in 0..IN_FLIGHT {
        arrivals.recv().await.unwrap();
    }
    while writing.unsent() > 0 {
        assert!(until.elapsed() < Duration::from_secs(5), "{} are left", writing.unsent());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(tokio::time::Instant::now() >= until);
    assert!(arrivals.try_recv().is_err());
    let stopped = Instant::now();
    writing.writer.stop().await;
    assert!(stopped.elapsed() < Duration::from_secs(2));
    writing.engine.stop();
}

/// What was decided in one term is not sent in the next one.
#[tokio::test]
async fn what_was_queued_in_an_earlier_term_is_not_sent() {
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let answer = move |request: Request| {
        let arrived = arrived.clone();
        async move {
            arrived.send(request.uri().query().unwrap_or_default().to_owned()).unwrap();
            std::future::pending::<Response>().await
        }
    };
    let until = tokio::time::Instant::now() + Duration::from_mins(1);
    let writing = Writing::start(Client::new(Router::new().fallback(answer), "default"), until);
    writing.bind(IN_FLIGHT + 10).await;
    for _ in 0..IN_FLIGHT {
        assert_eq!(arrivals.recv().await.unwrap(), OF_TERM);
    }
    writing.grant.send_replace(Some(Term { number: TERM + 1, until }));
    while writing.unsent() > 0 {
        assert!(tokio::time::Instant::now() < until, "{} are left", writing.unsent());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(arrivals.try_recv().is_err());
    writing.bind(1).await;
    assert_eq!(arrivals.recv().await.unwrap(), "fieldManager=fluxion-inspector.term-8");
    writing.grant.send_replace(None);
    writing.writer.stop().await;
    writing.engine.stop();
}

/// A shutdown sends what is queued, as long as the right holds.
#[tokio::test]
async fn a_shutdown_waits_for_what_is_queued() {
    let server = Shared::default();
    let writing = Writing::start(client(&server), tokio::time::Instant::now() + Duration::from_mins(1));
    writing.bind(200).await;
    while writing.unsent() == 0 && server.lock().unwrap().sent.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    writing.writer.stop().await;
    assert_eq!(server.lock().unwrap().sent.len(), 200);
    writing.engine.stop();
}
