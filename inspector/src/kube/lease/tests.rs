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
    lease.attempt(&mut Seen::default(), Terms::default()).await.unwrap().is_some()
}

fn stored(store: &Store) -> Value {
    store.lock().unwrap().clone().unwrap().unwrap()
}

#[tokio::test]
async fn one_takes_it_and_the_other_waits_its_whole_length() {
    let store: Store = Arc::new(Mutex::new(Some(None)));
    let (a, b, mut seen) = (lease(&store, "a"), lease(&store, "b"), Seen::default());
    assert!(takes(&a).await && takes(&a).await);
    assert_eq!(b.attempt(&mut seen, Terms::default()).await.unwrap(), None);
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
    let signed =
        stored(&store)["metadata"]["annotations"][record::HOLDER_PROCESS].as_str().unwrap().to_owned();
    let sign = |text: String| {
        let mut lease = stored(&store);
        lease["metadata"]["annotations"][record::HOLDER_PROCESS] = text.into();
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
    let health = Arc::new(Health::default());
    let mut leading = health.follow_leadership();
    let lease = Lease::new(client(&store), "ns", "l", "a", 3);
    let run = tokio::spawn(lease.run(Arc::clone(&health)));
    let led = leading.wait_for(|now| now.as_ref().is_some_and(|now| now.held.is_some())).await.unwrap();
    let until = led.as_ref().unwrap().held.unwrap().until;
    drop(led);
    assert!(until <= Instant::now() + Duration::from_secs(2), "two thirds of the Lease duration");
    assert_eq!(health.warning(), None);
    *store.lock().unwrap() = None;
    let failed_at = Instant::now();
    leading.wait_for(|now| now.as_ref().is_some_and(|now| now.held.is_none())).await.unwrap();
    assert!(failed_at.elapsed() < Duration::from_secs(3), "{:?}", failed_at.elapsed());
    let warning = health.warning().unwrap();
    assert!(warning.starts_with("not the leader: API server unreachable since 2"), "{warning}");
    run.abort();
}

/// The terms of somebody who holds the Lease in this one, until so many seconds from now.
fn held(number: u64, seconds: u64) -> Terms {
    let until = Instant::now() + Duration::from_secs(seconds);
    Terms { held: Some(Term { number, until }), last: Some(number) }
}

#[tokio::test]
async fn a_term_keeps_its_number_over_renewals_and_each_leader_has_a_greater_one() {
    let store: Store = Arc::new(Mutex::new(Some(None)));
    let mut last = 0;
    for identity in ["a", "b", "a"] {
        let lease = lease(&store, identity);
        let term = lease.attempt(&mut Seen::default(), Terms::default()).await.unwrap().unwrap();
        assert!(term > last, "{term} after {last}");
        let renewed = lease.attempt(&mut Seen::default(), held(term, 60)).await.unwrap();
        assert_eq!(renewed, Some(term));
        lease.release().await.unwrap();
        last = term;
    }
}

#[tokio::test]
async fn a_holder_whose_term_has_ended_begins_a_new_one() {
    let store: Store = Arc::new(Mutex::new(Some(None)));
    let a = lease(&store, "a");
    let first = a.attempt(&mut Seen::default(), Terms::default()).await.unwrap().unwrap();
    let second = a.attempt(&mut Seen::default(), held(first, 0)).await.unwrap().unwrap();
    assert!(second > first, "{second} after {first}");
    assert_eq!(stored(&store)["metadata"]["annotations"][TERM], json!(second.to_string()));
    // Somebody has written another term, an earlier one, or none.
    for text in [json!((second + 1).to_string()), json!("1"), json!("none")] {
        let mut lease = stored(&store);
        lease["metadata"]["annotations"][TERM] = text.clone();
        *store.lock().unwrap() = Some(Some(lease));
        let next = a.attempt(&mut Seen::default(), held(second, 60)).await.unwrap().unwrap();
        assert!(next > second, "{next} after {second} and {text}");
    }
    // The Lease was deleted, and the clock is set back.
    *store.lock().unwrap() = Some(None);
    let last = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap() + 3_600_000;
    let next = a.attempt(&mut Seen::default(), held(last, 0)).await.unwrap().unwrap();
    assert!(next > last, "{next} after {last}");
}

#[test]
fn a_term_that_ended_while_it_was_being_renewed_is_not_resumed() {
    let later = Instant::now() + Duration::from_mins(1);
    let mut terms = held(7, 60);
    assert!(terms.renewed(Some(7), later) && terms.held == Some(Term { number: 7, until: later }));
    terms = held(7, 0);
    assert!(!terms.renewed(Some(7), later) && terms.held.is_none() && terms.last == Some(7));
    assert!(terms.renewed(Some(8), later) && terms.held.is_some() && terms.last == Some(8));
    assert!(terms.renewed(None, later) && terms.held.is_none() && terms.last == Some(8));
}

#[tokio::test]
async fn a_leader_that_loses_and_regains_the_lease_leads_in_another_term() {
    let store: Store = Arc::new(Mutex::new(Some(None)));
    let health = Arc::new(Health::default());
    let mut leading = health.follow_leadership();
    let run = tokio::spawn(Lease::new(client(&store), "ns", "l", "a", 3).run(Arc::clone(&health)));
    let mut led = async |held: bool| {
        let right = |now: &Option<Leadership>| now.as_ref().is_some_and(|now| now.held.is_some() == held);
        let wait = leading.wait_for(right);
        let found = tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap().unwrap();
        found.as_ref().unwrap().held.map(|term| term.number)
    };
    let first = led(true).await.unwrap();
    let kept = store.lock().unwrap().take();
    led(false).await;
    *store.lock().unwrap() = kept;
    let second = led(true).await.unwrap();
    assert!(second > first, "{second} after {first}");
    assert_eq!(stored(&store)["spec"]["leaseTransitions"], json!(1), "nobody else was elected");
    run.abort();
}

#[tokio::test]
async fn the_address_is_that_of_the_holder_while_it_holds_the_lease() {
    let store: Store = Arc::new(Mutex::new(Some(None)));
    let at = |text: &str| Some(text.parse::<SocketAddr>().unwrap());
    let a = lease(&store, "a").with_address(at("192.0.2.1:8443"));
    let b = lease(&store, "b");
    let mut seen = Seen::default();
    let address = |seen: &Seen| seen.address.map(|(address, _)| address);
    assert!(takes(&a).await);
    b.attempt(&mut seen, Terms::default()).await.unwrap();
    assert_eq!(address(&seen), at("192.0.2.1:8443"));
    a.attempt(&mut seen, Terms::default()).await.unwrap();
    assert_eq!(address(&seen), None, "nobody forwards to itself");
    a.release().await.unwrap();
    // An inspector of an earlier version knows nothing of the annotation, and keeps it.
    let mut stored = stored(&store);
    stored["spec"]["holderIdentity"] = json!("c");
    *store.lock().unwrap() = Some(Some(stored));
    b.attempt(&mut seen, Terms::default()).await.unwrap();
    assert_eq!(address(&seen), None, "it is that of an earlier holder");
}
