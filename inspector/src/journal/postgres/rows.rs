//! The rows of the history in `PostgreSQL`: each kind is written by one statement.

use std::collections::BTreeMap;

use fluxion_scheduler::model::SharedStr;
use fluxion_scheduler::record::{EndedJob, LiveJob, Remembered};
use fluxion_scheduler::state::HistoryEntry;
use futures::TryStreamExt;
use sqlx::{PgConnection, Row as _};

use crate::journal::past::{TRANSITIONS_MAX, body, parse};
use crate::journal::{Changes, Retention};

/// Applies the changes; the caller commits them.
pub(super) async fn write(
    connection: &mut PgConnection,
    cluster: &str,
    changes: &Changes,
) -> sqlx::Result<()> {
    let uncancelled = changes.cancels.iter().filter(|(_, by)| by.is_none()).map(|(uid, _)| uid);
    let forgotten: Vec<String> = changes.forgotten.iter().map(|uid| plain(uid)).collect();
    let uncancelled: Vec<String> = uncancelled.chain(&changes.forgotten).map(|uid| plain(uid)).collect();
    for (statement, uids) in [
        ("DELETE FROM fluxion_transitions WHERE cluster = $1 AND uid = ANY($2)", forgotten),
        ("DELETE FROM fluxion_cancels WHERE cluster = $1 AND uid = ANY($2)", uncancelled),
    ] {
        if !uids.is_empty() {
            sqlx::query(statement).bind(cluster).bind(uids).execute(&mut *connection).await?;
        }
    }
    write_transitions(connection, cluster, changes).await?;
    let cancels = changes.cancels.iter().filter_map(|(uid, by)| Some((plain(uid), plain(by.as_ref()?))));
    let (uids, names): (Vec<String>, Vec<String>) = cancels.unzip();
    if !uids.is_empty() {
        sqlx::query(
            "INSERT INTO fluxion_cancels (cluster, uid, name) \
             SELECT $1, row.* FROM UNNEST($2::text[], $3::text[]) AS row \
             ON CONFLICT (cluster, uid) DO UPDATE SET name = excluded.name",
        )
        .bind(cluster)
        .bind(uids)
        .bind(names)
        .execute(&mut *connection)
        .await?;
    }
    let retracted = changes.retracted.iter().map(|(uid, ended_at)| (plain(uid), *ended_at));
    let (uids, ends): (Vec<String>, Vec<i64>) = retracted.unzip();
    if !uids.is_empty() {
        sqlx::query(
            "DELETE FROM fluxion_ended AS old USING UNNEST($2::text[], $3::bigint[]) AS gone (uid, ended) \
             WHERE old.cluster = $1 AND old.uid = gone.uid AND old.ended_at = to_timestamp(gone.ended)",
        )
        .bind(cluster)
        .bind(uids)
        .bind(ends)
        .execute(&mut *connection)
        .await?;
    }
    write_ended(connection, cluster, changes.ended.values().map(AsRef::as_ref)).await
}

async fn write_transitions(
    connection: &mut PgConnection,
    cluster: &str,
    changes: &Changes,
) -> sqlx::Result<()> {
    if changes.transitions.is_empty() {
        return Ok(());
    }
    let (mut uids, mut numbers, mut jobs, mut bodies) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut latest: BTreeMap<String, i32> = BTreeMap::new();
    for ((uid, number), (job, entry)) in &changes.transitions {
        let number = i32::try_from(*number).unwrap_or(i32::MAX);
        if number >= TRANSITIONS_MAX.cast_signed() {
            latest.insert(plain(uid), number);
        }
        uids.push(plain(uid));
        numbers.push(number);
        jobs.push(plain(job));
        bodies.push(body(entry)?);
    }
    sqlx::query(
        "INSERT INTO fluxion_transitions (cluster, uid, number, job, body) \
         SELECT $1, row.* FROM UNNEST($2::text[], $3::int[], $4::text[], $5::text[]) AS row \
         ON CONFLICT (cluster, uid, number) DO UPDATE SET job = excluded.job, body = excluded.body",
    )
    .bind(cluster)
    .bind(uids)
    .bind(numbers)
    .bind(jobs)
    .bind(bodies)
    .execute(&mut *connection)
    .await?;
    let (uids, numbers): (Vec<String>, Vec<i32>) = latest.into_iter().unzip();
    if !uids.is_empty() {
        sqlx::query(
            "DELETE FROM fluxion_transitions AS old USING UNNEST($2::text[], $3::int[]) AS new (uid, number) \
             WHERE old.cluster = $1 AND old.uid = new.uid AND old.number > 0 AND old.number <= new.number - $4",
        )
        .bind(cluster)
        .bind(uids)
        .bind(numbers)
        .bind(TRANSITIONS_MAX.cast_signed() - 1)
        .execute(connection)
        .await?;
    }
    Ok(())
}

