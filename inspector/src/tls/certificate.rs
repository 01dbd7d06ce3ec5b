//! The certificate that is shown, and replaced while connections stand.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// Why a certificate can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("invalid certificate: {0}")]
    Certificate(String),
    #[error("invalid private key: {0}")]
    Key(String),
    #[error("certificate and private key don't match: {0}")]
    Pair(#[from] rustls::Error),
    #[error("failed to create a certificate: {0}")]
    Create(#[from] rcgen::Error),
}

/// The common name of a certificate's subject.
pub fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let name = certificate.subject().iter_common_name().last()?;
    name.as_str().ok().map(str::to_owned)
}

/// A certificate chain and its key, given in PEM.
pub(super) fn certified(chain: &str, key: &str) -> Result<CertifiedKey, TlsError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain.as_bytes()).collect();
    let certificates = certificates.map_err(|error| TlsError::Certificate(error.to_string()))?;
    if certificates.is_empty() {
        return Err(TlsError::Certificate("there is none".to_owned()));
    }
    let key =
        PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| TlsError::Key(error.to_string()))?;
    Ok(CertifiedKey::from_der(certificates, key, &default_provider())?)
}

/// The certificate that is shown to those who connect from now on.
#[derive(Debug, Default)]
pub struct ServingCertificate(pub(super) ArcSwapOption<CertifiedKey>);

impl ServingCertificate {
    /// Shows a chain, given in PEM with its key.
    pub fn set(&self, chain: &str, key: &str) -> Result<(), TlsError> {
        self.0.store(Some(Arc::new(certified(chain, key)?)));
        Ok(())
    }

    /// Whether there is one.
    pub fn is_set(&self) -> bool {
        self.0.load().is_some()
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load_full()
    }
}
