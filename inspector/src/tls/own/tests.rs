use std::sync::Mutex;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::Value;

use super::*;

/// An API server with one Secret and one `APIService`.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Objects>>);

#[derive(Default)]
struct Objects {
    secret: Option<Value>,
    registration: Option<Value>,
    writes: u32,
}

type Answer = (StatusCode, Json<Value>);

fn answer(object: Option<&Value>) -> Answer {
    match object {
        Some(object) => (StatusCode::OK, Json(object.clone())),
        None => failure(404, "NotFound"),
    }
}

fn failure(code: u16, reason: &str) -> Answer {
    let status =
        json!({ "kind": "Status", "status": "Failure", "reason": reason, "code": code, "message": "" });
    (StatusCode::from_u16(code).unwrap(), Json(status))
}

impl Server {
    fn keeper(&self) -> Keeper {
        self.keeper_of(false)
    }

    /// With a webhook or without.
    fn keeper_of(&self, webhook: bool) -> Keeper {
        let secrets = "/api/v1/namespaces/ns/secrets";
        let router =
            Router::new()
                .route(
                    &format!("{secrets}/s"),
                    get(|State(Server(it)): State<Server>| async move {
                        answer(it.lock().unwrap().secret.as_ref())
                    })
                    .put(write_secret)
                    .patch(apply_secret),
                )
                .route(
                    &format!("/apis/apiregistration.k8s.io/v1/apiservices/{API_SERVICE}"),
                    get(|State(Server(it)): State<Server>| async move {
                        answer(it.lock().unwrap().registration.as_ref())
                    })
                    .patch(
                        |State(Server(it)): State<Server>, Json(patch): Json<Value>| async move {
                            let mut it = it.lock().unwrap();
                            it.writes += 1;
                            let bundle = patch["spec"]["caBundle"].clone();
                            it.registration.as_mut().unwrap()["spec"]["caBundle"] = bundle;
                            answer(it.registration.as_ref())
                        },
                    ),
                )
                .route(
                    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/svc",
                    get(untrusting).patch(untrusting),
                )
                .with_state(self.clone());
        let place = AuthorityLocation {
            namespace: "ns".to_owned(),
            secret: "s".to_owned(),
            service: "svc".to_owned(),
            webhook,
        };
        Keeper::new(Client::new(router, "ns"), place, Arc::default())
    }

    fn register(&self) {
        self.0.lock().unwrap().registration = Some(json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": { "name": API_SERVICE },
            "spec": { "groupPriorityMinimum": 1, "versionPriority": 1 },
        }));
    }

    fn bundle(&self) -> Value {
        self.0.lock().unwrap().registration.as_ref().unwrap()["spec"]["caBundle"].clone()
    }

    fn kept(&self) -> Value {
        self.0.lock().unwrap().secret.as_ref().unwrap()["data"]["ca.crt"].clone()
    }
}

/// A webhook that never has an authority.
async fn untrusting() -> Json<Value> {
    let webhook =
        json!({ "name": "w", "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": {} });
    Json(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": { "name": "svc" }, "webhooks": [webhook],
    }))
}

async fn write_secret(State(Server(it)): State<Server>, Json(mut secret): Json<Value>) -> Answer {
    let mut it = it.lock().unwrap();
    let known = it.secret.as_ref().map(|secret| secret["metadata"]["resourceVersion"].clone());
    if known.unwrap_or(Value::Null) != secret["metadata"]["resourceVersion"] {
        return failure(409, "Conflict");
    }
    it.writes += 1;
    secret["metadata"]["resourceVersion"] = json!(it.writes.to_string());
    it.secret = Some(secret);
    answer(it.secret.as_ref())
}

/// Server-side apply by another manager each time: it may fill in what is missing, and not change what another one set.
async fn apply_secret(State(server): State<Server>, body: String) -> Answer {
    let mut secret: Value = serde_json::from_str(&body).unwrap();
    {
        let it = server.0.lock().unwrap();
        if let Some(known) = &it.secret {
            if known["data"]["ca.key"] != Value::Null && known["data"] != secret["data"] {
                return failure(409, "Conflict");
            }
            secret["metadata"]["resourceVersion"] = known["metadata"]["resourceVersion"].clone();
        }
    }
    write_secret(State(server), Json(secret)).await
}

