//! Cancelling through the API.

use super::*;

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
