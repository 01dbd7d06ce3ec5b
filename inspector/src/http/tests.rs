//! The API as a client sees it, on a running engine with a clock of its own.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use fluxion_scheduler::event::{Effect, Event};
use fluxion_scheduler::inventory::NodeSpec;
use fluxion_scheduler::model::{Marks, Phase, PodSpec, SharedStr};
use fluxion_scheduler::resources::ResourceList;
use fluxion_scheduler::state::{Settings, State};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::{App, Cancels, HttpSettings, router};
use crate::engine::{Clock, Engine, EngineHandle, Role};
use crate::health::Health;
use crate::metrics::Metrics;
use crate::supervise::Liveness;

mod cancels;
mod creates;
mod errors;
mod forms;
mod forward;
mod health;
mod hostile;
mod index;
mod lists;
mod open;
mod secure;
mod size;
mod tenancy;
mod tls;
mod watches;

/// 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600;
const BASE: &str = "/apis/fluxion.flux-framework.org/v1alpha1";

pub(super) struct Server {
    pub(super) app: App,
    router: Router,
    engine: EngineHandle,
    effects: mpsc::Receiver<Vec<Effect>>,
    pub(super) stopping: CancellationToken,
}

impl Server {
    /// With an engine that has not seen the cluster yet.
    fn unready(cancels: bool) -> Self {
        Self::with(cancels, Arc::default(), Arc::new(|| START * 1000))
    }

    fn with(cancels: bool, health: Arc<Health>, clock: Clock) -> Self {
        let metrics = Arc::new(Metrics::new());
        let engine = Engine {
            state: State::new(Settings::default()),
            role: if cancels { Role::Standalone } else { Role::Leader },
            clock,
            metrics: Arc::clone(&metrics),
        };
        let (engine, effects) = engine.start().unwrap();
        let stopping = CancellationToken::new();
        let liveness = Liveness::new(vec![engine.pulse().clone()], Duration::from_secs(2));
        let cancels = if cancels { Cancels::Engine } else { Cancels::User };
        let settings = HttpSettings { token: "secret".to_owned(), cancels, liveness };
        let app = App::new(engine.clone(), settings, metrics, stopping.clone()).with_health(health);
        Self { router: router(app.clone()), app, engine, effects, stopping }
    }

    /// With two nodes of 4 cpus.
    pub(super) async fn started(cancels: bool) -> Self {
        let server = Self::unready(cancels);
        server.tell([node("n1", 4), node("n2", 4), Event::Synced]).await;
        server
    }

    /// Sends events and waits until a snapshot knows them.
    async fn tell(&self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.engine.send(event);
        }
        self.engine.fresh().await.unwrap();
    }

    async fn send(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        read(self.send(request(Method::GET, path)).await).await
    }

    async fn post(&self, path: &str, body: &str) -> (StatusCode, Value) {
        let mut request = request(Method::POST, path);
        *request.body_mut() = Body::from(body.to_owned());
        read(self.send(request).await).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.engine.stop();
    }
}

/// With the right token and host.
fn request(method: Method, path: &str) -> Request<Body> {
    let path = if path.starts_with('/') { path.to_owned() } else { format!("{BASE}/{path}") };
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "127.0.0.1:8181")
        .header("authorization", "Bearer secret")
        .body(Body::empty())
        .unwrap()
}

async fn read(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let body = to_bytes(response.into_body(), 1 << 24).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

fn resources(pairs: &[(&str, u64)]) -> ResourceList {
    pairs.iter().map(|(name, amount)| (SharedStr::from(*name), *amount)).collect()
}

fn node(name: &str, cpus: u64) -> Event {
    let has = resources(&[("cpu", cpus * 1000), ("memory", 8 << 30), ("pods", 110)]);
    Event::Node(Box::new(NodeSpec {
        name: name.into(),
        uid: format!("uid-{name}").into(),
        ready: true,
        capacity: has.clone(),
        allocatable: has,
        ..NodeSpec::default()
    }))
}

/// A Pod of one cpu, alone in its group.
fn pod(namespace: &str, name: &str) -> PodSpec {
    PodSpec {
        scheduler_name: "fluxion".into(),
        created: START,
        needs: Ok(Arc::new(resources(&[("cpu", 1000), ("pods", 1)]))),
        ..PodSpec::new(namespace, name, format!("uid-{namespace}-{name}"))
    }
}

/// The members of a gang of `size` made by labels, each of so many cpus, with a time limit.
fn gang(namespace: &str, name: &str, size: u32, cpus: u64, seconds: i64) -> Vec<Event> {
    let member = |index: u32| {
        let mut pod = pod(namespace, &format!("{name}-{index}"));
        pod.labels.insert("fluxion.flux-framework.org/group".into(), name.into());
        pod.labels.insert("fluxion.flux-framework.org/group-size".into(), size.to_string().into());
        pod.needs = Ok(Arc::new(resources(&[("cpu", cpus * 1000), ("pods", 1)])));
        pod.active_deadline = Some(seconds);
        Event::Pod(Box::new(pod))
    };
    (0..size).map(member).collect()
}