#[tokio::test]
async fn replicas_share_an_authority_that_the_registration_trusts() {
    let server = Server::default();
    let (mut one, mut other) = (server.keeper(), server.keeper());
    let now = SystemTime::now();
    assert_eq!(one.look(now).await.unwrap(), Looked::Again, "not registered yet");
    assert!(one.serving.is_set(), "who connects directly needs no registration");
    server.register();
    assert_eq!(other.look(now).await.unwrap(), Looked::Fine);
    assert_eq!(one.look(now).await.unwrap(), Looked::Fine);
    assert_eq!(server.bundle(), server.kept());
    let writes = server.0.lock().unwrap().writes;
    for _ in 0..3 {
        assert_eq!(one.look(now).await.unwrap(), Looked::Fine);
    }
    assert_eq!(server.0.lock().unwrap().writes, writes, "nothing is written without need");
}

#[tokio::test]
async fn what_is_missing_is_looked_for_again_soon_also_when_something_else_has_changed() {
    let server = Server::default();
    let mut keeper = server.keeper_of(true);
    let now = SystemTime::now();
    assert_eq!(keeper.look(now).await.unwrap(), Looked::Again, "not registered yet");
    server.register();
    assert_eq!(keeper.look(now).await.unwrap(), Looked::Fine);
    assert_eq!(server.bundle(), server.kept());
}

#[tokio::test]
async fn clients_learn_of_a_new_authority_before_they_see_what_it_signed() {
    let server = Server::default();
    server.register();
    let (mut one, mut other) = (server.keeper(), server.keeper());
    let now = SystemTime::now();
    one.look(now).await.unwrap();
    other.look(now).await.unwrap();
    let (first, issued) = (server.bundle(), one.shown.as_ref().unwrap().0.certificate.clone());

    let soon = now + Duration::from_hours(25 * 24);
    assert_eq!(one.look(soon).await.unwrap(), Looked::Fine);
    assert_ne!(one.shown.as_ref().unwrap().0.certificate, issued, "renewed before it expires");
    assert_eq!(server.bundle(), first, "by the same authority");

    let late = now + Duration::from_hours(1000 * 24);
    let before = one.shown.as_ref().unwrap().0.certificate.clone();
    assert_eq!(one.look(late).await.unwrap(), Looked::Again);
    assert_ne!(server.bundle(), first);
    assert_eq!(one.shown.as_ref().unwrap().0.certificate, before);
    assert_eq!(one.look(late).await.unwrap(), Looked::Fine);
    assert_ne!(one.shown.as_ref().unwrap().0.certificate, before);
    assert_eq!(other.look(late).await.unwrap(), Looked::Fine);
    assert_eq!(server.bundle(), server.kept());
}

/// The Secret with other data.
fn secret(data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "data": data,
        "metadata": { "name": "s", "namespace": "ns", "resourceVersion": "1" },
    })
}

#[tokio::test]
async fn a_secret_without_an_authority_is_filled() {
    let server = Server::default();
    server.register();
    for data in [json!({}), json!({ "ca.crt": "eA==", "ca.key": "eA==" })] {
        server.0.lock().unwrap().secret = Some(secret(&data));
        server.keeper().look(SystemTime::now()).await.unwrap();
        assert_eq!(server.bundle(), server.kept());
    }
}

#[tokio::test]
async fn a_secret_that_was_deleted_or_emptied_is_made_again_and_the_last_authority_stays_trusted() {
    let server = Server::default();
    server.register();
    let (mut one, mut other) = (server.keeper(), server.keeper());
    let now = SystemTime::now();
    one.look(now).await.unwrap();
    other.look(now).await.unwrap();
    for empty in [None, Some(json!({}))] {
        let before = server.bundle();
        server.0.lock().unwrap().secret = empty.as_ref().map(secret);
        // The registration trusts both before anybody shows what the new one signed.
        assert_eq!(one.look(now).await.unwrap(), Looked::Again);
        let (bundle, shown) = (server.bundle(), one.shown.as_ref().unwrap().1.clone());
        assert!(bundle != before && bundle == server.kept());
        let text = |bundle: &Value| {
            let bytes: ByteString = serde_json::from_value(bundle.clone()).unwrap();
            String::from_utf8(bytes.0).unwrap()
        };
        assert_eq!(shown, text(&before));
        assert!(text(&bundle).ends_with(&text(&before)), "the other replica still shows what that signed");
        assert_eq!(one.look(now).await.unwrap(), Looked::Fine);
        assert_eq!(other.look(now).await.unwrap(), Looked::Fine);
        assert_eq!(other.shown.as_ref().unwrap().1, text(&bundle), "it takes what the first one made");
    }
}
