//! The journal: a `SQLite` file with the objects of standalone mode and the history of jobs; or a database with the history
//! of jobs of clusters (`postgres`).
//!
//! Related changes are written in one transaction, so the file is consistent if the process is killed at any moment.
//! Only knows rows and text; `standalone` interprets the objects.

use std::path::{Path, PathBuf};

use fluxion_scheduler::record::{JournalEntry, Remembered};
use futures::future::BoxFuture;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, Row as _, SqlSafeStr as _, SqliteConnection};

/// Identifies our files (`PRAGMA application_id`): "flux".
const APPLICATION_ID: i64 = 0x666c_7578;

mod changes;
mod past;
mod postgres;
mod retention;

pub use changes::Changes;
pub use postgres::{Postgres, PostgresError};
pub use retention::Retention;

/// Size to which the write-ahead log is truncated after a checkpoint, in bytes. `SQLite` checkpoints when it has 1000
/// pages at the end of a transaction; without this, the file would never shrink.
const LOG_KEPT: u32 = 8 << 20;

/// The versions of the file's format, in order.
///
/// `sqlx::migrate!` does the same, but its macro builds `SQLite` a second time, for the compiler.
fn migrations() -> Migrator {
    let files = [
        (1, "state", include_str!("../migrations/0001_state.sql")),
        (2, "past", include_str!("../migrations/0002_past.sql")),
        (3, "objects", include_str!("../migrations/0003_objects.sql")),
        (4, "retention", include_str!("../migrations/0004_retention.sql")),
    ];
    let migration = |(version, description, statements): (i64, &'static str, &'static str)| {
        Migration::new(version, description.into(), MigrationType::Simple, statements.into_sql_str(), false)
    };
    Migrator::with_migrations(files.map(migration).to_vec())
}

/// Boxed, as the compiler can't tell otherwise that this can be sent to other threads.
fn migrate(connection: &mut SqliteConnection) -> BoxFuture<'_, Result<(), MigrateError>> {
    Box::pin(async move { migrations().run_direct(None, connection, false).await })
}

/// Why the journal can't be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("{} was created by another program: choose another --state-dir", path.display())]
    Foreign { path: PathBuf },
    #[error("{} is corrupted ({problem}): move it away to start over, or choose another --state-dir", path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error(
        "{} was written by another version of fluxion-inspector ({problem}): use that version, or another --state-dir",
        path.display()
    )]
    OtherVersion { path: PathBuf, problem: String },
    #[error("{} has the history of another cluster, or is of standalone mode: move it away, or choose another file", path.display())]
    OtherCluster { path: PathBuf },
    #[error("{}: {source}", path.display())]
    Sql { path: PathBuf, source: sqlx::Error },
}

/// A submitted manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Resource, namespace, name.
    pub key: (String, String, String),
    /// When it is submitted.
    pub due: i64,
    /// The manifest (JSON), until then.
    pub body: Option<String>,
}

/// A stored object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRow {
    pub uid: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub body: String,
}

/// Changes that are written together.
#[derive(Debug, Default)]
pub struct Batch {
    pub objects: Vec<ObjectRow>,
    /// UIDs.
    pub gone: Vec<String>,
    pub submissions: Vec<Submission>,
    pub history: Vec<JournalEntry>,
}

impl Batch {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
            && self.gone.is_empty()
            && self.submissions.is_empty()
            && self.history.is_empty()
    }
}

/// The content of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Generated when the file was created.
    pub cluster_id: String,
    pub objects: Vec<ObjectRow>,
    pub submissions: Vec<Submission>,
    /// The stored history of jobs.
    pub remembered: Vec<Remembered>,
    /// Time of the last transition (epoch seconds).
    pub latest: Option<i64>,
}

/// The open file.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    connection: SqliteConnection,
}

impl Journal {
    /// Opens `state.db` in a directory, or creates it with this cluster ID.
    pub async fn open(dir: &Path, new_cluster_id: &str) -> Result<(Self, Kept), JournalError> {
        let mut journal = Self::connect(dir.join("state.db"), true).await?;
        let kept = journal.read(new_cluster_id).await.map_err(|error| explain(&journal.path, error))?;
        Ok((journal, kept))
    }

