//! The journal of a cluster, a file or a database, behind one interface.

use std::path::PathBuf;
use std::time::Duration;

use fluxion_scheduler::record::Remembered;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Client};
use sqlx::postgres::PgConnectOptions;

use crate::journal::{Changes, Journal, JournalError, Postgres, PostgresError, Retention};
use crate::logs::kube_error;

/// Maximum time for asking the API server.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where a journal is, and whose history it has.
pub enum JournalPlace {
    /// A file of this inspector, with the history of the cluster at this URL; whether it is in the state directory, and not
    /// named by the user; and whether it was intact when this process opened it.
    File { path: PathBuf, cluster: String, own: bool, checked: bool },
    /// A database, shared by all inspectors. Clusters are told apart by the UID of the namespace kube-system.
    Server { options: Box<PgConnectOptions>, cluster: ClusterUid },
    /// There is none, for this reason.
    None(String),
}

/// The UID of the namespace kube-system, once it is known.
pub enum ClusterUid {
    Known(String),
    Ask(Client),
}

/// An open journal. Its futures are boxed: the compiler can't tell that those of sqlx can be sent to other threads if it has
/// to look at them within ours.
pub(super) enum OpenJournal {
    File(Journal),
    Server(Postgres),
}

/// Why a journal can't be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum HistoryError {
    /// Another inspector is the leader.
    #[error("another inspector is the leader and writes the history")]
    Superseded,
    /// These entries will never be accepted.
    #[error("{0}")]
    Rejected(String),
    /// The engine does not know everything yet.
    #[error("the initial lists are not complete yet")]
    NotYet,
    /// It has to be opened again, which may work later.
    #[error("{0}")]
    Lost(String),
}

impl HistoryError {
    pub(super) fn lost(why: impl ToString) -> Self {
        Self::Lost(why.to_string())
    }
}

impl From<JournalError> for HistoryError {
    fn from(error: JournalError) -> Self {
        Self::Lost(error.to_string())
    }
}

impl JournalPlace {
    /// Whether all inspectors use it, so that only the leader may write.
    pub(super) fn shared(&self) -> bool {
        matches!(self, Self::Server { .. })
    }

    /// Opens it, and creates it if it doesn't exist.
    pub(super) fn open(&mut self) -> BoxFuture<'_, Result<OpenJournal, HistoryError>> {
        self.try_open().boxed()
    }

    async fn try_open(&mut self) -> Result<OpenJournal, HistoryError> {
        match self {
            Self::File { path, cluster, own, checked } => {
                let journal = Journal::open_history(path.clone(), cluster, *own, !*checked).await?;
                *checked = true;
                Ok(OpenJournal::File(journal))
            }
            Self::Server { options, cluster } => {
                let cluster = cluster.get().await.map_err(HistoryError::lost)?;
                Ok(OpenJournal::Server(
                    Postgres::open(options, cluster).await.map_err(|error| told(options, error))?,
                ))
            }
            Self::None(why) => Err(HistoryError::lost(why)),
        }
    }

    /// The error of this place's journal.
    pub(super) fn error(&self, error: PostgresError) -> HistoryError {
        match self {
            Self::Server { options, .. } => told(options, error),
            _ => HistoryError::lost(error),
        }
    }
}

fn told(options: &PgConnectOptions, error: PostgresError) -> HistoryError {
    match error {
        PostgresError::Superseded => HistoryError::Superseded,
        PostgresError::Rejected(why) => HistoryError::Rejected(why),
        error => {
            let place = super::Location::Server(Box::new(options.clone()));
            HistoryError::lost(format!("{place}: {error}"))
        }
    }
}

impl ClusterUid {
    async fn get(&mut self) -> Result<&str, String> {
        if let Self::Ask(client) = self {
            let named = ListParams::default().fields("metadata.name=kube-system").limit(1);
            let namespaces: Api<Namespace> = Api::all(client.clone());
            let found = tokio::time::timeout(PATIENCE, namespaces.list(&named).boxed()).await;
            let found = found.map_err(|_| "the API server does not respond".to_owned())?;
            let found = found.map_err(|error| kube_error(&error))?.items.into_iter().next();
            let uid = found.and_then(|namespace| namespace.metadata.uid);
            *self =
                Self::Known(uid.ok_or("namespace kube-system not found: its UID identifies the cluster")?);
        }
        match self {
            Self::Known(uid) => Ok(uid),
            Self::Ask(_) => Err("the cluster is not known".to_owned()),
        }
    }
}

impl OpenJournal {
    pub(super) fn read<'a>(
        &'a mut self,
        place: &'a JournalPlace,
        since: i64,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Remembered>, HistoryError>> {
        async move {
            match self {
                Self::File(journal) => Ok(journal.read_history(since, most).await?),
                Self::Server(postgres) => {
                    postgres.read(since, most).await.map_err(|error| place.error(error))
                }
            }
        }
        .boxed()
    }

    pub(super) fn write<'a>(
        &'a mut self,
        place: &'a JournalPlace,
        changes: &'a Changes,
        term: u64,
    ) -> BoxFuture<'a, Result<(), HistoryError>> {
        async move {
            match self {
                Self::File(journal) => Ok(journal.write_history(changes).await?),
                Self::Server(postgres) => {
                    postgres.write(changes, term).await.map_err(|error| place.error(error))
                }
            }
        }
        .boxed()
    }

    pub(super) fn prune<'a>(
        &'a mut self,
        place: &'a JournalPlace,
        retention: Retention,
        now: i64,
    ) -> BoxFuture<'a, Result<u64, HistoryError>> {
        async move {
            match self {
                Self::File(journal) => Ok(journal.prune(retention, now).await?),
                Self::Server(postgres) => {
                    postgres.prune(retention, now).await.map_err(|error| place.error(error))
                }
            }
        }
        .boxed()
    }

    pub(super) fn close(self, place: &JournalPlace) -> BoxFuture<'_, Result<(), HistoryError>> {
        async move {
            match self {
                Self::File(journal) => Ok(journal.close().await?),
                Self::Server(postgres) => postgres.close().await.map_err(|error| place.error(error)),
            }
        }
        .boxed()
    }
}
