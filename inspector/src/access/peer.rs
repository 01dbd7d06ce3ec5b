//! The other end of a connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustls::pki_types::CertificateDer;

/// The other end of a TLS connection. Clones share what was found out about it.
#[derive(Clone, Debug)]
pub struct Peer {
    pub address: SocketAddr,
    /// The client certificate with its intermediates, whose key the peer has proved to hold. Empty: none. Nothing says
    /// yet who signed it.
    pub certificates: Arc<[CertificateDer<'static>]>,
    /// What the chain was found to be.
    pub(super) proved: Arc<Mutex<Option<Proved>>>,
}

/// What was found out about a peer's certificates, under which trust, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proved {
    pub trust: u64,
    pub at: Instant,
    pub is_front_proxy: bool,
}

impl Peer {
    /// A peer that showed these certificates.
    pub fn new(address: SocketAddr, certificates: Vec<CertificateDer<'static>>) -> Self {
        Self { address, certificates: certificates.into(), proved: Arc::default() }
    }
}

/// What one sender counts as: an IPv4 address, or an IPv6 network of 64 bits, of which one machine has all addresses.
pub fn sender(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_machine_are_one_sender() {
        let of = |text: &str| sender(text.parse().unwrap()).to_string();
        assert_eq!((of("192.0.2.1"), of("::ffff:192.0.2.1")), ("192.0.2.1".into(), "192.0.2.1".into()));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8::1"));
    }
}
