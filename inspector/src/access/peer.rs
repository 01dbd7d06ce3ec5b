//! The other end of a connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::pki_types::CertificateDer;

/// What was found out about a peer holds for so long: certificates expire.
const PROVED_FOR: Duration = Duration::from_secs(30);

/// The other end of a TLS connection. Clones share what was found out about it.
#[derive(Clone, Debug)]
pub struct Peer {
    pub address: SocketAddr,
    /// The client certificate with its intermediates, whose key the peer has proved to hold. Empty: none. Nothing says
    /// yet who signed it.
    pub certificates: Arc<[CertificateDer<'static>]>,
    /// Whether the chain was found to be that of the front proxy.
    pub(super) is_front_proxy: Arc<Proof>,
    /// And that of another inspector.
    pub(super) is_replica: Arc<Proof>,
}

/// What was found out about a peer's certificates, under which trust, and when.
#[derive(Debug, Default)]
pub(super) struct Proof(Mutex<Option<(u64, Instant, bool)>>);

impl Proof {
    /// What is known under the trust with this number, or else what `find` says.
    pub(super) fn known_or(&self, trust: u64, find: impl FnOnce() -> bool) -> bool {
        let mut proved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *proved {
            Some((number, at, found)) if number == trust && at.elapsed() < PROVED_FOR => found,
            _ => {
                let found = find();
                *proved = Some((trust, Instant::now(), found));
                found
            }
        }
    }
}

impl Peer {
    /// A peer that showed these certificates.
    pub fn new(address: SocketAddr, certificates: Vec<CertificateDer<'static>>) -> Self {
        Self {
            address,
            certificates: certificates.into(),
            is_front_proxy: Arc::default(),
            is_replica: Arc::default(),
        }
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
