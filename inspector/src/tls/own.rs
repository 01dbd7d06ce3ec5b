//! A serving certificate of an authority of our own, which all replicas share through a Secret and the `APIService` names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use super::authority::{Authority, Issued};
use super::certificate::{ServingCertificate, TlsError};
use crate::logs::kube_error;

/// How often all is looked at.
const EVERY: Duration = Duration::from_mins(1);
/// And while something is amiss.
const SOON: Duration = Duration::from_secs(5);
/// Name of our `APIService`: `VERSION.GROUP`.
const API_SERVICE: &str = "v1alpha1.fluxion.flux-framework.org";
const BUNDLE: &str = "ca.crt";
const KEY: &str = "ca.key";

/// Where the authority is kept, and for whom it signs.
#[derive(Clone, Debug)]
pub struct AuthorityLocation {
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// Name of the Service in front of the secure port.
    pub service: String,
    /// Whether a `MutatingWebhookConfiguration` of the Service's name leads there too.
    pub webhook: bool,
}

impl AuthorityLocation {
    /// The names that clients know the server by.
    fn names(&self) -> Vec<String> {
        let Self { namespace, service, .. } = self;
        vec![
            format!("{service}.{namespace}.svc"),
            format!("{service}.{namespace}.svc.cluster.local"),
            format!("{service}.{namespace}"),
            service.clone(),
            "localhost".to_owned(),
        ]
    }
}

#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error("{what}: {}", kube_error(.source))]
    Kube { what: &'static str, source: kube::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
}

fn at(what: &'static str) -> impl FnOnce(kube::Error) -> KeepError {
    move |source| KeepError::Kube { what, source }
}

/// Keeps authority, `APIService` and certificate.
pub struct Keeper {
    secrets: Api<Secret>,
    registrations: Api<APIService>,
    webhooks: Api<MutatingWebhookConfiguration>,
    place: AuthorityLocation,
    serving: Arc<ServingCertificate>,
    /// What is shown, and the bundle it was issued under.
    shown: Option<(Issued, String)>,
    unregistered: bool,
}

/// How a look at all of it ended.
#[derive(Debug, PartialEq, Eq)]
enum Looked {
    Fine,
    /// Something is to follow soon.
    Again,
}

