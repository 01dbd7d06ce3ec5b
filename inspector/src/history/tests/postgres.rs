//! History in a real `PostgreSQL` server.

use fluxion_scheduler::job::{JobKey, Members};
use fluxion_scheduler::record::EndedJob;
use fluxion_tests::postgres::PostgresServer;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgConnection};

use super::*;

pub(super) fn place_at(url: &str, cluster: &str) -> JournalPlace {
    let Ok(Location::Server(options)) = Location::parse(&url.into()) else { panic!("a server") };
    JournalPlace::Server { options, cluster: ClusterUid::Known(cluster.to_owned()) }
}

fn place(server: &PostgresServer, cluster: &str) -> JournalPlace {
    place_at(&server.url(), cluster)
}

pub(super) async fn connect(server: &PostgresServer) -> PgConnection {
    let options: PgConnectOptions = server.url().parse().unwrap();
    options.connect().await.unwrap()
}

pub(super) async fn count(connection: &mut PgConnection, what: &'static str) -> i64 {
    sqlx::query_scalar(what).fetch_one(connection).await.unwrap()
}

fn ended(uid: &str, ended_at: i64, by: Option<&str>) -> JournalEntry {
    let key = JobKey { namespace: "a".into(), kind: "pod".into(), name: uid.into(), uid: uid.into() };
    JournalEntry::Ended(Box::new(EndedJob {
        key,
        anchor: None,
        object: None,
        created: ended_at - 9,
        priority: 0,
        queue: "default".into(),
        duration: None,
        limit: None,
        level: None,
        state: if by.is_some() { JobState::Cancelled } else { JobState::Completed },
        members: Members::default(),
        asked: Vec::new(),
        reason: None,
        exit: None,
        started_at: Some(ended_at - 5),
        ended_at,
        cancelled_by: by.map(Into::into),
        ran_on: std::collections::BTreeMap::new(),
        labels: fluxion_scheduler::model::Marks::new(),
        history: Vec::new(),
    }))
}

