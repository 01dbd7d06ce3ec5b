//! What the Deployment of an installed release runs, as a plain process: nothing runs in Pods here.
//!
//! Arguments, configuration, variables and volumes are those that are in the cluster. Only addresses and paths are others.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVar, PodSpec, Secret};
use kube::{Api, Client};

use crate::cluster::{Access, Cluster};
use crate::helm::NAMESPACE;
use crate::inspector::{Inspector, Settings};

/// The name of the Deployment, its `ConfigMap` and its `ServiceAccount`.
const NAME: &str = "fluxion-inspector";
/// What [`Inspector`] sets itself.
const OWN: [&str; 3] = ["--config", "--state-dir", "--lease-seconds"];

/// Lets the Service of a release lead to its port on this machine: there is no kube-proxy. Upgrades leave that as it is.
pub async fn lead_service_here(cluster: &Cluster) -> Result<()> {
    let patch = r#"{"spec": {"type": "ExternalName", "externalName": "localhost"}}"#;
    let command = ["patch", "service", NAME, "--namespace", NAMESPACE, "--type=merge", "--patch", patch];
    cluster.kubectl(&command).await.map(drop)
}

/// The Pod template of a release, as of when it was read.
pub struct Deployed {
    client: Client,
    container: Container,
    pod: PodSpec,
    config: String,
    access: Access,
    /// Where the files of volumes are written.
    dir: PathBuf,
}

impl Deployed {
    /// Reads what is there now, and takes a token of its ServiceAccount.
    pub async fn read(cluster: &Cluster) -> Result<Self> {
        let client = cluster.client().await?;
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
        let template = deployments.get(NAME).await?.spec.template;
        let pod = template.spec.context("a Pod template has a spec")?;
        let container = pod.containers.first().context("a Pod has a container")?.clone();
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        let data = maps.get(NAME).await?.data.unwrap_or_default();
        let config = data.get("config.yaml").context("the ConfigMap has no config.yaml")?.clone();
        let account = pod.service_account_name.as_deref().context("the Pod has no ServiceAccount")?;
        let access = cluster.service_account(NAMESPACE, account).await?;
        Ok(Self { client, container, pod, config, access, dir: cluster.dir().to_owned() })
    }

    /// Starts one of its inspectors, which serves this address, and waits until it is ready.
    pub async fn start(&self, cluster: &Cluster, name: &str, secure: SocketAddr) -> Result<Inspector> {
        let settings = Settings {
            config: Some(self.config.clone()),
            arguments: self.arguments(secure).await?,
            environment: self.environment().await?,
            ..Settings::default()
        };
        Inspector::start_as(cluster, name, &settings, self.access.clone()).await
    }

    async fn arguments(&self, secure: SocketAddr) -> Result<Vec<String>> {
        let mut arguments = vec!["--namespace".to_owned(), NAMESPACE.to_owned()];
        for argument in self.container.args.iter().flatten().skip(1) {
            let (flag, value) = argument.split_once('=').unwrap_or((argument, ""));
            match flag {
                flag if OWN.contains(&flag) => {}
                "--secure-listen" => arguments.push(format!("{flag}={secure}")),
                "--advertise-address" if value == "$(POD_IP)" => {
                    arguments.push(format!("{flag}={}", secure.ip()));
                }
                _ if value.starts_with('/') => {
                    arguments.push(format!("{flag}={}", self.mounted(value).await?));
                }
                _ if value.contains('$') => bail!("{argument} means nothing outside of the Pod"),
                _ => arguments.push(argument.clone()),
            }
        }
        Ok(arguments)
    }

    async fn environment(&self) -> Result<Vec<(String, String)>> {
        let mut environment = Vec::new();
        for variable in self.container.env.iter().flatten() {
            if let Some(value) = self.value(variable).await? {
                environment.push((variable.name.clone(), value));
            }
        }
        Ok(environment)
    }

    /// The value of a variable; none of what only a Pod has.
    async fn value(&self, variable: &EnvVar) -> Result<Option<String>> {
        // The tests have their own.
        if variable.name == "RUST_LOG" {
            return Ok(None);
        }
        let Some(source) = &variable.value_from else {
            let value = variable.value.clone().unwrap_or_default();
            return if value.starts_with('/') {
                self.mounted(&value).await.map(Some)
            } else {
                Ok(Some(value))
            };
        };
        let Some(key) = &source.secret_key_ref else { return Ok(None) };
        Ok(Some(self.secret(&key.name, &key.key).await?))
    }

    /// A file with the content that the file at this path has in the Pod, where it is of a Secret.
    async fn mounted(&self, path: &str) -> Result<String> {
        let mounts = self.container.volume_mounts.iter().flatten();
        let mut found = mounts.filter_map(|mount| {
            let file = path.strip_prefix(&mount.mount_path)?.strip_prefix('/')?;
            Some((self.pod.volumes.iter().flatten().find(|volume| volume.name == mount.name)?, file))
        });
        let (volume, file) = found.next().with_context(|| format!("no volume has {path}"))?;
        let source = volume.secret.as_ref().with_context(|| format!("{path} is not of a Secret"))?;
        let key = match &source.items {
            Some(items) => {
                let item = items.iter().find(|item| item.path == file);
                &item.with_context(|| format!("the volume has no {file}"))?.key
            }
            None => file,
        };
        let secret = source.secret_name.as_deref().context("a volume names its Secret")?;
        let local = self.dir.join(format!("mounted-{secret}-{file}"));
        std::fs::write(&local, self.secret(secret, key).await?)
            .with_context(|| format!("writing {}", local.display()))?;
        Ok(local.display().to_string())
    }

    /// Writes the files of volumes again, as kubelet does some time after a Secret has changed.
    pub async fn update_volumes(&self) -> Result<()> {
        let arguments = self.container.args.iter().flatten().filter_map(|argument| argument.split_once('='));
        let variables = self.container.env.iter().flatten().filter_map(|variable| variable.value.as_deref());
        let paths = arguments.map(|(_, value)| value).chain(variables);
        for path in paths.filter(|path| self.is_of_secret(path)) {
            self.mounted(path).await?;
        }
        Ok(())
    }

    fn is_of_secret(&self, path: &str) -> bool {
        let secrets = self.pod.volumes.iter().flatten().filter(|volume| volume.secret.is_some());
        let mut mounts = self.container.volume_mounts.iter().flatten();
        let secrets: Vec<&str> = secrets.map(|volume| volume.name.as_str()).collect();
        mounts.any(|mount| {
            secrets.contains(&mount.name.as_str()) && path.starts_with(&format!("{}/", mount.mount_path))
        })
    }

    async fn secret(&self, name: &str, key: &str) -> Result<String> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), NAMESPACE);
        let mut data = secrets.get(name).await?.data.unwrap_or_default();
        let value = data.remove(key).with_context(|| format!("Secret {name} has no {key}"))?;
        String::from_utf8(value.0).with_context(|| format!("{key} of Secret {name} is not UTF-8"))
    }
}