impl Keeper {
    /// Keeps them in this cluster.
    pub fn new(client: Client, place: AuthorityLocation, serving: Arc<ServingCertificate>) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), &place.namespace),
            registrations: Api::all(client.clone()),
            webhooks: Api::all(client),
            place,
            serving,
            shown: None,
            unregistered: false,
        }
    }

    /// Goes on for ever; what fails is tried again.
    pub async fn run(mut self) {
        let mut complained = String::new();
        loop {
            let pause = match self.look(SystemTime::now()).await {
                Ok(looked) => {
                    complained.clear();
                    if looked == Looked::Fine { EVERY } else { SOON }
                }
                Err(error) => {
                    let error = error.to_string();
                    if error != complained {
                        tracing::warn!(error, "failed to maintain the serving certificate");
                        complained = error;
                    }
                    SOON
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn look(&mut self, now: SystemTime) -> Result<Looked, KeepError> {
        let authority = self.authority(now).await?;
        if self.shown.is_none() {
            // Nobody can connect yet: at once, whatever comes of the rest.
            self.show(&authority, now)?;
        }
        let registered = self.register(&authority.bundle).await?.max(self.trust(&authority.bundle).await?);
        let Some((issued, bundle)) = &self.shown else { return Ok(Looked::Again) };
        if *bundle == authority.bundle && issued.renew_at > now {
            return Ok(if registered == Registered::Missing { Looked::Again } else { Looked::Fine });
        }
        if registered == Registered::Changed {
            // Clients have to learn whom to trust before they see what that one signed.
            return Ok(Looked::Again);
        }
        self.show(&authority, now)?;
        Ok(Looked::Fine)
    }

    fn show(&mut self, authority: &Authority, now: SystemTime) -> Result<(), KeepError> {
        let issued = authority.issue(&self.place.names(), now)?;
        self.serving.set(&issued.certificate, &issued.key)?;
        tracing::info!(service = self.place.service, "issued a serving certificate");
        self.shown = Some((issued, authority.bundle.clone()));
        Ok(())
    }

    /// The authority in the Secret; made or renewed there where that is necessary.
    async fn authority(&self, now: SystemTime) -> Result<Authority, KeepError> {
        let kept = self.secrets.get_opt(&self.place.secret).await.map_err(at("reading the Secret"))?;
        let Some(mut secret) = kept else {
            let new = Authority::create(now)?;
            let mut secret = Secret { type_: Some("Opaque".to_owned()), ..Secret::default() };
            secret.metadata.name = Some(self.place.secret.clone());
            secret.data = Some(data(&new));
            self.secrets.create(&PostParams::default(), &secret).await.map_err(at("creating the Secret"))?;
            tracing::info!(secret = self.place.secret, "created a certificate authority");
            return Ok(new);
        };
        let text = |key: &str| {
            let bytes = secret.data.as_ref()?.get(key)?;
            String::from_utf8(bytes.0.clone()).ok()
        };
        let read = Authority::read(text(BUNDLE).unwrap_or_default(), text(KEY).unwrap_or_default()).ok();
        let new = match read {
            Some(authority) if !authority.is_due(now) => return Ok(authority),
            Some(authority) => authority.renewed(now)?,
            None => Authority::create(now)?,
        };
        secret.data.get_or_insert_default().append(&mut data(&new));
        // It carries the version that was read: of two replicas one succeeds, and the other reads again.
        let replaced = self.secrets.replace(&self.place.secret, &PostParams::default(), &secret).await;
        replaced.map_err(at("updating the Secret"))?;
        tracing::info!(secret = self.place.secret, "renewed the certificate authority");
        Ok(new)
    }

    /// Lets the `APIService` trust the bundle.
    async fn register(&mut self, bundle: &str) -> Result<Registered, KeepError> {
        let found = self.registrations.get_opt(API_SERVICE).await.map_err(at("reading the APIService"))?;
        let Some(found) = found else {
            if !self.unregistered {
                tracing::warn!(
                    "APIService {API_SERVICE} does not exist: the API can't be reached through kube-apiserver"
                );
                self.unregistered = true;
            }
            return Ok(Registered::Missing);
        };
        self.unregistered = false;
        let spec = found.spec.unwrap_or_default();
        if spec.ca_bundle.is_some_and(|known| known.0 == bundle.as_bytes()) {
            return Ok(Registered::Already);
        }
        let wanted = ByteString(bundle.as_bytes().to_vec());
        let patch = json!({ "spec": { "caBundle": wanted, "insecureSkipTLSVerify": null } });
        let params =
            PatchParams { field_manager: Some("fluxion-inspector".to_owned()), ..PatchParams::default() };
        self.registrations
            .patch(API_SERVICE, &params, &Patch::Merge(patch))
            .await
            .map_err(at("patching the APIService"))?;
        tracing::info!("updated caBundle of APIService {API_SERVICE}");
        Ok(Registered::Changed)
    }

    /// Lets the webhooks trust the bundle.
    async fn trust(&mut self, bundle: &str) -> Result<Registered, KeepError> {
        if !self.place.webhook {
            return Ok(Registered::Already);
        }
        let name = &self.place.service;
        let found =
            self.webhooks.get_opt(name).await.map_err(at("reading the MutatingWebhookConfiguration"))?;
        let Some(found) = found else { return Ok(Registered::Missing) };
        let trusts =
            |known: &Option<ByteString>| known.as_ref().is_some_and(|known| known.0 == bundle.as_bytes());
        let all = found.webhooks.unwrap_or_default();
        let behind = all.iter().filter(|webhook| !trusts(&webhook.client_config.ca_bundle));
        let wanted = ByteString(bundle.as_bytes().to_vec());
        let patches: Vec<_> = behind
            .map(|webhook| json!({ "name": webhook.name, "clientConfig": { "caBundle": wanted } }))
            .collect();
        if patches.is_empty() {
            return Ok(Registered::Already);
        }
        let patch = json!({ "webhooks": patches });
        self.webhooks
            .patch(name, &PatchParams::default(), &Patch::Strategic(patch))
            .await
            .map_err(at("patching the MutatingWebhookConfiguration"))?;
        tracing::info!("updated caBundle of MutatingWebhookConfiguration {name}");
        Ok(Registered::Changed)
    }
}

/// The most urgent last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Registered {
    Already,
    Missing,
    Changed,
}

fn data(authority: &Authority) -> BTreeMap<String, ByteString> {
    [(BUNDLE, &authority.bundle), (KEY, &authority.key)]
        .map(|(key, text)| (key.to_owned(), ByteString(text.clone().into_bytes())))
        .into()
}

#[cfg(test)]
mod tests;
