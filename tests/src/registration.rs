//! The inspector behind kube-apiserver: a plain process on this machine, to which an `APIService` leads by way of a Service
//! of type `ExternalName`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::{Api, Client};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;

use crate::apply::Applier;
use crate::cluster::ports::Port;
use crate::inspector::Settings;
use crate::wait;

const NAMESPACE: &str = "fluxion-system";
const SERVICE: &str = "fluxion-inspector";
const API_SERVICE: &str = "v1alpha1.fluxion.flux-framework.org";
/// kube-apiserver looks every 30 s, and when the registration changes.
const NOTICED: Duration = Duration::from_mins(2);

/// The secure port of an inspector.
#[derive(Debug)]
pub struct SecurePort {
    port: Port,
}

impl SecurePort {
    /// Reserves a port for an inspector that is still to be started with [`Self::settings`].
    pub fn reserve() -> Result<Self> {
        Ok(Self { port: Port::reserve()? })
    }

    /// Settings of an inspector that listens there.
    pub fn settings(&self) -> Settings {
        let address = format!("127.0.0.1:{}", self.port.number());
        Settings { arguments: vec!["--secure-listen".to_owned(), address], ..Settings::default() }
    }

    /// Where it is reached directly.
    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.port.number())
    }

    /// Where it is reached by TCP.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port.number()).into()
    }

    /// Registers it, and waits until kube-apiserver says that it is available.
    pub async fn register(&self, applier: &Applier) -> Result<()> {
        self.register_at(applier, self.port.number()).await
    }

    /// The same where kube-apiserver reaches it at another port of this machine.
    pub async fn register_at(&self, applier: &Applier, port: u16) -> Result<()> {
        Self::registration(applier, port).await?;
        self.becomes_available(applier.client(), true).await
    }

    /// Registers it without waiting: an inspector that is started then announces its authority at once, and otherwise when
    /// it next looks, which it does once a minute.
    pub async fn register_ahead(&self, applier: &Applier) -> Result<()> {
        Self::registration(applier, self.port.number()).await
    }

    async fn registration(applier: &Applier, port: u16) -> Result<()> {
        applier
            .apply(json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": { "name": SERVICE, "namespace": NAMESPACE },
                "spec": { "type": "ExternalName", "externalName": "localhost", "ports": [{ "port": port }] },
            }))
            .await?;
        applier
            .apply(json!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": { "name": API_SERVICE },
                "spec": {
                    "group": "fluxion.flux-framework.org", "version": "v1alpha1",
                    "groupPriorityMinimum": 1000, "versionPriority": 15,
                    "service": { "name": SERVICE, "namespace": NAMESPACE, "port": port },
                },
            }))
            .await
            .map(drop)
    }

    /// Waits until kube-apiserver says that it is available, or that it is not.
    pub async fn becomes_available(&self, client: &Client, available: bool) -> Result<()> {
        let api: Api<APIService> = Api::all(client.clone());
        let wanted = if available { "True" } else { "False" };
        wait::until(&format!("{API_SERVICE} has Available={wanted}"), NOTICED, || async {
            let status = api.get(API_SERVICE).await?.status.unwrap_or_default();
            let conditions = status.conditions.unwrap_or_default();
            let seen =
                conditions.into_iter().find(|one| one.type_ == "Available").context("no condition yet")?;
            if seen.status == wanted { Ok(()) } else { bail!("{seen:?}") }
        })
        .await
    }

    /// The inspector's own authority, in PEM.
    pub async fn authority(client: &Client) -> Result<Vec<u8>> {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
        let secret = secrets.get("fluxion-inspector-tls").await.context("reading the authority's Secret")?;
        let mut data = secret.data.unwrap_or_default();
        Ok(data.remove("ca.crt").context("the Secret has no ca.crt")?.0)
    }

    /// A TLS client that trusts it.
    pub async fn tls(client: &Client) -> Result<rustls::ClientConfig> {
        let mut roots = rustls::RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(&Self::authority(client).await?) {
            roots.add(root?)?;
        }
        Ok(rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
    }

    /// A client of the port itself that trusts the inspector's own authority; with a certificate of its own (PEM files)
    /// where one is given.
    pub async fn direct(&self, client: &Client, identity: Option<(&Path, &Path)>) -> Result<reqwest::Client> {
        let trusted = reqwest::Certificate::from_pem_bundle(&Self::authority(client).await?)?;
        let mut builder = reqwest::Client::builder().tls_certs_only(trusted).no_proxy();
        if let Some((certificate, key)) = identity {
            let mut pem = std::fs::read(certificate).context("reading a client certificate")?;
            pem.extend(std::fs::read(key).context("reading the key of a client certificate")?);
            builder = builder.identity(reqwest::Identity::from_pem(&pem)?);
        }
        Ok(builder.build()?)
    }
}
