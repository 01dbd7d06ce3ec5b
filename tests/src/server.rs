//! A server that answers, however it was started: its address, its token, and questions to it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use fluxion_api::client::{Client, Direct};
use fluxion_api::server_file::ServerFile;
use fluxion_api::{FluxionJob, FluxionNode, JobRef};

use crate::door::Door;
use crate::plugin::Plugin;
use crate::programs::{self, Program};

/// Timeout of a single request.
const ANSWER: Duration = Duration::from_secs(10);

/// Where a server is reached, as administrator.
#[derive(Clone, Debug)]
pub struct Server {
    url: String,
    token: String,
    token_file: PathBuf,
}

impl Server {
    /// The server of this file; `token_file` holds its token.
    pub(crate) fn new(file: &ServerFile, token_file: &Path) -> Self {
        Self { url: file.url.clone(), token: file.token.clone(), token_file: token_file.to_owned() }
    }

    /// A client of its API.
    pub fn client(&self) -> Result<Client> {
        Ok(Client::new(Direct::new(&self.url, Some(self.token.clone()), None)?, ANSWER))
    }

    /// A door for clients that can't present its token.
    pub async fn door(&self) -> Result<Door> {
        Door::open(&self.url, &self.token).await
    }

    /// A job by its name as users write it, e.g. `job/lammps`.
    pub async fn job(&self, namespace: &str, job: &str) -> Result<FluxionJob> {
        let name = object_name(job)?;
        self.client()?
            .object(Some(namespace), &name)
            .await
            .with_context(|| format!("asking for {namespace}/{job}"))
    }

    /// A node's books.
    pub async fn node(&self, name: &str) -> Result<FluxionNode> {
        self.client()?.object(None, name).await.with_context(|| format!("asking for node {name}"))
    }

    /// The plugin, asking this server; what it deletes it deletes with the rights of `kubeconfig`.
    pub fn plugin(&self, kubeconfig: &Path) -> Result<Plugin> {
        let program = programs::path(Program::Plugin)?;
        Ok(Plugin::new(program, &self.url, &self.token_file, kubeconfig))
    }
}

/// `job/lammps` as the object is called: `job.lammps`.
pub fn object_name(job: &str) -> Result<String> {
    let parsed: JobRef = job.parse()?;
    let kind = parsed.kind.with_context(|| format!("'{job}' names no kind"))?;
    Ok(format!("{kind}.{}", parsed.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_called_by_kind_and_name() {
        assert_eq!(object_name("job/lammps").unwrap(), "job.lammps");
        assert_eq!(object_name("team/podgroup/train").unwrap(), "podgroup.train");
        assert!(object_name("lammps").is_err());
    }
}
