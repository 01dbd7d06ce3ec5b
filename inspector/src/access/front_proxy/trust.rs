//! Whom to believe what headers say, and which: read from the `ConfigMap`'s data.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderMap;
use percent_encoding::percent_decode_str;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, UnixTime, pem::PemObject as _};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::access::user::User;

/// kube-apiserver sends the uid in this header, whether or not its configuration names one.
const UID_HEADER: &str = "x-remote-uid";
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
    username_headers: Vec<String>,
    uid_headers: Vec<String>,
    group_headers: Vec<String>,
    extra_prefixes: Vec<String>,
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
        let username_headers = lower(list(USERNAME)?);
        if username_headers.is_empty() {
            return Err(TrustError::Missing(USERNAME));
        }
        let mut uid_headers = lower(list("requestheader-uid-headers")?);
        if !uid_headers.iter().any(|name| name == UID_HEADER) {
            uid_headers.push(UID_HEADER.to_owned());
        }
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            verifier,
            allowed_names: list("requestheader-allowed-names")?,
            username_headers,
            uid_headers,
            group_headers: lower(list("requestheader-group-headers")?),
            extra_prefixes: lower(list("requestheader-extra-headers-prefix")?),
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
        let values = |name: &String| {
            headers.get_all(name).iter().filter_map(|value| String::from_utf8(value.as_bytes().to_vec()).ok())
        };
        let first = |names: &[String]| names.iter().flat_map(values).find(|value| !value.is_empty());
        let name = first(&self.username_headers)?;
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra_prefixes {
            for header in headers.keys() {
                let Some(key) = header.as_str().strip_prefix(prefix.as_str()) else { continue };
                let key = percent_decode_str(key)
                    .decode_utf8()
                    .map_or_else(|_| key.to_owned(), |key| key.to_lowercase());
                extra.entry(key).or_default().extend(values(&header.as_str().to_owned()));
            }
        }
        Some(User {
            name: name.into(),
            uid: first(&self.uid_headers).unwrap_or_default(),
            groups: self.group_headers.iter().flat_map(values).collect(),
            extra,
        })
    }
}

/// The common name of a certificate's subject.
fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let name = certificate.subject().iter_common_name().last()?;
    name.as_str().ok().map(str::to_owned)
}
