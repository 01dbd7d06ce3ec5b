use std::sync::Arc;

use fluxion_scheduler::model::Marks;
use fluxion_scheduler::record::{EndedJob, LiveJob};
use fluxion_scheduler::state::{Asked, HistoryEntry, JobKey, JobState, Members, ReasonClass};

use super::*;

fn row(uid: &str, body: &str) -> ObjectRow {
    ObjectRow {
        uid: uid.to_owned(),
        kind: "Pod".to_owned(),
        namespace: "default".to_owned(),
        name: "p".to_owned(),
        body: body.to_owned(),
    }
}

fn submission(due: i64, body: Option<&str>) -> Submission {
    let key = ("pods".to_owned(), "default".to_owned(), "p".to_owned());
    Submission { key, due, body: body.map(str::to_owned) }
}

fn transition(time: i64, state: JobState) -> HistoryEntry {
    HistoryEntry { time, state, class: Some(ReasonClass::Busy), reason: "full".to_owned() }
}

fn entry(uid: &str, number: u32, entry: HistoryEntry) -> JournalEntry {
    JournalEntry::Transition { uid: uid.into(), job: "default/pod.p".to_owned(), number, entry }
}

/// A job that has ended, as an engine hands it over.
pub(super) fn ended(uid: &str, ended_at: i64) -> EndedJob {
    EndedJob {
        key: JobKey { namespace: "default".into(), kind: "pod".into(), name: "p".into(), uid: uid.into() },
        anchor: Some(uid.into()),
        object: None,
        created: 1,
        priority: 0,
        queue: "default".into(),
        duration: Some(60),
        limit: Some(60),
        level: None,
        state: JobState::Cancelled,
        members: Members { wanted: Some(1), bound: 1, ..Members::default() },
        asked: vec![Asked { needs: Arc::new([("cpu".into(), 1000)].into_iter().collect()), count: 1 }],
        reason: None,
        exit: None,
        started_at: Some(2),
        ended_at,
        cancelled_by: Some("alice".into()),
        ran_on: [("n1".into(), vec!["p".into()])].into(),
        labels: Marks::new(),
        history: vec![transition(2, JobState::Running), transition(ended_at, JobState::Cancelled)],
    }
}

async fn write(journal: &mut Journal, history: Vec<JournalEntry>) {
    journal.write(&Batch { history, ..Batch::default() }).await.unwrap();
}

fn cancelled(uid: &str, by: Option<&str>) -> JournalEntry {
    JournalEntry::Cancelled { uid: uid.into(), job: "default/pod.p".to_owned(), by: by.map(Into::into) }
}

async fn remembered(dir: &Path) -> Vec<Remembered> {
    let (journal, kept) = Journal::open(dir, "c").await.unwrap();
    journal.close().await.unwrap();
    kept.remembered
}

#[tokio::test]
async fn the_past_of_jobs_is_kept_until_the_engine_says_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(dir.path(), "c").await.unwrap();
    let history = vec![
        entry("live", 0, transition(5, JobState::Pending)),
        entry("live", 1, transition(6, JobState::Gathering)),
        // The same place again: what stood there was fleeting.
        entry("live", 1, transition(6, JobState::Running)),
        cancelled("live", Some("alice")),
        cancelled("back", Some("alice")),
        cancelled("back", None),
        entry("back", 0, transition(6, JobState::Pending)),
        entry("done", 0, transition(5, JobState::Pending)),
        JournalEntry::Ended(Box::new(ended("done", 9))),
    ];
    write(&mut journal, history).await;
    journal.close().await.unwrap();
    let back = LiveJob {
        uid: "back".into(),
        job: "default/pod.p".to_owned(),
        next: 1,
        history: vec![transition(6, JobState::Pending)],
        cancelled_by: None,
    };
    let live = LiveJob {
        uid: "live".into(),
        job: "default/pod.p".to_owned(),
        next: 2,
        history: vec![transition(5, JobState::Pending), transition(6, JobState::Running)],
        cancelled_by: Some("alice".into()),
    };
    let want =
        [Remembered::Ended(Box::new(ended("done", 9))), Remembered::Live(back), Remembered::Live(live)];
    assert_eq!(remembered(dir.path()).await, want);

    let (mut journal, kept) = Journal::open(dir.path(), "c").await.unwrap();
    assert_eq!(kept.latest, Some(6));
    let forgotten = |uid: &str, ended_at| JournalEntry::Forgotten { uid: uid.into(), ended_at };
    write(&mut journal, vec![forgotten("live", None), forgotten("back", None), forgotten("done", Some(8))])
        .await;
    journal.close().await.unwrap();
    assert_eq!(remembered(dir.path()).await, want[..1], "another life of the same uid is kept");
    let (mut journal, _) = Journal::open(dir.path(), "c").await.unwrap();
    write(&mut journal, vec![forgotten("done", Some(9))]).await;
    journal.close().await.unwrap();
    assert_eq!(remembered(dir.path()).await, []);
}

