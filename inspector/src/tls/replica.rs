//! How replicas know each other: each shows, as a server and as a client, a certificate of an authority that exists only for
//! this, and is kept in a Secret that they share.
//!
//! It is independent of the serving certificate that users and kube-apiserver see, which may come from files: a server shows
//! one or the other depending on the name that the client asks for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use arc_swap::ArcSwapOption;
use kube::Client;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};

use super::authority::{Authority, Issued};
use super::certificate::{ServingCertificate, TlsError, certified, common_name};
use super::kept::{EVERY, KeepError, KeptAuthority, SOON};

/// The name of every replica. It is not one of the DNS, so that no other server has a certificate for it.
pub const REPLICA: &str = "fluxion-inspector-replica";

/// What a replica shows to others, and whom it trusts; replaced while connections stand.
#[derive(Debug, Default)]
pub struct ReplicaTls {
    current: ArcSwapOption<Current>,
    numbers: AtomicU64,
}

#[derive(Debug)]
struct Current {
    /// Tells it from all others of this process.
    number: u64,
    clients: Arc<dyn ClientCertVerifier>,
    client: Arc<ClientConfig>,
    shown: Arc<CertifiedKey>,
}

impl ReplicaTls {
    /// From now on, shows this certificate, and trusts those of the bundle (PEM).
    pub fn set(&self, bundle: &str, issued: &Issued) -> Result<(), TlsError> {
        let invalid = |error: &dyn std::fmt::Display| TlsError::Certificate(error.to_string());
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
            roots.add(root.map_err(|error| invalid(&error))?)?;
        }
        let (roots, provider) = (Arc::new(roots), Arc::new(default_provider()));
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let clients = clients.build().map_err(|error| invalid(&error))?;
        let servers = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider));
        let servers = servers.build().map_err(|error| invalid(&error))?;
        let shown = certified(&issued.certificate, &issued.key)?;
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_webpki_verifier(servers)
            .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(shown.clone())));
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let current = Current { number, clients, client: Arc::new(client), shown: Arc::new(shown) };
        self.current.store(Some(Arc::new(current)));
        Ok(())
    }

    /// The number of what is shown and trusted now; zero: nothing yet.
    pub fn number(&self) -> u64 {
        self.current.load().as_ref().map_or(0, |current| current.number)
    }

    /// Whether a client's certificate with these intermediates is that of a replica.
    pub fn accepts(&self, certificates: &[CertificateDer<'_>], now: UnixTime) -> bool {
        let current = self.current.load();
        let (Some(current), Some((certificate, intermediates))) = (&*current, certificates.split_first())
        else {
            return false;
        };
        common_name(certificate).is_some_and(|name| name == REPLICA)
            && current.clients.verify_client_cert(certificate, intermediates, now).is_ok()
    }

    /// For connections to another replica, which has to be asked for as [`REPLICA`]; with its number.
    pub fn client(&self) -> Option<(u64, Arc<ClientConfig>)> {
        self.current.load().as_ref().map(|current| (current.number, Arc::clone(&current.client)))
    }
}

/// Shows the serving certificate, or to those who ask for a replica, that of the replica.
#[derive(Debug)]
pub struct ShownCertificates {
    pub serving: Arc<ServingCertificate>,
    pub replica: Arc<ReplicaTls>,
}

impl ResolvesServerCert for ShownCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if hello.server_name() == Some(REPLICA) {
            return self.replica.current.load().as_ref().map(|current| Arc::clone(&current.shown));
        }
        self.serving.resolve(hello)
    }
}

/// Keeps the authority and the certificate current.
pub struct ReplicaKeeper {
    authority: KeptAuthority,
    replica: Arc<ReplicaTls>,
    /// The certificate, who signed it, and the bundle that is trusted.
    shown: Option<(Issued, String, String)>,
}

impl ReplicaKeeper {
    /// Keeps them in this Secret.
    pub fn new(client: Client, namespace: &str, secret: &str, replica: Arc<ReplicaTls>) -> Self {
        Self { authority: KeptAuthority::new(client, namespace, secret), replica, shown: None }
    }

    /// Goes on for ever; what fails is tried again.
    pub async fn run(mut self) {
        let mut complained = String::new();
        loop {
            let pause = match self.look(SystemTime::now()).await {
                Ok(()) => {
                    complained.clear();
                    EVERY
                }
                Err(error) => {
                    let error = error.to_string();
                    if error != complained {
                        tracing::warn!(error, "failed to maintain the certificate for other inspectors");
                        complained = error;
                    }
                    SOON
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn look(&mut self, now: SystemTime) -> Result<(), KeepError> {
        let authority = self.authority.read(now).await?;
        Ok(self.update(authority, now)?)
    }

    /// A certificate is used until it is due or its signer is not trusted any more: others may not have heard of a new
    /// authority yet.
    fn update(&mut self, authority: Authority, now: SystemTime) -> Result<(), TlsError> {
        let kept = self.shown.take().filter(|(issued, by, _)| issued.renew_at > now && authority.trusts(by));
        let (issued, by) = match kept {
            Some((issued, by, bundle)) if bundle == authority.bundle => {
                self.shown = Some((issued, by, bundle));
                return Ok(());
            }
            Some((issued, by, _)) => (issued, by),
            None => (authority.issue_peer(REPLICA, now)?, authority.fingerprint()),
        };
        self.replica.set(&authority.bundle, &issued)?;
        self.shown = Some((issued, by, authority.bundle));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
