use std::sync::atomic::AtomicI64;

use fluxion_scheduler::record::JournalEntry;
use fluxion_scheduler::state::JobState;
use serde_json::json;

use super::*;
use crate::kube::translate::pod;

/// An engine whose clock stands still at what the test says.
fn start(now: i64) -> (EngineHandle, mpsc::Receiver<Vec<Effect>>, Arc<AtomicI64>) {
    let time = Arc::new(AtomicI64::new(now));
    let clock = Arc::clone(&time);
    let engine = Engine {
        state: State::new(fluxion_scheduler::state::Settings::default()),
        role: Role::Standalone,
        clock: Arc::new(move || clock.load(Ordering::Relaxed)),
        metrics: Arc::new(Metrics::new()),
    };
    let (handle, effects) = engine.start().unwrap();
    (handle, effects, time)
}

pub(super) fn pod_spec(uid: &str) -> fluxion_scheduler::model::PodSpec {
    let object = json!({"metadata": {"name": uid, "namespace": "a", "uid": uid}, "spec": {"containers": []}});
    pod::translate(&serde_json::from_value(object).unwrap()).unwrap()
}

fn pod(uid: &str) -> Event {
    Event::Pod(Box::new(pod_spec(uid)))
}

#[tokio::test]
async fn a_fresh_snapshot_knows_what_was_sent_before() {
    let (engine, _effects, _) = start(1_000);
    for round in 0..50 {
        let uid = format!("p{round}");
        engine.send(pod(&uid));
        let snapshot = engine.fresh().await.unwrap();
        assert!(snapshot.state.pod(&uid).is_some(), "{uid}");
    }
    engine.stop();
}

#[tokio::test]
async fn the_sequence_starts_with_the_time_and_only_grows() {
    let (engine, _effects, _) = start(1_700_000_000_000);
    let first = engine.snapshot().sequence;
    assert_eq!(first, 1_700_000_000_000_u64 << 20);
    let mut changes = engine.changed();
    engine.send(pod("p"));
    changes.changed().await.unwrap();
    let second = *changes.borrow_and_update();
    assert!(second > first && engine.snapshot().sequence >= second);
    engine.stop();
}

