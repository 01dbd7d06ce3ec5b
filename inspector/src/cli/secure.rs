//! Flags of the secure port.

use std::net::{IpAddr, SocketAddr};
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
    /// Name of the Secret with the certificate authority by which inspectors know each other when they forward requests
    /// to the leader, in the namespace of the Lease.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "fluxion-inspector-replicas",
        help_heading = "Secure port"
    )]
    pub replica_secret: String,
    /// Address at which other inspectors reach the secure port, with or without a port [default: that of
    /// --secure-listen, unless it is unspecified, such as 0.0.0.0].
    #[arg(
        long,
        value_name = "IP[:PORT]",
        value_parser = advertised,
        requires = "secure_listen",
        help_heading = "Secure port"
    )]
    pub advertise_address: Option<AdvertisedAddress>,
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

/// An address to be reached at; without a port, that of the listener counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvertisedAddress {
    pub ip: IpAddr,
    pub port: Option<u16>,
}

impl SecureOptions {
    /// Where others reach what listens at this address, if that is known.
    pub fn advertised(&self, listening: SocketAddr) -> Option<SocketAddr> {
        match self.advertise_address {
            Some(AdvertisedAddress { ip, port }) => Some((ip, port.unwrap_or(listening.port())).into()),
            None => (!listening.ip().is_unspecified()).then_some(listening),
        }
    }
}

fn advertised(text: &str) -> Result<AdvertisedAddress, String> {
    let with_port = |address: SocketAddr| AdvertisedAddress { ip: address.ip(), port: Some(address.port()) };
    text.parse::<SocketAddr>()
        .map(with_port)
        .or_else(|_| text.parse().map(|ip| AdvertisedAddress { ip, port: None }))
        .ok()
        .filter(|address| !address.ip.is_unspecified() && address.port != Some(0))
        .ok_or_else(|| "must be the IP address of this inspector, with or without a port".to_owned())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be ADDRESS:PORT, e.g. 0.0.0.0:8443".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advertised_address_has_a_port_and_can_be_reached() {
        let ip = |text: &str, port| Some(AdvertisedAddress { ip: text.parse().unwrap(), port });
        for (text, expected) in [
            ("192.0.2.1", ip("192.0.2.1", None)),
            ("192.0.2.1:9443", ip("192.0.2.1", Some(9443))),
            ("2001:db8::1", ip("2001:db8::1", None)),
            ("[2001:db8::1]:9443", ip("2001:db8::1", Some(9443))),
            ("0.0.0.0", None),
            ("[::]:1", None),
            ("192.0.2.1:0", None),
            ("fluxion.example.org", None),
            ("", None),
        ] {
            assert_eq!(advertised(text).ok(), expected, "{text}");
        }
        let mut options = SecureOptions {
            secure_listen: None,
            tls_cert_file: None,
            tls_private_key_file: None,
            tls_secret: String::new(),
            admission_webhook: false,
            replica_secret: String::new(),
            advertise_address: None,
            service: String::new(),
            token_audiences: Vec::new(),
        };
        let (any, one) = ("0.0.0.0:8443".parse().unwrap(), "192.0.2.7:8443".parse().unwrap());
        assert_eq!((options.advertised(any), options.advertised(one)), (None, Some(one)));
        options.advertise_address = ip("192.0.2.7", None);
        assert_eq!(options.advertised(any), Some(one));
    }
}
