use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::*;

/// A server with one Lease; `None`: it answers 500.
type Store = Arc<Mutex<Option<Option<Value>>>>;

fn client(store: &Store) -> Client {
    let path = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";
    let read = |State(store): State<Store>| async move {
        match store.lock().unwrap().clone() {
            None => (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({}))),
            Some(None) => (
                StatusCode::NOT_FOUND,
                Json(json!({
                "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": ""})),
            ),
            Some(Some(lease)) => (StatusCode::OK, Json(lease)),
        }
    };
    let write = |State(store): State<Store>, Json(lease): Json<Value>| async move {
        let mut store = store.lock().unwrap();
        if store.is_none() {
            return (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({})));
        }
        *store = Some(Some(lease.clone()));
        (StatusCode::OK, Json(lease))
    };
    let router = Router::new()
        .route(path, axum::routing::post(write))
        .route(&format!("{path}/l"), get(read).put(write))
        .with_state(Arc::clone(store));
    Client::new(router, "ns")
}

fn lease(store: &Store, identity: &str) -> Lease {
    Lease::new(client(store), "ns", "l", identity, 15)
}

/// One try of somebody who has seen nothing yet.
async fn takes(lease: &Lease) -> bool {
    lease.attempt(&mut Seen::default()).await.unwrap()
}

fn stored(store: &Store) -> Value {
    store.lock().unwrap().clone().unwrap().unwrap()
}

#[tokio::test]
async fn one_takes_it_and_the_other_waits_its_whole_length() {
    let store: Store = Arc::new(Mutex::new(Some(None)));
    let (a, b, mut seen) = (lease(&store, "a"), lease(&store, "b"), Seen::default());
    assert!(takes(&a).await && takes(&a).await);
    assert!(!b.attempt(&mut seen).await.unwrap());
    let spec: LeaseSpec = serde_json::from_value(stored(&store)["spec"].clone()).unwrap();
    let now = Instant::now();
    assert!(!b.may_take(&mut seen, &spec, now + Duration::from_secs(14)));
    assert!(b.may_take(&mut seen, &spec, now + Duration::from_secs(16)));
    // A renewal starts the wait anew.
    let renewed = LeaseSpec { renew_time: Some(MicroTime(jiff::Timestamp::now())), ..spec };
    assert!(!b.may_take(&mut seen, &renewed, now + Duration::from_secs(17)));
}

#[tokio::test]
async fn who_gives_back_is_followed_at_once() {
    let store: Store = Arc::new(Mutex::new(Some(None)));
    let a = lease(&store, "a");
    assert!(takes(&a).await && !takes(&lease(&store, "b")).await);
    a.release().await.unwrap();
    assert!(takes(&lease(&store, "b")).await);
    let spec = &stored(&store)["spec"];
    assert_eq!((&spec["holderIdentity"], &spec["leaseTransitions"]), (&json!("b"), &json!(2)));
}

#[tokio::test]
async fn a_dead_process_of_this_machine_is_not_waited_for_and_any_other_is() {
    let store: Store = Arc::new(Mutex::new(Some(None)));
    assert!(takes(&lease(&store, "a")).await);
    let signed = stored(&store)["metadata"]["annotations"][HOLDER_PROCESS].as_str().unwrap().to_owned();
    let sign = |text: String| {
        let mut lease = stored(&store);
        lease["metadata"]["annotations"][HOLDER_PROCESS] = text.into();
        *store.lock().unwrap() = Some(Some(lease));
    };
    // This very process runs; started at another time, it was another one under the same pid.
    let (rest, started) = signed.rsplit_once(' ').unwrap();
    let dead = format!("{rest} {}", started.parse::<u64>().unwrap() + 1);
    for (text, taken) in [
        (String::new(), false),
        (signed.clone(), false),
        (dead.replacen("a ", "before-a ", 1), false),
        (dead, true),
    ] {
        sign(text.clone());
        assert_eq!(takes(&lease(&store, "b")).await, taken, "{text}");
    }
}

#[test]
fn no_two_processes_have_one_identity() {
    assert_ne!(identity(), identity());
}

#[tokio::test]
async fn a_holder_that_cannot_renew_stops_before_the_lease_runs_out_and_says_since_when() {
    let store: Store = Arc::new(Mutex::new(Some(None)));
    let (sender, mut leading) = signal::channel(false);
    let health = Arc::new(Health::default());
    let lease = Lease::new(client(&store), "ns", "l", "a", 3);
    let run = tokio::spawn(lease.run(sender, Arc::clone(&health)));
    leading.wait_for(|leads| *leads).await.unwrap();
    assert_eq!(health.warning(), None);
    *store.lock().unwrap() = None;
    let failed_at = Instant::now();
    leading.wait_for(|leads| !*leads).await.unwrap();
    assert!(failed_at.elapsed() < Duration::from_secs(3), "{:?}", failed_at.elapsed());
    let warning = health.warning().unwrap();
    assert!(warning.starts_with("not the leader: API server unreachable since 2"), "{warning}");
    run.abort();
}