#[tokio::test]
async fn an_idle_engine_says_that_nothing_has_changed() {
    let (engine, _effects, time) = start(1_000);
    let before = engine.fresh().await.unwrap();
    time.store(900_000, Ordering::Relaxed);
    let waited = Instant::now();
    while engine.snapshot().observed_at != 900 {
        assert!(waited.elapsed() < Duration::from_secs(30), "no sign of life");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(engine.snapshot().sequence, before.sequence);
    engine.stop();
}

#[tokio::test]
async fn many_changes_are_few_snapshots() {
    let (engine, _effects, _) = start(1_000);
    let first = engine.snapshot().sequence;
    let began = Instant::now();
    for round in 0..200 {
        engine.send(pod(&format!("p{round}")));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    engine.fresh().await.unwrap();
    let allowed = began.elapsed().as_millis() / PUBLISH_EVERY.as_millis() + 2;
    assert!(u128::from(engine.snapshot().sequence - first) <= allowed);
    engine.stop();
}

/// A loop that leads, with so many jobs that wait; not started.
async fn with_waiting(jobs: usize) -> (Loop, EngineHandle, mpsc::Receiver<Vec<Effect>>) {
    let engine = Engine {
        state: State::new(fluxion_scheduler::state::Settings::default()),
        role: Role::Leader,
        clock: Arc::new(|| 1_000),
        metrics: Arc::new(Metrics::new()),
    };
    let (mut run, _, handle, effects) = engine.prepare(Tracer::default());
    let pods = (0..jobs).map(|number| ours(&format!("p{number}"), 0));
    assert!(run.step(1, pods.chain([Event::Synced]).collect(), true).await);
    while run.state.unfinished() {
        assert!(run.step(1, Vec::new(), false).await);
    }
    (run, handle, effects)
}

fn ours(uid: &str, priority: i32) -> Event {
    let scheduler_name = "fluxion".into();
    Event::Pod(Box::new(fluxion_scheduler::model::PodSpec { scheduler_name, priority, ..pod_spec(uid) }))
}

/// A Pod ahead of all others: there is a pass over all jobs.
fn first() -> Event {
    ours("first", 1)
}

#[tokio::test]
async fn events_are_shown_before_the_pass_over_many_jobs() {
    let (mut run, handle, mut effects) = with_waiting(MANY_JOBS).await;
    while effects.try_recv().is_ok() {}
    let (before, passes) = (handle.snapshot().sequence, run.state.last_pass("default").passes);
    assert!(run.step(2, vec![first()], true).await);
    let shown = handle.snapshot();
    let job = |state: &State| state.job_named("a", "pod.first").map(|job| job.state);
    assert_eq!((shown.sequence, job(&shown.state)), (before + 1, Some(JobState::Pending)));
    assert_eq!(shown.state.last_pass("default").passes, passes);
    assert_eq!(job(&run.state), Some(JobState::Unsatisfiable));
    assert_eq!(run.state.last_pass("default").passes, passes + 1);
    // What was shown takes no effects from the writer, and none is written twice.
    let told = |effects: Vec<Effect>| {
        let told = effects.into_iter().filter_map(|effect| match effect {
            Effect::Journal(JournalEntry::Transition { entry, .. }) => Some(entry.state),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    assert_eq!(told(effects.try_recv().unwrap()), [JobState::Pending, JobState::Unsatisfiable]);
    assert!(effects.try_recv().is_err());
}

#[tokio::test]
async fn there_is_no_snapshot_before_a_pass_over_few_jobs() {
    let (mut run, handle, _effects) = with_waiting(0).await;
    let before = handle.snapshot().sequence;
    assert!(run.step(2, vec![first()], true).await);
    assert_eq!(handle.snapshot().sequence, before);
    assert!(run.state.job_named("a", "pod.first").is_some());
}

#[tokio::test]
async fn a_change_of_role_is_published() {
    let (engine, _effects, _) = start(1_000);
    engine.set_role(Role::Follower);
    let mut changes = engine.changed();
    changes.changed().await.unwrap();
    assert_eq!(engine.snapshot().role, Role::Follower);
    engine.stop();
}

#[tokio::test]
async fn a_stopped_engine_has_taken_what_was_sent_and_gives_no_more() {
    let (engine, mut effects, _) = start(1_000);
    engine.send(pod("p"));
    engine.stop();
    assert_eq!(effects.recv().await, None);
    assert!(engine.snapshot().state.pod("p").is_some());
    assert_eq!(engine.fresh().await.unwrap_err(), Stopped);
}

/// An engine whose clock does `then` once the flag is raised.
fn failing(then: fn() -> i64) -> (EngineHandle, mpsc::Receiver<Vec<Effect>>, Arc<AtomicI64>) {
    let flag = Arc::new(AtomicI64::new(0));
    let raised = Arc::clone(&flag);
    let engine = Engine {
        state: State::new(fluxion_scheduler::state::Settings::default()),
        role: Role::Leader,
        clock: Arc::new(move || if raised.load(Ordering::Relaxed) == 0 { 1_000 } else { then() }),
        metrics: Arc::new(Metrics::new()),
    };
    let (handle, effects) = engine.start().unwrap();
    (handle, effects, flag)
}

#[tokio::test]
async fn a_panic_of_the_loop_is_told_and_readers_keep_the_last_snapshot() {
    let (engine, _effects, flag) = failing(|| panic!("division by zero"));
    engine.send(pod("p"));
    engine.fresh().await.unwrap();
    assert_eq!(engine.failure(), None);
    flag.store(1, Ordering::Relaxed);
    engine.send(pod("q"));
    let failure = tokio::time::timeout(Duration::from_secs(30), engine.failed()).await.unwrap();
    assert_eq!(failure.to_string(), "the engine panicked: division by zero");
    assert_eq!(engine.failure(), Some(failure));
    assert_eq!(engine.fresh().await.unwrap_err(), Stopped);
    assert!(engine.snapshot().state.pod("p").is_some());
}

#[tokio::test]
async fn a_loop_that_hangs_is_silent_and_one_that_idles_is_not() {
    let (engine, _effects, flag) = failing(|| {
        loop {
            std::thread::park();
        }
    });
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(engine.pulse().silent() < Duration::from_millis(1400), "{:?}", engine.pulse().silent());
    flag.store(1, Ordering::Relaxed);
    engine.send(pod("p"));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(engine.pulse().silent() > Duration::from_millis(1900));
}

#[tokio::test]
async fn a_loop_that_was_stopped_has_not_failed() {
    let (engine, mut effects, _) = start(1_000);
    engine.stop();
    assert_eq!(effects.recv().await, None);
    tokio::time::timeout(Duration::from_millis(200), engine.failed()).await.unwrap_err();
    assert_eq!(engine.failure(), None);
}

#[tokio::test]
async fn the_sequence_of_a_leader_starts_with_its_term_and_never_goes_back() {
    let (engine, _effects, _) = start(1_000);
    let first = engine.fresh().await.unwrap();
    assert_eq!(first.since, first.sequence);
    let mut last = first.sequence;
    for (term, since) in [(5_000, 5_000 << 20), (5_000, 5_000 << 20), (9_000, 9_000 << 20)] {
        engine.lead(term);
        let snapshot = engine.fresh().await.unwrap();
        assert_eq!((snapshot.role, snapshot.since), (Role::Leader, since));
        assert!(snapshot.sequence >= since && snapshot.sequence >= last);
        last = snapshot.sequence;
        engine.set_role(Role::Follower);
        let snapshot = engine.fresh().await.unwrap();
        assert_eq!(
            (snapshot.role, snapshot.since),
            (Role::Follower, since),
            "the term goes on, if it is renewed"
        );
        last = last.max(snapshot.sequence);
    }
    // Whatever a term says, what was published before is not published again.
    engine.lead(7_000);
    let snapshot = engine.fresh().await.unwrap();
    assert!(snapshot.sequence > last && snapshot.since == snapshot.sequence);
    engine.stop();
}
