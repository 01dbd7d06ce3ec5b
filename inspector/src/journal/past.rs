//! Job history in the journal: transitions of active jobs, and finished jobs with all details.
//!
//! In standalone mode, the engine decides what can be deleted; in a cluster, finished jobs are kept longer than it shows
//! them ([`Retention`]). Unreadable entries are skipped, because no decision depends on them.

use std::collections::BTreeMap;

use fluxion_scheduler::model::SharedStr;
use fluxion_scheduler::record::{EndedJob, JournalEntry, LiveJob, Remembered};
use fluxion_scheduler::state::HistoryEntry;
use futures::TryStreamExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::{Row as _, SqliteConnection};

use super::{Changes, Retention};

/// Maximum number of transitions kept per job: the first one and the latest.
pub(super) const TRANSITIONS_MAX: u32 = 64;

/// Writes entries in order.
pub(super) async fn write(connection: &mut SqliteConnection, entries: &[JournalEntry]) -> sqlx::Result<()> {
    for entry in entries {
        match entry {
            JournalEntry::Transition { uid, job, number, entry } => {
                add(connection, uid, job, *number, entry).await?;
                note_time(connection, entry.time).await?;
            }
            JournalEntry::Cancelled { uid, by: None, .. } => forget_cancel(connection, uid).await?,
            JournalEntry::Cancelled { uid, by: Some(by), .. } => note_cancel(connection, uid, by).await?,
            JournalEntry::Ended(job) => {
                forget_live(connection, &job.key.uid).await?;
                note_end(connection, job).await?;
            }
            JournalEntry::Forgotten { uid, ended_at: None } => forget_live(connection, uid).await?,
            JournalEntry::Forgotten { uid, ended_at: Some(at) }
            | JournalEntry::Retracted { uid, ended_at: at } => forget_end(connection, uid, *at).await?,
        }
    }
    Ok(())
}

/// Writes combined entries.
pub(super) async fn apply(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    for uid in &changes.forgotten {
        forget_live(connection, uid).await?;
    }
    for ((uid, number), (job, entry)) in &changes.transitions {
        add(connection, uid, job, *number, entry).await?;
    }
    for (uid, by) in &changes.cancels {
        match by {
            Some(by) => note_cancel(connection, uid, by).await?,
            None => forget_cancel(connection, uid).await?,
        }
    }
    for (uid, ended_at) in &changes.retracted {
        forget_end(connection, uid, *ended_at).await?;
    }
    for job in changes.ended.values() {
        note_end(connection, job).await?;
    }
    Ok(())
}

async fn note_cancel(connection: &mut SqliteConnection, uid: &str, by: &str) -> sqlx::Result<()> {
    sqlx::query("INSERT OR REPLACE INTO cancels (uid, name) VALUES (?, ?)")
        .bind(uid)
        .bind(by)
        .execute(connection)
        .await?;
    Ok(())
}

async fn note_end(connection: &mut SqliteConnection, job: &EndedJob) -> sqlx::Result<()> {
    sqlx::query("INSERT OR REPLACE INTO ended (uid, ended_at, body) VALUES (?, ?, ?)")
        .bind(&*job.key.uid)
        .bind(job.ended_at)
        .bind(body(job)?)
        .execute(connection)
        .await?;
    Ok(())
}

async fn forget_end(connection: &mut SqliteConnection, uid: &str, ended_at: i64) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM ended WHERE uid = ? AND ended_at = ?")
        .bind(uid)
        .bind(ended_at)
        .execute(connection)
        .await?;
    Ok(())
}

async fn add(
    connection: &mut SqliteConnection,
    uid: &str,
    job: &str,
    number: u32,
    entry: &HistoryEntry,
) -> sqlx::Result<()> {
    sqlx::query("INSERT OR REPLACE INTO transitions (uid, number, job, body) VALUES (?, ?, ?, ?)")
        .bind(uid)
        .bind(number)
        .bind(job)
        .bind(body(entry)?)
        .execute(&mut *connection)
        .await?;
    if number >= TRANSITIONS_MAX {
        sqlx::query("DELETE FROM transitions WHERE uid = ? AND number > 0 AND number <= ?")
            .bind(uid)
            .bind(number + 1 - TRANSITIONS_MAX)
            .execute(connection)
            .await?;
    }
    Ok(())
}

