use std::path::Path;
use std::time::Instant;

use fluxion_scheduler::record::LiveJob;
use fluxion_scheduler::state::{HistoryEntry, JobState, State};
use sqlx::Connection as _;

use super::*;
use crate::engine::EngineHandle;
use crate::engine::{Engine, Role, system_clock};
use crate::health::Leadership;
use crate::health::Term;
use crate::journal::Retention;
use crate::metrics::Metrics;
use tokio::sync::watch as signal;

mod full;
mod postgres;
mod tls;

fn transition(uid: &str, number: u32) -> JournalEntry {
    let entry = HistoryEntry { time: 5, state: JobState::Pending, class: None, reason: String::new() };
    JournalEntry::Transition { uid: uid.into(), job: "a/pod.p".to_owned(), number, entry }
}

fn deletion() -> Effect {
    let object = fluxion_scheduler::model::ObjectRef {
        namespace: "a".into(),
        kind: "Pod".into(),
        api_version: "v1".into(),
        name: "p".into(),
        uid: "u".into(),
    };
    Effect::Delete { object, why: String::new() }
}

fn file(dir: &Path, cluster: &str) -> JournalPlace {
    JournalPlace::File { path: dir.join("state.db"), cluster: cluster.to_owned(), own: true, checked: false }
}

/// An inspector that records: an engine without objects, and effects that the test makes up.
struct Inspector {
    engine: EngineHandle,
    leadership: signal::Sender<Option<Leadership>>,
    remembered: Vec<Remembered>,
    recorder: Recorder,
    effects: mpsc::Sender<Vec<Effect>>,
    rest: mpsc::Receiver<Vec<Effect>>,
    metrics: Arc<Metrics>,
    _own: mpsc::Receiver<Vec<Effect>>,
}

impl Inspector {
    async fn start(mut place: JournalPlace) -> Self {
        let (settings, metrics) = (Settings::default(), Arc::new(Metrics::new()));
        let engine = Engine {
            state: State::new(settings.clone()),
            role: Role::Follower,
            clock: system_clock(),
            metrics: Arc::clone(&metrics),
        };
        let (engine, own) = engine.start().unwrap();
        let (opened, remembered) = open(&mut place, &settings).await;
        for past in remembered.clone() {
            engine.send(fluxion_scheduler::event::Event::Remembered(Box::new(past)));
        }
        engine.send(fluxion_scheduler::event::Event::Paused);
        let (leadership, follow) = signal::channel(None);
        let recording = Recording {
            place,
            retention: Retention::default(),
            engine: engine.clone(),
            leadership: follow,
            metrics: Arc::clone(&metrics),
        };
        let (effects, made) = mpsc::channel(4);
        let (recorder, rest) = record(recording, opened, made);
        Self { engine, leadership, remembered, recorder, effects, rest, metrics, _own: own }
    }

    /// Becomes the leader of a term.
    fn lead(&self, number: u64) {
        let until = tokio::time::Instant::now() + Duration::from_mins(1);
        let held = Some(Term { number, until });
        self.leadership.send_replace(Some(Leadership { held, ..Leadership::default() }));
    }

    /// Returns once they wait to be written.
    async fn say(&mut self, entries: impl IntoIterator<Item = JournalEntry>) {
        let entries = entries.into_iter().map(Effect::Journal);
        self.effects.send(entries.chain([deletion()]).collect()).await.unwrap();
        assert_eq!(self.rest.recv().await.unwrap(), [deletion()], "nobody waits for the journal");
    }

    fn problem(&self) -> Option<String> {
        self.recorder.health.problem()
    }