async fn write_ended(
    connection: &mut PgConnection,
    cluster: &str,
    jobs: impl Iterator<Item = &EndedJob>,
) -> sqlx::Result<()> {
    let (mut uids, mut ends, mut namespaces, mut names) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut queues, mut states, mut created, mut started) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::<Option<i64>>::new());
    let (mut cancelled, mut bodies) = (Vec::<Option<String>>::new(), Vec::new());
    for job in jobs {
        uids.push(plain(&job.key.uid));
        ends.push(job.ended_at);
        namespaces.push(plain(&job.key.namespace));
        names.push(plain(&job.key.object_name()));
        queues.push(plain(&job.queue));
        states.push(job.state.as_str().to_owned());
        created.push(job.created);
        started.push(job.started_at);
        cancelled.push(job.cancelled_by.as_deref().map(plain));
        bodies.push(body(job)?);
    }
    if uids.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO fluxion_ended (cluster, uid, ended_at, namespace, job, queue, state, created_at, started_at, \
         cancelled_by, bytes, body) \
         SELECT $1, uid, to_timestamp(ended), namespace, job, queue, state, to_timestamp(created), \
         to_timestamp(started), cancelled, octet_length(body), body \
         FROM UNNEST($2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], \
         $9::bigint[], $10::text[], $11::text[]) \
         AS row (uid, ended, namespace, job, queue, state, created, started, cancelled, body) \
         ON CONFLICT (cluster, uid, ended_at) DO UPDATE SET queue = excluded.queue, state = excluded.state, \
         started_at = excluded.started_at, cancelled_by = excluded.cancelled_by, bytes = excluded.bytes, \
         body = excluded.body",
    )
    .bind(cluster)
    .bind(uids)
    .bind(ends)
    .bind(namespaces)
    .bind(names)
    .bind(queues)
    .bind(states)
    .bind(created)
    .bind(started)
    .bind(cancelled)
    .bind(bodies)
    .execute(connection)
    .await?;
    Ok(())
}

/// Finished jobs by end time, then the others by UID.
pub(super) async fn read(
    connection: &mut PgConnection,
    cluster: &str,
    since: i64,
    most: usize,
) -> sqlx::Result<Vec<Remembered>> {
    let mut found = Vec::new();
    let latest = sqlx::query_scalar(
        "SELECT body FROM fluxion_ended WHERE cluster = $1 AND ended_at > to_timestamp($2::bigint) \
         ORDER BY ended_at DESC, uid DESC LIMIT $3",
    );
    let latest = latest.bind(cluster).bind(since).bind(i64::try_from(most).unwrap_or(i64::MAX));
    let mut rows = latest.fetch(&mut *connection);
    while let Some(row) = rows.try_next().await? {
        let row: String = row;
        found.extend(parse::<EndedJob>(&row).map(|job| Remembered::Ended(Box::new(job))));
    }
    drop(rows);
    found.reverse();
    let mut cancels: BTreeMap<String, SharedStr> = BTreeMap::new();
    for row in sqlx::query("SELECT uid, name FROM fluxion_cancels WHERE cluster = $1")
        .bind(cluster)
        .fetch_all(&mut *connection)
        .await?
    {
        cancels.insert(row.try_get(0)?, row.try_get::<&str, _>(1)?.into());
    }
    let mut live: BTreeMap<String, LiveJob> = BTreeMap::new();
    let rows = sqlx::query(
        "SELECT uid, number, job, body FROM fluxion_transitions WHERE cluster = $1 ORDER BY uid, number",
    );
    let mut rows = rows.bind(cluster).fetch(connection);
    while let Some(row) = rows.try_next().await? {
        let Some(entry) = parse::<HistoryEntry>(row.try_get(3)?) else { continue };
        let uid: String = row.try_get(0)?;
        let number = u32::try_from(row.try_get::<i32, _>(1)?).unwrap_or_default();
        let job = live.entry(uid.clone()).or_insert_with(|| LiveJob {
            uid: uid.as_str().into(),
            cancelled_by: cancels.get(&uid).cloned(),
            ..LiveJob::default()
        });
        job.job = row.try_get(2)?;
        job.next = number.saturating_add(1);
        job.history.push(entry);
    }
    found.extend(live.into_values().map(Remembered::Live));
    Ok(found)
}

/// Deletes finished jobs that are too old, and then the oldest ones of too many bytes. Returns their number.
pub(super) async fn prune(
    connection: &mut PgConnection,
    cluster: &str,
    retention: Retention,
    now: i64,
) -> sqlx::Result<u64> {
    let old =
        sqlx::query("DELETE FROM fluxion_ended WHERE cluster = $1 AND ended_at <= to_timestamp($2::bigint)")
            .bind(cluster)
            .bind(retention.since(now))
            .execute(&mut *connection)
            .await?;
    let excess = sqlx::query(
        "DELETE FROM fluxion_ended AS job USING (SELECT uid, ended_at, sum(bytes) OVER \
         (ORDER BY ended_at DESC, uid DESC) AS total FROM fluxion_ended WHERE cluster = $1) AS sized \
         WHERE job.cluster = $1 AND job.uid = sized.uid AND job.ended_at = sized.ended_at AND sized.total > $2",
    )
    .bind(cluster)
    .bind(retention.max_bytes())
    .execute(connection)
    .await?;
    Ok(old.rows_affected() + excess.rows_affected())
}

/// `PostgreSQL` has no text with NUL.
fn plain(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