/// A virtual clock that was ahead of the system clock continues from the last recorded time.
async fn note_time(connection: &mut SqliteConnection, time: i64) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO facts (key, value) VALUES ('latest', ?) \
         ON CONFLICT (key) DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER))",
    )
    .bind(time.to_string())
    .execute(connection)
    .await?;
    Ok(())
}

async fn forget_live(connection: &mut SqliteConnection, uid: &str) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM transitions WHERE uid = ?").bind(uid).execute(&mut *connection).await?;
    forget_cancel(connection, uid).await
}

async fn forget_cancel(connection: &mut SqliteConnection, uid: &str) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM cancels WHERE uid = ?").bind(uid).execute(connection).await?;
    Ok(())
}

/// The time of the last recorded transition (epoch seconds).
pub(super) async fn latest(connection: &mut SqliteConnection) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar("SELECT CAST(value AS INTEGER) FROM facts WHERE key = 'latest'")
        .fetch_optional(connection)
        .await
}

/// Finished jobs by end time, at most `most` that ended after `since`; then all transitions of the others, by UID.
pub(super) async fn read(
    connection: &mut SqliteConnection,
    since: i64,
    most: usize,
) -> sqlx::Result<Vec<Remembered>> {
    let mut found = Vec::new();
    let latest = sqlx::query_scalar(
        "SELECT body FROM ended WHERE ended_at > ? ORDER BY ended_at DESC, uid DESC LIMIT ?",
    );
    let latest = latest.bind(since).bind(i64::try_from(most).unwrap_or(i64::MAX));
    let mut rows = latest.fetch(&mut *connection);
    while let Some(row) = rows.try_next().await? {
        let row: String = row;
        found.extend(parse::<EndedJob>(&row).map(|job| Remembered::Ended(Box::new(job))));
    }
    drop(rows);
    found.reverse();
    let mut cancels: BTreeMap<String, SharedStr> = BTreeMap::new();
    for row in sqlx::query("SELECT uid, name FROM cancels").fetch_all(&mut *connection).await? {
        cancels.insert(row.try_get(0)?, row.try_get::<&str, _>(1)?.into());
    }
    let mut live: BTreeMap<String, LiveJob> = BTreeMap::new();
    let rows = sqlx::query("SELECT uid, number, job, body FROM transitions ORDER BY uid, number");
    for row in rows.fetch_all(connection).await? {
        let Some(entry) = parse::<HistoryEntry>(row.try_get(3)?) else { continue };
        let uid: String = row.try_get(0)?;
        let job = live.entry(uid.clone()).or_insert_with(|| LiveJob {
            uid: uid.as_str().into(),
            cancelled_by: cancels.get(&uid).cloned(),
            ..LiveJob::default()
        });
        job.job = row.try_get(2)?;
        job.next = row.try_get::<u32, _>(1)?.saturating_add(1);
        job.history.push(entry);
    }
    found.extend(live.into_values().map(Remembered::Live));
    Ok(found)
}

/// Deletes finished jobs that are too old, and then the oldest ones of too many bytes. Returns their number.
pub(super) async fn prune(
    connection: &mut SqliteConnection,
    retention: Retention,
    now: i64,
) -> sqlx::Result<u64> {
    let old = sqlx::query("DELETE FROM ended WHERE ended_at <= ?")
        .bind(retention.since(now))
        .execute(&mut *connection)
        .await?;
    let excess = sqlx::query(
        "DELETE FROM ended WHERE (uid, ended_at) IN (SELECT uid, ended_at FROM (SELECT uid, ended_at, \
         sum(bytes) OVER (ORDER BY ended_at DESC, uid DESC) AS total FROM ended) WHERE total > ?)",
    )
    .bind(retention.max_bytes())
    .execute(connection)
    .await?;
    Ok(old.rows_affected() + excess.rows_affected())
}

/// Deletes everything.
pub(super) async fn clear(connection: &mut SqliteConnection) -> sqlx::Result<()> {
    for table in ["DELETE FROM transitions", "DELETE FROM cancels", "DELETE FROM ended"] {
        sqlx::query(table).execute(&mut *connection).await?;
    }
    Ok(())
}

pub(super) fn body(value: &impl Serialize) -> sqlx::Result<String> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(error.into()))
}

/// Entries of another version or from a damaged disk may be unreadable.
pub(super) fn parse<T: DeserializeOwned>(body: &str) -> Option<T> {
    let read = serde_json::from_str(body);
    read.inspect_err(|error| tracing::warn!(%error, "skipped an unreadable entry of a job's history")).ok()
}
