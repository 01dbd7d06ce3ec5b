//! Kubeconfigs and clients for components, people and service accounts.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

use super::Cluster;
use super::kubeconfig::{self, Credentials};
use super::pki::Pki;

/// Somebody who may ask the API server: the kubeconfig, and the token when it is a service account.
#[derive(Clone, Debug)]
pub struct Access {
    /// The file to give to `--kubeconfig`.
    pub kubeconfig: PathBuf,
    /// A bearer token, for service accounts.
    pub token: Option<String>,
}

impl Access {
    /// A client with these rights.
    pub async fn client(&self) -> Result<Client> {
        client(&self.kubeconfig).await
    }
}

impl Cluster {
    /// A person with a client certificate; RBAC decides what they may do.
    pub fn user(&self, user: &str, group: Option<&str>) -> Result<Access> {
        let kubeconfig = component(&self.pki, &self.path, &self.server, user, group)?;
        Ok(Access { kubeconfig, token: None })
    }

    /// Certificate and key of the front proxy's name that nobody is to believe: expired, and of another authority.
    pub fn false_front_proxies(&self) -> Result<[(PathBuf, PathBuf); 2]> {
        const NAME: &str = "front-proxy-client";
        self.pki.write_pair("expired-proxy", &self.pki.expired_user(NAME)?)?;
        let other = Pki::create(self.path.join("other-pki"))?;
        let files =
            |pki: &Pki, name: &str| (pki.file(&format!("{name}.crt")), pki.file(&format!("{name}.key")));
        Ok([files(&self.pki, "expired-proxy"), files(&other, "proxy")])
    }

    /// A ServiceAccount that exists, with a token that lasts for an hour.
    pub async fn service_account(&self, namespace: &str, name: &str) -> Result<Access> {
        let client = self.client().await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client, namespace);
        let ask = TokenRequest {
            spec: Some(TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() }),
            ..TokenRequest::default()
        };
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &ask)
            .await
            .with_context(|| format!("asking for a token of ServiceAccount {namespace}/{name}"))?;
        let token = answer
            .status
            .and_then(|status| status.token)
            .context("a TokenRequest was answered without a token")?;
        let path = self.path.join(format!("{namespace}-{name}.kubeconfig"));
        let credentials = Credentials::Token(token.clone());
        kubeconfig::write(&path, &self.server, &self.pki.file("ca.crt"), &credentials, namespace)?;
        Ok(Access { kubeconfig: path, token: Some(token) })
    }
}

/// The kubeconfig of a user with a certificate of the cluster's authority.
pub(super) fn component(
    pki: &Pki,
    dir: &Path,
    server: &str,
    user: &str,
    group: Option<&str>,
) -> Result<PathBuf> {
    let file: String = user.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    pki.write_pair(&file, &pki.user(user, group)?)?;
    let credentials = Credentials::Certificate {
        certificate: pki.file(&format!("{file}.crt")),
        key: pki.file(&format!("{file}.key")),
    };
    let path = dir.join(format!("{file}.kubeconfig"));
    kubeconfig::write(&path, server, &pki.file("ca.crt"), &credentials, "default")?;
    Ok(path)
}

/// A client from a kubeconfig file.
pub(super) async fn client(path: &Path) -> Result<Client> {
    let file = Kubeconfig::read_from(path).with_context(|| format!("reading {}", path.display()))?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("using {}", path.display()))?;
    Client::try_from(config).context("making a client")
}