    async fn wait_for(&self, what: impl Fn(Option<String>) -> bool) {
        let began = Instant::now();
        while !what(self.problem()) {
            assert!(began.elapsed() < Duration::from_mins(1), "{:?}", self.problem());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until nothing waits to be written.
    async fn written(&self) {
        let began = Instant::now();
        while self.recorder.health.waiting() > 0 {
            assert!(began.elapsed() < Duration::from_mins(1), "{:?}", self.problem());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Ends it; what it let through, and whether it was well.
    async fn end(mut self) -> (Vec<Effect>, Option<String>) {
        self.engine.stop();
        drop(self.effects);
        let mut through = Vec::new();
        while let Some(batch) = self.rest.recv().await {
            through.extend(batch);
        }
        let health = self.recorder.health.clone();
        self.recorder.finish().await;
        (through, health.problem())
    }
}

fn live(remembered: &[Remembered]) -> Vec<(&str, u32, usize)> {
    let live = remembered.iter().filter_map(|one| match one {
        Remembered::Live(LiveJob { uid, next, history, .. }) => Some((&**uid, *next, history.len())),
        Remembered::Ended(_) => None,
    });
    live.collect()
}

#[tokio::test]
async fn the_past_is_there_after_a_restart_and_not_for_another_cluster() {
    let dir = tempfile::tempdir().unwrap();
    let first = Inspector::start(file(dir.path(), "https://one")).await;
    assert_eq!(first.remembered, []);
    first.effects.send(vec![Effect::Journal(transition("u", 0)), deletion()]).await.unwrap();
    first.effects.send(vec![Effect::Journal(transition("u", 1))]).await.unwrap();
    assert_eq!(first.end().await, (vec![deletion()], None));
    let again = Inspector::start(file(dir.path(), "https://one")).await;
    assert_eq!(live(&again.remembered), [("u", 2, 2)]);
    again.end().await;
    let other = Inspector::start(file(dir.path(), "https://two")).await;
    assert_eq!(other.remembered, []);
    other.end().await;
}

#[tokio::test]
async fn a_file_named_by_the_user_is_never_taken_from_another_cluster() {
    let dir = tempfile::tempdir().unwrap();
    let named = |name: &str, cluster: &str| JournalPlace::File {
        path: dir.path().join(name),
        cluster: cluster.to_owned(),
        own: false,
        checked: false,
    };
    let mut one = Inspector::start(named("named.db", "https://one")).await;
    one.say([transition("u", 0)]).await;
    one.written().await;
    one.end().await;
    let (standalone, _) = crate::journal::Journal::open(dir.path(), "standalone").await.unwrap();
    standalone.close().await.unwrap();
    for name in ["named.db", "state.db"] {
        let mut other = Inspector::start(named(name, "https://two")).await;
        assert_eq!(other.remembered, []);
        other.say([transition("v", 0)]).await;
        other
            .wait_for(|problem| {
                problem.is_some_and(|problem| problem.contains(&format!("{name} has the history of another")))
            })
            .await;
        other.end().await;
    }
    let again = Inspector::start(named("named.db", "https://one")).await;
    assert_eq!(live(&again.remembered), [("u", 1, 1)]);
    again.end().await;
    let (standalone, kept) = crate::journal::Journal::open(dir.path(), "new").await.unwrap();
    assert_eq!(kept.cluster_id, "standalone");
    standalone.close().await.unwrap();
}

#[tokio::test]
async fn without_a_journal_everything_else_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("state.db"), "no database ".repeat(100)).unwrap();
    let mut inspector = Inspector::start(file(dir.path(), "https://one")).await;
    inspector.say([transition("u", 0)]).await;
    inspector.wait_for(|problem| problem.is_some_and(|problem| problem.ends_with("(1 entry pending)"))).await;
    let problem = inspector.problem().unwrap();
    assert!(problem.starts_with("history is not recorded since 2"), "{problem}");
    assert!(problem.contains("state.db is corrupted"), "{problem}");
    inspector.end().await;
}

#[tokio::test]
async fn a_journal_that_is_there_later_has_what_waited_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("volume");
    let mut inspector = Inspector::start(file(&folder, "https://one")).await;
    inspector.say([transition("u", 0), transition("u", 1)]).await;
    inspector
        .wait_for(|problem| problem.is_some_and(|problem| problem.contains("(2 entries pending)")))
        .await;
    std::fs::create_dir(&folder).unwrap();
    inspector.wait_for(|problem| problem.is_none()).await;
    inspector.end().await;
    let again = Inspector::start(file(&folder, "https://one")).await;
    assert_eq!(live(&again.remembered), [("u", 2, 2)]);
    again.end().await;
}

#[tokio::test]
async fn a_disk_that_hangs_bounds_what_waits_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut inspector = Inspector::start(file(dir.path(), "https://one")).await;
    let url = format!("sqlite://{}", dir.path().join("state.db").display());
    let mut other = sqlx::SqliteConnection::connect(&url).await.unwrap();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();

    let half = WAITING_MAX / 2;
    for batch in 0..4 {
        inspector.say((0..half).map(|number| transition(&format!("{batch}-{number}"), 0))).await;
    }
    inspector.wait_for(|problem| problem.is_some_and(|problem| problem.contains("100000 dropped"))).await;
    let shown = inspector.metrics.encode(crate::metrics::TextFormat::Prometheus);
    assert!(shown.contains("fluxion_journal_entries_dropped_total 100000"), "{shown}");

    sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
    inspector.wait_for(|problem| problem.is_none()).await;
    inspector.end().await;
    let kept: u32 =
        sqlx::query_scalar("SELECT count(*) FROM transitions").fetch_one(&mut other).await.unwrap();
    assert_eq!(kept, 2 * half, "what fitted was written once the disk answered");
}
