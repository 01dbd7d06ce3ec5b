//! A serving certificate of an authority of our own, which all replicas share through a Secret and the `APIService` names.

use std::sync::Arc;
use std::time::SystemTime;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

use super::authority::{Authority, Issued};
use super::certificate::ServingCertificate;
use super::kept::{EVERY, KeepError, KeptAuthority, SOON, at};

/// Name of our `APIService`: `VERSION.GROUP`.
const API_SERVICE: &str = "v1alpha1.fluxion.flux-framework.org";

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

/// Keeps authority, `APIService` and certificate.
pub struct Keeper {
    authority: KeptAuthority,
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
            authority: KeptAuthority::new(client.clone(), &place.namespace, &place.secret),
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
        let authority = self.authority.read(now).await?;
        if self.shown.is_none() {
            // Nobody can connect yet: at once, whatever comes of the rest.
            self.show(&authority, now)?;
        }
        let seen = [self.register(&authority.bundle).await?, self.trust(&authority.bundle).await?];
        let looked = if seen.contains(&Registered::Missing) { Looked::Again } else { Looked::Fine };
        let Some((issued, bundle)) = &self.shown else { return Ok(Looked::Again) };
        if *bundle == authority.bundle && issued.renew_at > now {
            return Ok(looked);
        }
        if seen.contains(&Registered::Changed) {
            // Clients have to learn whom to trust before they see what that one signed.
            return Ok(Looked::Again);
        }
        self.show(&authority, now)?;
        Ok(looked)
    }

    fn show(&mut self, authority: &Authority, now: SystemTime) -> Result<(), KeepError> {
        let issued = authority.issue(&self.place.names(), now)?;
        self.serving.set(&issued.certificate, &issued.key)?;
        tracing::info!(service = self.place.service, "issued a serving certificate");
        self.shown = Some((issued, authority.bundle.clone()));
        Ok(())
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

/// Whether an object trusts the authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registered {
    Already,
    Missing,
    Changed,
}

#[cfg(test)]
mod tests;