#[tokio::test]
async fn an_end_that_was_recorded_before_is_kept_once() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(dir.path(), "c").await.unwrap();
    let end = |at| JournalEntry::Ended(Box::new(ended("u", at)));
    let retracted = |at| JournalEntry::Retracted { uid: "u".into(), ended_at: at };
    write(&mut journal, vec![end(5), end(7), retracted(7)]).await;
    // In a batch of its own, after what it retracts has been written.
    for batch in [vec![end(8)], vec![retracted(8)]] {
        let mut changes = Changes::default();
        for entry in batch {
            changes.add(entry);
        }
        journal.write_history(&changes).await.unwrap();
    }
    journal.close().await.unwrap();
    assert_eq!(remembered(dir.path()).await, [Remembered::Ended(Box::new(ended("u", 5)))]);
}

#[tokio::test]
async fn of_a_job_that_never_rests_the_first_transition_and_the_latest_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(dir.path(), "c").await.unwrap();
    let history = (0..1000).map(|number| entry("u", number, transition(number.into(), JobState::Pending)));
    write(&mut journal, history.collect()).await;
    // What can't be read is left out, and the rest is there.
    for (uid, body) in [("odd", "{}"), ("odder", "no JSON")] {
        sqlx::query("INSERT INTO ended (uid, ended_at, body) VALUES (?, 1, ?)")
            .bind(uid)
            .bind(body)
            .execute(&mut journal.connection)
            .await
            .unwrap();
    }
    journal.close().await.unwrap();
    let remembered = remembered(dir.path()).await;
    let [Remembered::Live(live)] = &remembered[..] else { panic!("{remembered:?}") };
    let times: Vec<i64> = live.history.iter().map(|entry| entry.time).collect();
    assert_eq!((times.len(), &times[..2], times[63], live.next), (64, &[0, 937][..], 999, 1000));
}

#[tokio::test]
async fn what_was_written_is_there_again_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, kept) = Journal::open(dir.path(), "first").await.unwrap();
    assert_eq!(kept, Kept { cluster_id: "first".to_owned(), ..Kept::default() });
    let batch = Batch {
        objects: vec![row("a", "1"), row("b", "1")],
        submissions: vec![submission(7, Some("{}"))],
        history: vec![
            entry("u", 0, transition(6, JobState::Pending)),
            entry("u", 1, transition(5, JobState::Running)),
        ],
        ..Batch::default()
    };
    journal.write(&batch).await.unwrap();
    let next = Batch {
        objects: vec![row("a", "2")],
        gone: vec!["b".to_owned()],
        submissions: vec![submission(7, None)],
        ..Batch::default()
    };
    journal.write(&next).await.unwrap();
    // Not closed: as after a kill, the write-ahead log is still beside the file.
    std::mem::forget(journal);
    let copy = tempfile::tempdir().unwrap();
    for file in ["state.db", "state.db-wal"] {
        std::fs::copy(dir.path().join(file), copy.path().join(file)).unwrap();
    }
    let (journal, kept) = Journal::open(copy.path(), "second").await.unwrap();
    assert_eq!(kept.cluster_id, "first");
    assert_eq!(kept.objects, [row("a", "2")]);
    assert_eq!(kept.latest, Some(6));
    assert_eq!(kept.submissions, [submission(7, None)]);
    assert_eq!(kept.remembered.len(), 1);
    journal.close().await.unwrap();
}

