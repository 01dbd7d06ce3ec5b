//! Connecting to the API server.

use std::path::PathBuf;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::health::IDLE;
use crate::logs::kube_error;

/// Why the connection failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("kubeconfig {}: {why}", path.display())]
    Kubeconfig { path: PathBuf, why: String },
    #[error("no cluster to connect to: {0}; pass --kubeconfig, or run in a Pod")]
    Infer(#[from] kube::config::InferConfigError),
    #[error("kubeconfig: {0}")]
    Context(#[from] kube::config::KubeconfigError),
    #[error(
        "{url}: {why}; check that the API server is running and that the credentials in the kubeconfig are valid"
    )]
    Unreachable { url: String, why: String },
    #[error("failed to create the Kubernetes client: {0}")]
    Client(#[from] kube::Error),
}

/// A connection, and our namespace according to the kubeconfig or Pod.
pub struct Connection {
    pub client: Client,
    pub namespace: String,
    pub url: String,
}

/// Connects as specified by flags, else like a Pod does, else like kubectl does. The server must respond.
pub async fn connect(
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
) -> Result<Connection, ConnectError> {
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let mut config = match kubeconfig {
        Some(path) => {
            let bad = |error| ConnectError::Kubeconfig { path: path.clone(), why: why(error) };
            let read = Kubeconfig::read_from(&path).map_err(bad)?;
            Config::from_custom_kubeconfig(read, &options).await.map_err(bad)?
        }
        None if options.context.is_some() => Config::from_kubeconfig(&options).await?,
        None => Config::infer().await?,
    };
    config.connect_timeout = Some(Duration::from_secs(10));
    // Even an idle watch is ended within this time; a connection silent for longer is dead.
    config.read_timeout = Some(IDLE);
    let (url, namespace) = (config.cluster_url.to_string(), config.default_namespace.clone());
    let client = Client::try_from(config)?;
    let version = client
        .apiserver_version()
        .await
        .map_err(|error| ConnectError::Unreachable { url: url.clone(), why: kube_error(&error) })?;
    tracing::info!(%url, version = version.git_version, "connected");
    Ok(Connection { client, namespace, url })
}

/// The cause, without the path, which the caller adds.
fn why(error: KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, _) => error.to_string(),
        other => other.to_string(),
    }
}
