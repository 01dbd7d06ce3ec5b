//! Other inspectors, which forward requests to the leader: who proves with its certificate to be one may say in headers who
//! asks, like the front proxy.

use std::sync::Arc;

use http::HeaderMap;
use rustls::pki_types::UnixTime;

use super::headers::UserHeaders;
use super::peer::Peer;
use super::user::User;
use crate::tls::replica::ReplicaTls;

/// The other inspectors, as far as they can be known yet.
#[derive(Debug, Default)]
pub struct Replicas {
    tls: Arc<ReplicaTls>,
    headers: UserHeaders,
}

impl Replicas {
    pub(super) fn new(tls: Arc<ReplicaTls>) -> Self {
        Self { tls, headers: UserHeaders::default() }
    }

    /// Whether the peer has proved to be one.
    pub fn is(&self, peer: &Peer) -> bool {
        !peer.certificates.is_empty()
            && peer
                .is_replica
                .known_or(self.tls.number(), || self.tls.accepts(&peer.certificates, UnixTime::now()))
    }

    /// The user that another inspector names in the headers; `None` for everybody else.
    pub(super) fn user(&self, peer: &Peer, headers: &HeaderMap) -> Option<User> {
        if self.is(peer) { self.headers.user(headers) } else { None }
    }
}
