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

fn entry(time: i64, state: &'static str) -> JournalEntry {
    JournalEntry { time, job: "default/pod.p".to_owned(), uid: "u".into(), state, reason: String::new() }
}

#[tokio::test]
async fn what_was_written_is_there_again_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, kept) = Journal::open(dir.path(), "first").await.unwrap();
    assert_eq!(kept, Kept { cluster_id: "first".to_owned(), ..Kept::default() });
    let batch = Batch {
        objects: vec![row("a", "1"), row("b", "1")],
        submissions: vec![submission(7, Some("{}"))],
        history: vec![entry(5, "Pending"), entry(6, "Running")],
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
    let (mut journal, kept) = Journal::open(copy.path(), "second").await.unwrap();
    assert_eq!(kept.cluster_id, "first");
    assert_eq!(kept.objects, [row("a", "2")]);
    assert_eq!(kept.latest, Some(6));
    assert_eq!(kept.submissions, [submission(7, None)]);
    let history = journal.history("u").await.unwrap();
    assert_eq!(history, [(5, "Pending".to_owned(), String::new()), (6, "Running".to_owned(), String::new())]);
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
