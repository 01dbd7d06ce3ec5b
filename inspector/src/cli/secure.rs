//! Flags of the secure port.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Where the API is served over TLS, and with which certificate.
#[derive(Clone, Debug, Args)]
pub struct SecureOptions {
    /// Address of the HTTPS API that kube-apiserver forwards requests to, e.g. 0.0.0.0:8443 [default: none].
    ///
    /// Users are authenticated and authorized by the cluster.
    #[arg(long, value_name = "ADDR", value_parser = address, help_heading = "Secure port")]
    pub secure_listen: Option<SocketAddr>,
    /// Serving certificate (PEM, with intermediates); read again when it changes [default: one issued by a
    /// certificate authority that is kept in --tls-secret and trusted by kube-apiserver].
    #[arg(
        long,
        value_name = "FILE",
        requires_all = ["tls_private_key_file", "secure_listen"],
        help_heading = "Secure port"
    )]
    pub tls_cert_file: Option<PathBuf>,
    /// Private key of --tls-cert-file (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert_file", help_heading = "Secure port")]
    pub tls_private_key_file: Option<PathBuf>,
    /// Name of the Secret with the certificate authority, in the namespace of the Lease.
    #[arg(long, value_name = "NAME", default_value = "fluxion-inspector-tls", help_heading = "Secure port")]
    pub tls_secret: String,
    /// Name of the Service in front of the secure port, in the namespace of the Lease.
    #[arg(long, value_name = "NAME", default_value = "fluxion-inspector", help_heading = "Secure port")]
    pub service: String,
    /// Serve the admission webhook on the secure port.
    ///
    /// Its configuration has the name of --service, and is made to trust the certificate authority in --tls-secret.
    #[arg(long, requires = "secure_listen", help_heading = "Secure port")]
    pub admission_webhook: bool,
    /// Audience that tokens sent to the secure port must be issued for; may be repeated [default: the API server].
    #[arg(long = "token-audience", value_name = "AUDIENCE", help_heading = "Secure port")]
    pub token_audiences: Vec<String>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be ADDRESS:PORT, e.g. 0.0.0.0:8443".to_owned())
}
