//! An authority of our own that is kept in a Secret, which all replicas share.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use sha2::{Digest as _, Sha256};

use super::authority::Authority;
use super::certificate::TlsError;
use crate::logs::kube_error;

/// How often it is looked at.
pub(super) const EVERY: Duration = Duration::from_mins(1);
/// And while something is amiss.
pub(super) const SOON: Duration = Duration::from_secs(5);

const BUNDLE: &str = "ca.crt";
const KEY: &str = "ca.key";

/// Why certificates can't be maintained.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeepError {
    #[error("{what}: {}", kube_error(.source))]
    Kube { what: &'static str, source: kube::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
}

pub(super) fn at(what: &'static str) -> impl FnOnce(kube::Error) -> KeepError {
    move |source| KeepError::Kube { what, source }
}

/// The Secret with the authority.
pub(super) struct KeptAuthority {
    secrets: Api<Secret>,
    secret: String,
    /// What was last in it: certificates of this authority may still be shown by any replica.
    known: Option<Authority>,
}

impl KeptAuthority {
    pub(super) fn new(client: Client, namespace: &str, secret: &str) -> Self {
        Self { secrets: Api::namespaced(client, namespace), secret: secret.to_owned(), known: None }
    }

    /// The authority in the Secret; made or renewed there where that is necessary.
    pub(super) async fn read(&mut self, now: SystemTime) -> Result<Authority, KeepError> {
        let authority = self.read_or_write(now).await?;
        self.known = Some(authority.clone());
        Ok(authority)
    }

    async fn read_or_write(&self, now: SystemTime) -> Result<Authority, KeepError> {
        let kept = self.secrets.get_opt(&self.secret).await.map_err(at("reading the Secret"))?;
        let Some(mut secret) = kept else {
            let new = self.another(now)?;
            self.create(&new).await?;
            tracing::info!(secret = self.secret, "created a certificate authority");
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
            None => self.another(now)?,
        };
        secret.data.get_or_insert_default().append(&mut data(&new));
        // It carries the version that was read: of two replicas one succeeds, and the other reads again.
        let replaced = self.secrets.replace(&self.secret, &PostParams::default(), &secret).await;
        replaced.map_err(at("updating the Secret"))?;
        tracing::info!(secret = self.secret, "renewed the certificate authority");
        Ok(new)
    }

    /// A new authority. If there was one before, it is trusted beside the new one for as long as it lasts.
    fn another(&self, now: SystemTime) -> Result<Authority, TlsError> {
        self.known.as_ref().map_or_else(|| Authority::create(now), |known| known.renewed(now))
    }

    /// Creates the Secret by server-side apply: RBAC can allow that for a single name. Each attempt is a manager of its own,
    /// so of two replicas the second one has a conflict, and reads again.
    async fn create(&self, new: &Authority) -> Result<(), KeepError> {
        let mut secret = Secret { type_: Some("Opaque".to_owned()), ..Secret::default() };
        secret.metadata.name = Some(self.secret.clone());
        secret.data = Some(data(new));
        let digest = Sha256::digest(&new.bundle);
        let manager = digest.iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
        let params = PatchParams::apply(&format!("fluxion-inspector-{manager:016x}"));
        let applied = self.secrets.patch(&self.secret, &params, &Patch::Apply(&secret)).await;
        applied.map(drop).map_err(at("creating the Secret"))
    }
}

fn data(authority: &Authority) -> BTreeMap<String, ByteString> {
    [(BUNDLE, &authority.bundle), (KEY, &authority.key)]
        .map(|(key, text)| (key.to_owned(), ByteString(text.clone().into_bytes())))
        .into()
}
