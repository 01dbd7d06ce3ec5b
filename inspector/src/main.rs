//! `fluxion-inspector`: reads the command line and hands over.

use clap::Parser;
use fluxion_inspector::cli::{Cli, Command};
use fluxion_inspector::{cluster, logs};

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    logs::start(cli.log_format);
    // Only one of the crates that speak TLS may install the provider; a second call is answered with an error.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match cli.command {
            Command::Cluster(options) => cluster::run(options).await,
        }
    })
}
