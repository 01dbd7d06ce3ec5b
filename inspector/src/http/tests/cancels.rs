//! Cancelling through the API.

use std::collections::BTreeMap;
use std::sync::Mutex;

use fluxion_scheduler::model::ObjectRef;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::secure::Secure;
use super::*;
use crate::deletion::{Deletion, DeletionError};

const PATH: &str = "namespaces/team/fluxionjobs/pod.a/cancel";

async fn with_job(cancels: bool) -> Server {
    let server = Server::started(cancels).await;
    server.tell([Event::Pod(Box::new(pod("team", "a")))]).await;
    server
}

#[tokio::test]
async fn a_dry_run_names_the_targets_and_changes_nothing() {
    for cancels in [true, false] {
        let server = with_job(cancels).await;
        for _ in 0..2 {
            let (status, body) = server.post(&format!("{PATH}?dryRun=All"), "{}").await;
            assert_eq!(status, StatusCode::OK, "{body}");
            assert_eq!((&body["kind"], &body["outcome"]), (&"CancelAnswer".into(), &"DryRun".into()));
            let target = &body["targets"][0];
            assert_eq!((&target["kind"], &target["resource"]), (&"Pod".into(), &"pods".into()));
            assert_eq!((&target["name"], &target["uid"]), (&"a".into(), &"uid-team-a".into()));
            assert_eq!((&body["pods"], &body["frees"]["cpu"]), (&1.into(), &"1".into()));
        }
        let (_, job) = server.get("namespaces/team/fluxionjobs/pod.a").await;
        assert_ne!(job["status"]["state"], "Cancelled");
    }
}

#[tokio::test]
async fn standalone_carries_it_out_and_a_second_one_is_told_apart() {
    let mut server = with_job(true).await;
    let (first, second) = tokio::join!(server.post(PATH, "{}"), server.post(PATH, ""));
    let outcomes = [first.1["outcome"].as_str().unwrap(), second.1["outcome"].as_str().unwrap()];
    assert!(outcomes.contains(&"Cancelled"), "{outcomes:?}");
    assert!(outcomes.iter().any(|outcome| *outcome != "Cancelled"), "{outcomes:?}");
    // Whoever carries out effects now deletes the Pod; then the job has ended.
    let mut deleted = Vec::new();
    while let Ok(effects) = server.effects.try_recv() {
        deleted.extend(effects.into_iter().filter_map(|effect| match effect {
            Effect::Delete { object, .. } => Some(object.uid),
            _ => None,
        }));
    }
    assert!(deleted.iter().any(|uid| &**uid == "uid-team-a"), "{deleted:?}");
    server.tell([Event::PodGone("uid-team-a".into())]).await;
    let (_, body) = server.post(PATH, "{}").await;
    assert_eq!((&body["outcome"], &body["targets"]), (&"AlreadyEnded".into(), &Value::Array(Vec::new())));
    let (_, job) = server.get("namespaces/team/fluxionjobs/pod.a").await;
    assert_eq!(job["status"]["state"], "Cancelled");
}

