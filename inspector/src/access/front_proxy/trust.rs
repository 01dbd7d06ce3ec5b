//! Whom to believe what headers say, and which: read from the `ConfigMap`'s data.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderMap;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, UnixTime, pem::PemObject as _};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use crate::access::headers::{UID, UserHeaders};
use crate::access::user::User;
use crate::tls::common_name;

/// Why nobody can be trusted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TrustError {
    #[error("{0} is not set")]
    Missing(&'static str),
    #[error("{key}: {why}")]
    Invalid { key: &'static str, why: String },
}

/// Whom to trust, and what then to read.
#[derive(Debug)]
pub struct Trust {
    /// Tells it from all others of this process.
    pub(super) number: u64,
    verifier: Arc<dyn ClientCertVerifier>,
    /// Common names; empty: any.
    allowed_names: Vec<String>,
    headers: UserHeaders,
}

impl Trust {
    /// From the data of the `ConfigMap`.
    pub fn read(data: &BTreeMap<String, String>) -> Result<Self, TrustError> {
        const CA: &str = "requestheader-client-ca-file";
        let authority = data.get(CA).filter(|text| !text.trim().is_empty()).ok_or(TrustError::Missing(CA))?;
        let bad = |why: String| TrustError::Invalid { key: CA, why };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
            let certificate = certificate.map_err(|error| bad(error.to_string()))?;
            roots.add(certificate).map_err(|error| bad(error.to_string()))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = verifier.build().map_err(|error| bad(error.to_string()))?;
        let list =
            |key: &'static str| match data.get(key).map(|text| text.trim()).filter(|text| !text.is_empty()) {
                None => Ok(Vec::new()),
                Some(text) => serde_json::from_str::<Vec<String>>(text)
                    .map_err(|error| TrustError::Invalid { key, why: error.to_string() }),
            };
        let lower =
            |names: Vec<String>| names.into_iter().map(|name| name.to_ascii_lowercase()).collect::<Vec<_>>();
        const USERNAME: &str = "requestheader-username-headers";
        let usernames = lower(list(USERNAME)?);
        if usernames.is_empty() {
            return Err(TrustError::Missing(USERNAME));
        }
        let mut uids = lower(list("requestheader-uid-headers")?);
        if !uids.iter().any(|name| name == UID) {
            uids.push(UID.to_owned());
        }
        let groups = lower(list("requestheader-group-headers")?);
        let extra_prefixes = lower(list("requestheader-extra-headers-prefix")?);
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            verifier,
            allowed_names: list("requestheader-allowed-names")?,
            headers: UserHeaders { usernames, uids, groups, extra_prefixes },
        })
    }

    /// Whether a certificate with these intermediates is that of a front proxy.
    pub(super) fn accepts(&self, certificates: &[CertificateDer<'_>], now: UnixTime) -> bool {
        let Some((certificate, intermediates)) = certificates.split_first() else { return false };
        self.verifier.verify_client_cert(certificate, intermediates, now).is_ok()
            && (self.allowed_names.is_empty()
                || common_name(certificate).is_some_and(|name| self.allowed_names.contains(&name)))
    }

    /// The user that the headers name.
    pub(super) fn user(&self, headers: &HeaderMap) -> Option<User> {
        self.headers.user(headers)
    }
}
