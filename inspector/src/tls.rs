//! The serving certificate of the secure port: from files ([`files`]) or of an authority of our own ([`own`]).

use std::sync::Arc;

use rustls::ServerConfig;

pub mod authority;
mod certificate;
mod client_certificate;
pub mod files;
pub mod own;

pub use certificate::{ServingCertificate, TlsError};
use client_certificate::AnyCertificate;

/// A server that shows this certificate, and asks for one of the client without demanding it.
pub fn server_config(certificate: Arc<ServingCertificate>) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients = Arc::new(AnyCertificate::new(&provider));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