#[tokio::test]
async fn a_job_that_was_made_anew_under_the_name_is_not_the_one_that_was_meant() {
    let server = with_job(true).await;
    let meant = |uid: &str| format!(r#"{{"preconditions": {{"uid": "{uid}"}}}}"#);
    for path in [PATH.to_owned(), format!("{PATH}?dryRun=All")] {
        let (status, body) = server.post(&path, &meant("uid-of-before")).await;
        assert_eq!((status, &body["reason"]), (StatusCode::CONFLICT, &"Conflict".into()), "{body}");
        for bad in [r#"{"preconditions": {"uid": 7}}"#, r#"{"preconditions": "uid"}"#] {
            assert_eq!(server.post(&path, bad).await.0, StatusCode::BAD_REQUEST);
        }
    }
    let (_, job) = server.get("namespaces/team/fluxionjobs/pod.a").await;
    assert_ne!(job["status"]["state"], "Cancelled");
    let uid = job["metadata"]["uid"].as_str().unwrap();
    let (status, body) = server.post(PATH, &meant(uid)).await;
    assert_eq!((status, &body["outcome"]), (StatusCode::OK, &"Cancelled".into()), "{body}");
}

#[tokio::test]
async fn in_a_cluster_the_asker_is_told_how() {
    let server = with_job(false).await;
    let (status, body) = server.post(PATH, "{}").await;
    assert_eq!((status, &body["reason"]), (StatusCode::FORBIDDEN, &"Forbidden".into()));
    let message = body["message"].as_str().unwrap();
    assert!(message.contains("kubectl fluxion cancel -n team pod.a"), "{message}");
    assert!(message.contains("kubectl delete pods a -n team"), "{message}");
    let (_, job) = server.get("namespaces/team/fluxionjobs/pod.a").await;
    assert_ne!(job["status"]["state"], "Cancelled");
}

#[tokio::test]
async fn what_is_being_deleted_is_ending_already() {
    let server = with_job(true).await;
    let mut going = pod("team", "a");
    going.node = Some("n1".into());
    going.phase = Phase::Running;
    going.deleting = true;
    server.tell([Event::Pod(Box::new(going))]).await;
    let (status, body) = server.post(PATH, "{}").await;
    assert_eq!((status, &body["outcome"]), (StatusCode::OK, &"AlreadyEnding".into()), "{body}");
}

/// An API server that deletes a Pod at once, unless it has an error in store.
#[derive(Debug, Default)]
struct Deletes {
    gone: Mutex<Vec<ObjectRef>>,
    fails: Mutex<BTreeMap<String, DeletionError>>,
}

impl Deletion for Deletes {
    fn delete<'a>(&'a self, object: &'a ObjectRef) -> BoxFuture<'a, Result<(), DeletionError>> {
        let failure = self.fails.lock().unwrap().get(&*object.name).cloned();
        if failure.is_none() {
            self.gone.lock().unwrap().push(object.clone());
        }
        async move { failure.map_or(Ok(()), Err) }.boxed()
    }
}

async fn on_behalf() -> (Secure, Arc<Deletes>) {
    let deletes = Arc::new(Deletes::default());
    let secure = Secure::cancelling(Cancels::Server(Arc::<Deletes>::clone(&deletes))).await;
    secure.server.tell([Event::Pod(Box::new(pod("team", "a")))]).await;
    secure.server.tell(gang("team", "mpi", 2, 1, 600)).await;
    (secure, deletes)
}

#[tokio::test]
async fn a_user_who_may_delete_the_owner_is_served_and_remembered() {
    let (secure, deletes) = on_behalf().await;
    secure.reviewer.allow(&[
        "jane create team fluxionjobs/cancel",
        "jane get team fluxionjobs",
        "jane delete team pods",
    ]);
    let (status, body) = secure.ask("jane", Method::POST, &format!("{PATH}?dryRun=All")).await;
    assert_eq!((status, &body["outcome"]), (StatusCode::OK, &"DryRun".into()), "{body}");
    assert!(deletes.gone.lock().unwrap().is_empty(), "a dry run deletes nothing");
    let (status, body) = secure.ask("jane", Method::POST, PATH).await;
    assert_eq!((status, &body["outcome"]), (StatusCode::OK, &"Cancelled".into()), "{body}");
    assert_eq!(&*deletes.gone.lock().unwrap()[0].uid, "uid-team-a", "the precondition");
    let review = secure.reviewer.asked.lock().unwrap().iter().rev().find_map(|review| {
        let attributes = &review["spec"]["resourceAttributes"];
        (attributes["verb"] == "delete").then(|| attributes.clone())
    });
    let review = review.unwrap();
    assert_eq!((&review["resource"], &review["name"]), (&"pods".into(), &"a".into()), "{review}");
    // Until it shows, it is not done again.
    let (_, body) = secure.ask("jane", Method::POST, PATH).await;
    assert_eq!(body["outcome"], "AlreadyEnding");
    assert_eq!(deletes.gone.lock().unwrap().len(), 1);
    secure.server.tell([Event::PodGone("uid-team-a".into())]).await;
    let (_, job) = secure.ask("jane", Method::GET, "namespaces/team/fluxionjobs/pod.a").await;
    assert_eq!(job["status"]["state"], "Cancelled");
    assert_eq!(job["status"]["reason"]["text"], "cancelled by jane", "{job}");
    let history = job["status"]["history"].as_array().unwrap();
    assert_eq!(history.last().unwrap()["reason"], "cancelled by jane");
}

#[tokio::test]
async fn who_may_not_delete_each_of_the_owners_cancels_nothing() {
    let (secure, deletes) = on_behalf().await;
    secure.reviewer.allow(&[
        "jane create team fluxionjobs/cancel",
        "jane delete other pods",
        "jane get team pods",
    ]);
    for job in ["pod.a", "group.mpi"] {
        let path = format!("namespaces/team/fluxionjobs/{job}/cancel");
        let (status, body) = secure.ask("jane", Method::POST, &path).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{body}");
        let message = body["message"].as_str().unwrap();
        assert!(message.contains(r#"User "jane" cannot delete resource "pods""#), "{message}");
        assert!(message.starts_with(r#"pods ""#), "{message}");
    }
    *secure.reviewer.broken.lock().unwrap() = true;
    let (status, _) = secure.ask("ann", Method::POST, PATH).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "nobody is let through unasked");
    // Nor is the holder of the local token, whom the cluster doesn't know; nor anybody by one that does not lead.
    assert_eq!(secure.server.post(PATH, "{}").await.0, StatusCode::FORBIDDEN);
    *secure.reviewer.broken.lock().unwrap() = false;
    secure.reviewer.allow(&["joe * team *"]);
    secure.server.engine.set_role(Role::Follower);
    secure.server.tell([Event::Pod(Box::new(pod("team", "b")))]).await;
    assert_eq!(secure.ask("joe", Method::POST, PATH).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert!(deletes.gone.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_could_not_be_deleted_is_said_and_can_be_tried_again() {
    let (secure, deletes) = on_behalf().await;
    secure.reviewer.allow(&["jane * team *"]);
    let fail = |name: &str, error| drop(deletes.fails.lock().unwrap().insert(name.to_owned(), error));
    fail("a", DeletionError::Refused("pods \"a\" is forbidden".to_owned()));
    let (status, body) = secure.ask("jane", Method::POST, PATH).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let message = body["message"].as_str().unwrap();
    assert!(message.contains("pod/a: pods \"a\" is forbidden"), "{message}");
    assert!(message.contains("kubectl fluxion cancel -n team pod.a"), "{message}");
    fail("a", DeletionError::Unavailable("no response".to_owned()));
    assert_eq!(secure.ask("jane", Method::POST, PATH).await.0, StatusCode::SERVICE_UNAVAILABLE);
    secure.server.tell([Event::PodGone("uid-team-a".into())]).await;
    let (_, job) = secure.ask("jane", Method::GET, "namespaces/team/fluxionjobs/pod.a").await;
    assert!(!job.to_string().contains("jane"), "somebody else deleted it: {job}");
    // One of two goes: the user did it, and what is left can be tried again.
    let gang = "namespaces/team/fluxionjobs/group.mpi/cancel";
    fail("mpi-1", DeletionError::Unavailable("no response".to_owned()));
    assert_eq!(secure.ask("jane", Method::POST, gang).await.0, StatusCode::SERVICE_UNAVAILABLE);
    deletes.fails.lock().unwrap().clear();
    let (status, body) = secure.ask("jane", Method::POST, gang).await;
    assert_eq!((status, &body["outcome"]), (StatusCode::OK, &"Cancelled".into()), "{body}");
    secure
        .server
        .tell(["mpi-0", "mpi-1"].map(|name| Event::PodGone(format!("uid-team-{name}").into())))
        .await;
    let (_, job) = secure.ask("jane", Method::GET, "namespaces/team/fluxionjobs/group.mpi").await;
    assert_eq!(job["status"]["reason"]["text"], "cancelled by jane", "{job}");
}
