//! The history of jobs in a `PostgreSQL` database, which the inspectors of any number of clusters share.
//!
//! Of the inspectors of a cluster, only the leader writes: every transaction locks the cluster's row and checks that
//! nobody has claimed a later term, so a leader that was replaced without noticing changes nothing.

use std::io::ErrorKind;
use std::time::Duration;

use fluxion_scheduler::record::Remembered;
use futures::future::BoxFuture;
use rustls::CertificateError;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, SqlSafeStr as _};

use super::{Changes, Retention};

mod rows;

/// Maximum time for one statement, for the server; ours are longer.
const SESSION: &str = "SET statement_timeout = '20s'; SET lock_timeout = '5s'; \
                       SET idle_in_transaction_session_timeout = '20s'; SET client_min_messages = warning";
/// Maximum time for one operation.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum time for connecting.
const CONNECT: Duration = Duration::from_secs(5);

/// Why the database can't be used now.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    #[error("another inspector is the leader and writes the history")]
    Superseded,
    #[error("the database schema is from another version of fluxion-inspector ({0})")]
    OtherVersion(String),
    #[error("the database rejected the entries: {0}")]
    Rejected(String),
    #[error("the database does not respond")]
    Silent,
    #[error("the certificate of the database server was rejected: {0}")]
    Certificate(String),
    #[error("a file named by sslrootcert, sslcert or sslkey does not exist")]
    NoFile,
    #[error("{0}")]
    Lost(sqlx::Error),
}

impl From<sqlx::Error> for PostgresError {
    fn from(error: sqlx::Error) -> Self {
        /// Data exceptions and violated constraints: the same entries are rejected again.
        const FOR_GOOD: [&str; 2] = ["22", "23"];
        let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
        if code.is_some_and(|code| FOR_GOOD.iter().any(|class| code.starts_with(class))) {
            return Self::Rejected(error.to_string());
        }
        rejected_certificate(&error).map_or(Self::Lost(error), Self::Certificate)
    }
}

/// Why the server's certificate was rejected, if it was.
fn rejected_certificate(error: &sqlx::Error) -> Option<String> {
    let sqlx::Error::Io(error) = error else { return None };
    let rustls::Error::InvalidCertificate(why) = error.get_ref()?.downcast_ref()? else { return None };
    Some(match why {
        // Another authority of the same name does not verify the signature.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "it is not signed by a trusted certificate authority (sslrootcert)".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another host name than that in the URL".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
        other => other.to_string(),
    })
}

/// The versions of the tables, in order.
fn migrations() -> Migrator {
    let statements = include_str!("../../migrations/postgres/0001_history.sql").into_sql_str();
    let first = Migration::new(1, "history".into(), MigrationType::Simple, statements, false);
    let mut migrator = Migrator::with_migrations(vec![first]);
    migrator.dangerous_set_table_name("fluxion_migrations");
    migrator
}

/// Boxed, as the compiler can't tell otherwise that this can be sent to other threads.
fn migrate(connection: &mut PgConnection) -> BoxFuture<'_, Result<(), MigrateError>> {
    Box::pin(async move { migrations().run_direct(None, connection, false).await })
}

/// An open connection.
#[derive(Debug)]
pub struct Postgres {
    connection: PgConnection,
    cluster: String,
}

impl Postgres {
    /// Connects, and creates or migrates the tables.
    pub async fn open(options: &PgConnectOptions, cluster: &str) -> Result<Self, PostgresError> {
        let options = options.clone().application_name("fluxion-inspector").disable_statement_logging();
        let connecting = tokio::time::timeout(CONNECT, options.connect());
        let connected = connecting.await.map_err(|_| PostgresError::Silent)?;
        let mut connection = connected.map_err(|error| match error {
            // Files are only read for TLS, which sockets do not use.
            sqlx::Error::Io(error)
                if error.kind() == ErrorKind::NotFound && options.get_socket().is_none() =>
            {
                PostgresError::NoFile
            }
            error => error.into(),
        })?;
        within(prepare(&mut connection, cluster)).await?;
        Ok(Self { connection, cluster: cluster.to_owned() })
    }

    /// The transitions of jobs that have not finished, and the latest finished jobs: at most `most` that ended after
    /// `since` (epoch seconds), oldest first.
    pub async fn read(&mut self, since: i64, most: usize) -> Result<Vec<Remembered>, PostgresError> {
        within(rows::read(&mut self.connection, &self.cluster, since, most)).await
    }

    /// Writes everything or nothing, as the leader of this term.
    pub async fn write(&mut self, changes: &Changes, term: u64) -> Result<(), PostgresError> {
        let term = i64::try_from(term).unwrap_or(i64::MAX);
        within(write_as_leader(&mut self.connection, &self.cluster, changes, term)).await
    }

    /// Deletes finished jobs whose retention is over at `now` (epoch seconds).
    pub async fn prune(&mut self, retention: Retention, now: i64) -> Result<u64, PostgresError> {
        within(rows::prune(&mut self.connection, &self.cluster, retention, now)).await
    }

    /// Says goodbye to the server.
    pub async fn close(self) -> Result<(), PostgresError> {
        within(self.connection.close()).await
    }
}

/// Sets up the session and the tables.
async fn prepare(connection: &mut PgConnection, cluster: &str) -> Result<(), PostgresError> {
    sqlx::raw_sql(SESSION).execute(&mut *connection).await?;
    match migrate(connection).await {
        Ok(()) => {}
        Err(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) => {
            return Err(error.into());
        }
        Err(error) => return Err(PostgresError::OtherVersion(error.to_string())),
    }
    sqlx::query("INSERT INTO fluxion_clusters (cluster, term) VALUES ($1, 0) ON CONFLICT DO NOTHING")
        .bind(cluster)
        .execute(connection)
        .await?;
    Ok(())
}

async fn write_as_leader(
    connection: &mut PgConnection,
    cluster: &str,
    changes: &Changes,
    term: i64,
) -> Result<(), PostgresError> {
    let mut transaction = connection.begin().await?;
    let latest: i64 = sqlx::query_scalar("SELECT term FROM fluxion_clusters WHERE cluster = $1 FOR UPDATE")
        .bind(cluster)
        .fetch_one(&mut *transaction)
        .await?;
    if latest > term {
        return Err(PostgresError::Superseded);
    }
    if latest < term {
        sqlx::query("UPDATE fluxion_clusters SET term = $2 WHERE cluster = $1")
            .bind(cluster)
            .bind(term)
            .execute(&mut *transaction)
            .await?;
    }
    rows::write(&mut transaction, cluster, changes).await?;
    Ok(transaction.commit().await?)
}

async fn within<T, E: Into<PostgresError>>(
    operation: impl Future<Output = Result<T, E>>,
) -> Result<T, PostgresError> {
    match tokio::time::timeout(PATIENCE, operation).await {
        Ok(done) => done.map_err(Into::into),
        Err(_) => Err(PostgresError::Silent),
    }
}
