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
    Lease::new(client(store), "ns", "l", identity.to_owned(), 15)
}

fn holder(store: &Store) -> Value {
    store.lock().unwrap().clone().unwrap().unwrap()["spec"].clone()
}

#[tokio::test]
async fn one_takes_it_and_the_other_waits_its_whole_length() {
    let store: Store = Arc::new(Mutex::new(Some(None)));
    let (mut a, mut b) = (lease(&store, "a"), lease(&store, "b"));
    assert!(a.attempt().await.unwrap());
    assert!(!b.attempt().await.unwrap());
    let spec: LeaseSpec = serde_json::from_value(holder(&store)).unwrap();
    let now = Instant::now();
    assert!(!b.may_take(&spec, now + Duration::from_secs(14)));
    assert!(b.may_take(&spec, now + Duration::from_secs(16)));
    // A renewal starts the wait anew.
    let renewed = LeaseSpec { renew_time: Some(MicroTime(jiff::Timestamp::now())), ..spec };
    assert!(!b.may_take(&renewed, now + Duration::from_secs(17)));
}

#[tokio::test]
async fn who_comes_back_goes_on_at_once_and_who_gives_back_is_followed_at_once() {
    let store: Store = Arc::new(Mutex::new(Some(None)));
    assert!(lease(&store, "a").attempt().await.unwrap());
    let mut again = lease(&store, "a");
    assert!(again.attempt().await.unwrap());
    assert_eq!(holder(&store)["leaseTransitions"], 1);
    again.release().await.unwrap();
    assert!(lease(&store, "b").attempt().await.unwrap());
    assert_eq!(
        (&holder(&store)["holderIdentity"], &holder(&store)["leaseTransitions"]),
        (&json!("b"), &json!(2))
    );
}

#[tokio::test]
async fn a_holder_that_cannot_renew_stops_before_the_lease_runs_out() {
    let store: Store = Arc::new(Mutex::new(Some(None)));
    let (sender, mut leading) = signal::channel(false);
    let mut lease = Lease::new(client(&store), "ns", "l", "a".to_owned(), 3);
    let run = tokio::spawn(async move { lease.run(&sender).await });
    leading.wait_for(|leads| *leads).await.unwrap();
    *store.lock().unwrap() = None;
    let failed_at = Instant::now();
    leading.wait_for(|leads| !*leads).await.unwrap();
    assert!(failed_at.elapsed() < Duration::from_secs(3), "{:?}", failed_at.elapsed());
    run.abort();
}