    /// Opens a file that only has the history of this cluster, or creates it. A file of another cluster is only taken over,
    /// and its history deleted, if it is ours (`own`), and not one that the user has named. With `check`, it is also read
    /// whole to see whether it is intact.
    pub async fn open_history(
        path: PathBuf,
        cluster: &str,
        own: bool,
        check: bool,
    ) -> Result<Self, JournalError> {
        let mut journal = Self::connect(path, check).await?;
        let known = cluster_id(&mut journal.connection, cluster).await;
        if known.map_err(|error| explain(&journal.path, error))? != cluster {
            if !own {
                return Err(JournalError::OtherCluster { path: journal.path });
            }
            journal.begin_anew(cluster).await?;
        }
        Ok(journal)
    }

    async fn connect(path: PathBuf, check: bool) -> Result<Self, JournalError> {
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .pragma("journal_size_limit", LOG_KEPT.to_string())
            .disable_statement_logging();
        let connection = options.connect().await.map_err(|error| explain(&path, error))?;
        let mut journal = Self { path, connection };
        journal.check(check).await?;
        Ok(journal)
    }

    /// Checks that the file is ours, intact, and of this version.
    async fn check(&mut self, whole: bool) -> Result<(), JournalError> {
        let path = self.path.clone();
        let failed = |error| explain(&path, error);
        let connection = &mut self.connection;
        let id: i64 =
            sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut *connection).await.map_err(failed)?;
        let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema")
            .fetch_one(&mut *connection)
            .await
            .map_err(failed)?;
        if id != APPLICATION_ID && (id != 0 || tables > 0) {
            return Err(JournalError::Foreign { path });
        }
        if whole {
            let found: String = sqlx::query_scalar("PRAGMA quick_check(1)")
                .fetch_one(&mut *connection)
                .await
                .map_err(failed)?;
            if found != "ok" {
                return Err(JournalError::Damaged { path, problem: found });
            }
        }
        if let Err(error) = migrate(connection).await {
            return Err(JournalError::OtherVersion { path, problem: error.to_string() });
        }
        if id != APPLICATION_ID {
            // The number in the text is APPLICATION_ID; a pragma takes no parameter.
            sqlx::query("PRAGMA application_id = 1718383992").execute(connection).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn read(&mut self, new_cluster_id: &str) -> sqlx::Result<Kept> {
        let connection = &mut self.connection;
        let cluster_id = cluster_id(connection, new_cluster_id).await?;
        let objects = sqlx::query("SELECT uid, kind, namespace, name, body FROM objects ORDER BY uid")
            .try_map(|row: sqlx::sqlite::SqliteRow| {
                Ok(ObjectRow {
                    uid: row.try_get(0)?,
                    kind: row.try_get(1)?,
                    namespace: row.try_get(2)?,
                    name: row.try_get(3)?,
                    body: row.try_get(4)?,
                })
            })
            .fetch_all(&mut *connection)
            .await?;
        let submissions =
            sqlx::query("SELECT resource, namespace, name, due, body FROM submissions ORDER BY due, resource, namespace, name")
                .try_map(|row: sqlx::sqlite::SqliteRow| {
                    Ok(Submission {
                        key: (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?),
                        due: row.try_get(3)?,
                        body: row.try_get(4)?,
                    })
                })
                .fetch_all(&mut *connection)
                .await?;
        let latest = past::latest(connection).await?;
        let remembered = past::read(connection, i64::MIN, usize::MAX).await?;
        Ok(Kept { cluster_id, objects, submissions, remembered, latest })
    }

    /// Writes everything or nothing.
    pub async fn write(&mut self, batch: &Batch) -> Result<(), JournalError> {
        if batch.is_empty() {
            return Ok(());
        }
        transaction(&mut self.connection, batch).await.map_err(|error| explain(&self.path, error))
    }

    /// The transitions of jobs that have not finished, and the latest finished jobs: at most `most` that ended after
    /// `since` (epoch seconds), oldest first.
    pub async fn read_history(&mut self, since: i64, most: usize) -> Result<Vec<Remembered>, JournalError> {
        let read = past::read(&mut self.connection, since, most).await;
        read.map_err(|error| explain(&self.path, error))
    }

    /// Changes the history: everything or nothing.
    pub async fn write_history(&mut self, changes: &Changes) -> Result<(), JournalError> {
        let written = apply(&mut self.connection, changes);
        written.await.map_err(|error| explain(&self.path, error))
    }

    /// Deletes finished jobs whose retention is over at `now` (epoch seconds). Returns their number.
    pub async fn prune(&mut self, retention: Retention, now: i64) -> Result<u64, JournalError> {
        let pruned = past::prune(&mut self.connection, retention, now).await;
        pruned.map_err(|error| explain(&self.path, error))
    }

    /// Deletes the history and assigns the file to another cluster.
    async fn begin_anew(&mut self, cluster_id: &str) -> Result<(), JournalError> {
        let renamed = rename(&mut self.connection, cluster_id);
        renamed.await.map_err(|error| explain(&self.path, error))
    }

    /// Checkpoints the write-ahead log and closes the file.
    pub async fn close(self) -> Result<(), JournalError> {
        let path = self.path;
        self.connection.close().await.map_err(|error| explain(&path, error))
    }
}

/// The ID stored in the file; if there is none, this one is stored.
async fn cluster_id(connection: &mut SqliteConnection, new: &str) -> sqlx::Result<String> {
    sqlx::query("INSERT INTO facts (key, value) VALUES ('cluster-id', ?) ON CONFLICT DO NOTHING")
        .bind(new)
        .execute(&mut *connection)
        .await?;
    sqlx::query_scalar("SELECT value FROM facts WHERE key = 'cluster-id'").fetch_one(connection).await
}

async fn rename(connection: &mut SqliteConnection, cluster_id: &str) -> sqlx::Result<()> {
    past::clear(connection).await?;
    sqlx::query("UPDATE facts SET value = ? WHERE key = 'cluster-id'")
        .bind(cluster_id)
        .execute(connection)
        .await?;
    Ok(())
}

async fn apply(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    let mut transaction = connection.begin().await?;
    past::apply(&mut transaction, changes).await?;
    transaction.commit().await
}

async fn transaction(connection: &mut SqliteConnection, batch: &Batch) -> sqlx::Result<()> {
    let mut transaction = connection.begin().await?;
    for row in &batch.objects {
        sqlx::query(
            "INSERT INTO objects (uid, kind, namespace, name, body) VALUES (?, ?, ?, ?, ?) \
             ON CONFLICT (uid) DO UPDATE SET body = excluded.body",
        )
        .bind(&row.uid)
        .bind(&row.kind)
        .bind(&row.namespace)
        .bind(&row.name)
        .bind(&row.body)
        .execute(&mut *transaction)
        .await?;
    }
    for uid in &batch.gone {
        sqlx::query("DELETE FROM objects WHERE uid = ?").bind(uid).execute(&mut *transaction).await?;
    }
    for submission in &batch.submissions {
        let (resource, namespace, name) = &submission.key;
        sqlx::query(
            "INSERT INTO submissions (resource, namespace, name, due, body) VALUES (?, ?, ?, ?, ?) \
             ON CONFLICT DO UPDATE SET due = excluded.due, body = excluded.body",
        )
        .bind(resource)
        .bind(namespace)
        .bind(name)
        .bind(submission.due)
        .bind(&submission.body)
        .execute(&mut *transaction)
        .await?;
    }
    past::write(&mut transaction, &batch.history).await?;
    transaction.commit().await
}

/// The `SQLite` error as a message that says what to do.
fn explain(path: &Path, error: sqlx::Error) -> JournalError {
    /// `SQLITE_CORRUPT` and `SQLITE_NOTADB`.
    const DAMAGED: [&str; 2] = ["11", "26"];
    let path = path.to_owned();
    match &error {
        sqlx::Error::Database(database)
            if database.code().is_some_and(|code| DAMAGED.contains(&code.as_ref())) =>
        {
            JournalError::Damaged { path, problem: database.message().to_owned() }
        }
        sqlx::Error::ColumnDecode { .. } => JournalError::Damaged { path, problem: error.to_string() },
        _ => JournalError::Sql { path, source: error },
    }
}

#[cfg(test)]
mod tests;