#[tokio::test]
async fn only_the_leader_writes_and_its_successor_knows_what_it_wrote() {
    let server = PostgresServer::start().unwrap();
    let mut first = Inspector::start(place(&server, "one")).await;
    let mut second = Inspector::start(place(&server, "one")).await;
    let other = Inspector::start(place(&server, "two")).await;
    let now = jiff::Timestamp::now().as_second();
    first.lead(1_000);
    second.say([transition("a follower's", 0)]).await;
    first.written().await;
    // What comes before it is known that we lead is in the engine, from which it is taken.
    tokio::time::sleep(Duration::from_millis(500)).await;
    first.say([transition("running", 0), transition("running", 1), transition("done", 0)]).await;
    first.say([ended("done", now - 60, Some("alice")), ended("old", now - 7_200, None)]).await;
    first.written().await;
    second.written().await;

    // The first one is replaced without noticing.
    second.lead(2_000);
    let took_over = Instant::now();
    let done = loop {
        let snapshot = second.engine.fresh().await.unwrap();
        if let Some(done) = snapshot.state.job_named("a", "pod.done").cloned() {
            break done;
        }
        assert!(took_over.elapsed() < Duration::from_mins(1));
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!((done.state, done.cancelled_by.as_deref()), (JobState::Cancelled, Some("alice")));
    assert!(second.engine.snapshot().state.job_named("a", "pod.old").is_none(), "it is no longer shown");
    first.say([transition("running", 7)]).await;
    second.say([transition("running", 2)]).await;
    second.written().await;
    first.written().await;
    for inspector in [first, second, other] {
        let (_, problem) = inspector.end().await;
        assert_eq!(problem, None);
    }
    let mut connection = connect(&server).await;
    let numbers: Vec<i32> = sqlx::query_scalar("SELECT number FROM fluxion_transitions ORDER BY number")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert_eq!(numbers, [0, 1, 2], "a leader that was replaced writes nothing");
    assert_eq!(count(&mut connection, "SELECT count(*) FROM fluxion_ended WHERE cluster = 'one'").await, 2);
    let told: (String, String, f64) = sqlx::query_as(
        "SELECT state, cancelled_by, extract(epoch FROM ended_at - started_at)::float8 FROM fluxion_ended \
         WHERE job = 'pod.done'",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert_eq!(told, ("Cancelled".to_owned(), "alice".to_owned(), 5.0));

    let again = Inspector::start(place(&server, "one")).await;
    assert_eq!(live(&again.remembered), [("running", 3, 3)]);
    assert_eq!(again.remembered.len(), 2, "what ended two hours ago is kept, not shown");
    again.end().await;
    let other = Inspector::start(place(&server, "two")).await;
    assert_eq!(other.remembered, []);
    other.end().await;
}

#[tokio::test]
async fn a_database_killed_under_load_stops_nothing_and_nothing_is_missing_in_the_end() {
    const JOBS: u32 = 5_000;
    let mut server = PostgresServer::start().unwrap();
    let mut inspector = Inspector::start(place(&server, "one")).await;
    inspector.lead(1_000);
    inspector.say([transition("first", 0)]).await;
    inspector.written().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    for number in 0..JOBS {
        let sent = Instant::now();
        inspector.say((0..4).map(|entry| transition(&format!("u{number}"), entry))).await;
        assert!(sent.elapsed() < Duration::from_secs(5), "nobody waits for the database");
        match number {
            1_000 => server.kill(),
            2_000 => inspector.wait_for(|problem| problem.is_some()).await,
            3_000 => server.run().unwrap(),
            _ => {}
        }
    }
    inspector.wait_for(|problem| problem.is_none()).await;
    inspector.written().await;
    assert_eq!(inspector.recorder.health.dropped(), 0);
    inspector.end().await;
    let mut connection = connect(&server).await;
    let all = "SELECT count(*) FROM fluxion_transitions WHERE uid LIKE 'u%'";
    assert_eq!(count(&mut connection, all).await, i64::from(JOBS) * 4);
}

#[tokio::test]
async fn a_database_that_can_not_be_reached_is_said_without_its_password() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("postgres://fluxion:s3cret@127.0.0.1:{port}/history");
    let inspector = Inspector::start(place_at(&url, "one")).await;
    assert_eq!(inspector.problem(), None, "only the leader would write");
    inspector.lead(1_000);
    inspector.wait_for(|problem| problem.is_some()).await;
    let problem = inspector.problem().unwrap();
    assert!(problem.contains(&format!("postgres://fluxion@127.0.0.1:{port}/history: ")), "{problem}");
    assert!(!problem.contains("s3cret"), "{problem}");
    inspector.end().await;
}

#[tokio::test]
async fn the_oldest_finished_jobs_go_by_age_and_then_by_size() {
    let server = PostgresServer::start().unwrap();
    let now = jiff::Timestamp::now().as_second();
    let dir = tempfile::tempdir().unwrap();
    let mut changes = crate::journal::Changes::default();
    for age in 1..=100 {
        changes.add(ended(&format!("u{age}"), now - age, None));
    }
    let bytes = serde_json::to_string(&changes.ended.values().next().unwrap()).unwrap().len() as u64;
    let by_age = Retention { max_age: 50, ..Retention::default() };
    let by_size = Retention { max_size: bytes * 20, ..Retention::default() };
    for mut place in [place(&server, "one"), file(dir.path(), "one")] {
        let mut store = place.open().await.unwrap();
        store.write(&place, &changes, 1).await.unwrap();
        assert_eq!(store.prune(&place, by_age, now).await.unwrap(), 51);
        assert_eq!(store.read(&place, 0, 1_000).await.unwrap().len(), 49);
        assert!((29..32).contains(&store.prune(&place, by_size, now).await.unwrap()));
        let kept = store.read(&place, 0, 1_000).await.unwrap();
        let Some(Remembered::Ended(last)) = kept.last() else { panic!("{kept:?}") };
        assert_eq!(last.ended_at, now - 1, "the newest ones are kept");
        assert_eq!(store.read(&place, now - 10, 1_000).await.unwrap().len(), 9);
        assert_eq!(store.read(&place, 0, 3).await.unwrap().len(), 3);
        store.close(&place).await.unwrap();
    }
}

#[tokio::test]
async fn an_end_that_was_recorded_before_is_retracted() {
    let server = PostgresServer::start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let retracted = JournalEntry::Retracted { uid: "u".into(), ended_at: 7 };
    let batches = [vec![ended("u", 5, None), ended("u", 7, None), ended("v", 7, None)], vec![retracted]];
    for mut place in [place(&server, "one"), file(dir.path(), "one")] {
        let mut store = place.open().await.unwrap();
        for batch in &batches {
            let mut changes = crate::journal::Changes::default();
            for entry in batch {
                changes.add(entry.clone());
            }
            store.write(&place, &changes, 1).await.unwrap();
        }
        let kept = store.read(&place, 0, 10).await.unwrap();
        let kept: Vec<_> = kept.iter().map(Remembered::id).collect();
        assert_eq!(kept, [("u".into(), Some(5)), ("v".into(), Some(7))]);
        store.close(&place).await.unwrap();
    }
}

#[tokio::test]
async fn entries_that_the_database_rejects_do_not_hold_up_others() {
    let server = PostgresServer::start().unwrap();
    let mut inspector = Inspector::start(place(&server, "one")).await;
    inspector.lead(1_000);
    inspector.say([transition("first", 0)]).await;
    inspector.written().await;
    let mut connection = connect(&server).await;
    sqlx::query("ALTER TABLE fluxion_transitions ADD CONSTRAINT no_bad CHECK (uid <> 'bad')")
        .execute(&mut connection)
        .await
        .unwrap();
    inspector.say([transition("bad", 0)]).await;
    inspector
        .wait_for(|problem| {
            problem.is_some_and(|problem| problem.contains("rejected") || problem.contains("no_bad"))
        })
        .await;
    inspector.say([transition("good\0", 0)]).await;
    inspector.wait_for(|problem| problem.is_none()).await;
    inspector.written().await;
    inspector.end().await;
    let good = "SELECT count(*) FROM fluxion_transitions WHERE uid LIKE 'good%'";
    assert_eq!(count(&mut connection, good).await, 1);
}
