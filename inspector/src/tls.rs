//! The certificates of the secure port: the serving certificate, from files ([`files`]) or of an authority of our own
//! ([`own`]), and those that replicas know each other by ([`replica`]).

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::ResolvesServerCert;

pub mod authority;
mod certificate;
mod client_certificate;
pub mod files;
mod kept;
pub mod own;
pub mod replica;

pub use certificate::{ServingCertificate, TlsError, common_name};
use client_certificate::AnyCertificate;

/// A server that shows one of these certificates, and asks for one of the client without demanding it.
pub fn server_config(certificate: Arc<dyn ResolvesServerCert>) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients = Arc::new(AnyCertificate::new(&provider));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