#[tokio::test]
async fn other_files_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    std::fs::write(&path, "this is no database, and longer than a header of one hundred bytes ".repeat(40))
        .unwrap();
    let error = Journal::open(dir.path(), "c").await.unwrap_err();
    assert!(matches!(error, JournalError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("state.db") && error.to_string().contains("--state-dir"), "{error}");

    std::fs::remove_file(&path).unwrap();
    let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut other = options.connect().await.unwrap();
    sqlx::query("CREATE TABLE bookmarks (url TEXT)").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    let error = Journal::open(dir.path(), "c").await.unwrap_err();
    assert!(matches!(error, JournalError::Foreign { .. }), "{error:?}");
}

#[tokio::test]
async fn a_torn_file_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(dir.path(), "c").await.unwrap();
    let objects = (0..500).map(|number| row(&format!("uid-{number}"), &"x".repeat(300))).collect();
    journal.write(&Batch { objects, ..Batch::default() }).await.unwrap();
    journal.close().await.unwrap();
    let path = dir.path().join("state.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 8192].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let error = Journal::open(dir.path(), "c").await.unwrap_err();
    assert!(matches!(error, JournalError::Damaged { .. }), "{error:?}");
}

#[tokio::test]
async fn a_newer_version_s_file_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(dir.path(), "c").await.unwrap();
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9999, 'later', 1, x'00', 0)",
    )
    .execute(&mut journal.connection)
    .await
    .unwrap();
    journal.close().await.unwrap();
    let error = Journal::open(dir.path(), "c").await.unwrap_err();
    assert!(matches!(error, JournalError::OtherVersion { .. }), "{error:?}");
}

#[test]
fn the_mark_in_the_pragma_is_the_constant() {
    assert_eq!(APPLICATION_ID, 1_718_383_992);
}

/// A row as large as a Pod with its conditions.
fn large(uid: usize, filler: char) -> ObjectRow {
    row(&format!("uid-{uid:06}"), &format!("{{\"x\":\"{}\"}}", filler.to_string().repeat(1500)))
}

#[tokio::test]
async fn the_log_is_folded_in_and_a_row_takes_little_more_than_its_bytes() {
    const ROWS: usize = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(dir.path(), "c").await.unwrap();
    let size = |file: &str| std::fs::metadata(dir.path().join(file)).unwrap().len();
    // Everything at once, then a little at a time.
    let all = Batch { objects: (0..ROWS).map(|uid| large(uid, 'a')).collect(), ..Batch::default() };
    journal.write(&all).await.unwrap();
    for uid in 0..300 {
        let one = Batch { objects: vec![large(uid, 'b')], ..Batch::default() };
        journal.write(&one).await.unwrap();
    }
    assert!(size("state.db-wal") <= 16 << 20, "the log has {} bytes", size("state.db-wal"));
    let each = size("state.db") / ROWS as u64;
    assert!((1500..2500).contains(&each), "{each} bytes a row");
    journal.close().await.unwrap();
}

#[tokio::test]
async fn a_file_of_the_form_before_is_read_and_keeps_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::new().filename(dir.path().join("state.db")).create_if_missing(true);
    let mut before = options.connect().await.unwrap();
    let first = migrations().iter().filter(|migration| migration.version == 1).cloned().collect();
    sqlx::migrate::Migrator::with_migrations(first).run(&mut before).await.unwrap();
    for statement in [
        "PRAGMA application_id = 1718383992",
        "INSERT INTO facts VALUES ('cluster-id', 'old')",
        "INSERT INTO objects VALUES ('a', 'Pod', 'default', 'p', '1')",
    ] {
        sqlx::raw_sql(statement).execute(&mut before).await.unwrap();
    }
    before.close().await.unwrap();
    let (mut journal, kept) = Journal::open(dir.path(), "new").await.unwrap();
    assert_eq!((kept.cluster_id.as_str(), kept.objects), ("old", vec![row("a", "1")]));
    let next = Batch { objects: vec![row("a", "2")], ..Batch::default() };
    journal.write(&next).await.unwrap();
    journal.close().await.unwrap();
    let (_, kept) = Journal::open(dir.path(), "new").await.unwrap();
    assert_eq!(kept.objects, [row("a", "2")]);
}
