//! `fluxion-inspector cluster`: puts the parts together, and takes them down in order.

use anyhow::Context as _;

use crate::cli::ClusterOptions;
use crate::kube::connect::connect;
use crate::state_dir::StateDir;

/// Runs until it is told to end.
pub async fn run(options: ClusterOptions) -> anyhow::Result<()> {
    let state_dir = StateDir::claim(options.common.state_dir.as_deref())?;
    let connection = connect(options.kubeconfig, options.context).await?;
    state_dir.announce(options.common.listen, &connection.url).context("server.json")?;
    tokio::signal::ctrl_c().await?;
    Ok(())
}
