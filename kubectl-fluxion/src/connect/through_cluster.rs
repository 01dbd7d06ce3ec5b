//! Connects through a kube-apiserver, with the credentials of a kubeconfig.

use fluxion_api::Exit;
use fluxion_api::Status;
use fluxion_api::client::{Answer, Call, Error, Method, Transport};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use kube::client::Body;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::files::unreadable;
use super::registration::diagnosis;
use crate::cli::Connection;
use crate::failure::Failure;

/// A cluster's API server.
#[derive(Clone)]
pub struct ThroughCluster {
    kube: kube::Client,
    name: String,
}

/// The cluster selected by the flags, and the namespace of its context.
pub async fn cluster(flags: &Connection) -> Result<(ThroughCluster, String), Failure> {
    // Fails when one is installed already, which is as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    let of = flags.kubeconfig.as_ref().map_or_else(String::new, |path| format!(" {}", path.display()));
    let bad = |why: &dyn std::fmt::Display| {
        Failure::new(
            Exit::Other,
            format!(
                "invalid kubeconfig{of}: {why}; see `kubectl config view` and `kubectl config get-contexts`"
            ),
        )
    };
    let file = match &flags.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    }
    .map_err(|error| match error {
        KubeconfigError::ReadConfig(error, path) => unreadable("the kubeconfig", &path, &error),
        other => bad(&other),
    })?;
    let options = KubeConfigOptions { context: flags.context.clone(), ..KubeConfigOptions::default() };
    let context = flags.context.clone().or_else(|| file.current_context.clone()).unwrap_or_default();
    let mut config =
        kube::Config::from_custom_kubeconfig(file, &options).await.map_err(|error| bad(&error))?;
    // Errors are to be told at once, not after retries.
    config.default_retry = false;
    if let Some(token) = &flags.token {
        // As somebody else, with nothing of the user in the file: a certificate would win.
        config.auth_info = AuthInfo { token: Some(token.clone().into()), ..AuthInfo::default() };
    }
    if let Some(user) = &flags.impersonate {
        config.auth_info.impersonate = Some(user.clone());
    }
    if !flags.impersonate_groups.is_empty() {
        config.auth_info.impersonate_groups = Some(flags.impersonate_groups.clone());
    }
    let namespace = config.default_namespace.clone();
    let url = config.cluster_url.to_string();
    let url = url.trim_end_matches('/');
    let name = if context.is_empty() { url.to_owned() } else { format!("{url} (context {context})") };
    let kube = kube::Client::try_from(config).map_err(|error| bad(&error))?;
    Ok((ThroughCluster { kube, name }, namespace))
}

impl ThroughCluster {
    /// The client for other objects in the cluster.
    pub fn kube(&self) -> kube::Client {
        self.kube.clone()
    }

    /// Human-readable name of the cluster.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Converts the error of a request without a response.
    pub fn failed(&self, error: &kube::Error) -> Error {
        let mut innermost: &dyn std::error::Error = error;
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        let why = innermost.to_string();
        let why = match why.split_once(" (os error") {
            Some((text, _)) => text.to_lowercase(),
            None => why,
        };
        match error {
            kube::Error::Auth(_) => Error::Unauthorized { server: self.name.clone(), message: why },
            kube::Error::Service(_) | kube::Error::HyperError(_) => {
                Error::Unreachable { server: self.name.clone(), why }
            }
            _ => Error::Setup(format!("unable to connect to the cluster at {}: {why}", self.name)),
        }
    }
}

impl Transport for ThroughCluster {
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, Error>> {
        async move {
            let setup = |error: &dyn std::fmt::Display| {
                Error::Setup(format!("failed to create the request: {error}"))
            };
            let (method, body) = match call.method {
                Method::Get => ("GET", Body::empty()),
                Method::Post => ("POST", Body::from(call.body)),
            };
            let request = http::Request::builder()
                .method(method)
                .uri(call.path)
                .header("accept", "application/json")
                .header("content-type", "application/json")
                .body(body)
                .map_err(|error| setup(&error))?;
            let response = self.kube.send(request).await.map_err(|error| self.failed(&error))?;
            let (parts, body) = response.into_parts();
            let header = |name: &str| {
                let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
                value.unwrap_or_default().to_owned()
            };
            let (status, content_type) = (parts.status.as_u16(), header("content-type"));
            let retry_after = header("retry-after").parse().ok();
            // kube-apiserver's own answer where it can't forward a request is no object.
            if status == 503 && !content_type.contains("json") {
                drop(body);
                let message = diagnosis(&self.kube).await;
                let told = serde_json::to_vec(&Status::failure(status, "ServiceUnavailable", message));
                let body = futures::stream::iter(told.ok().map(|told| Ok(told.into()))).boxed();
                return Ok(Answer { status, content_type: "application/json".to_owned(), retry_after, body });
            }
            let server = self.name.clone();
            let body = http_body_util::BodyDataStream::new(body)
                .map(move |chunk| {
                    chunk.map_err(|error| Error::Unreachable {
                        server: server.clone(),
                        why: error.to_string(),
                    })
                })
                .boxed();
            Ok(Answer { status, content_type, retry_after, body })
        }
        .boxed()
    }

    fn server(&self) -> String {
        self.name.clone()
    }
}
