//! Which peers are the front proxy.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use http::HeaderMap;
use rustls::pki_types::UnixTime;

use super::trust::Trust;
use crate::access::peer::Peer;
use crate::access::user::User;

/// The front proxy, as far as it is known yet.
#[derive(Debug, Default)]
pub struct FrontProxy {
    trust: ArcSwapOption<Trust>,
}

impl FrontProxy {
    /// From now on this counts; `None`: nobody is trusted.
    pub fn set(&self, trust: Option<Trust>) {
        self.trust.store(trust.map(Arc::new));
    }

    /// Whether the peer has proved to be the front proxy.
    pub fn is(&self, peer: &Peer) -> bool {
        self.trust_in(peer).is_some()
    }

    /// The user that a front proxy names in the headers; `None` for everybody else.
    pub(in crate::access) fn user(&self, peer: &Peer, headers: &HeaderMap) -> Option<User> {
        self.trust_in(peer)?.user(headers)
    }

    /// The trust, if this peer has it.
    fn trust_in(&self, peer: &Peer) -> Option<Arc<Trust>> {
        let trust = self.trust.load_full()?;
        let is_front_proxy =
            peer.is_front_proxy.known_or(trust.number, || trust.accepts(&peer.certificates, UnixTime::now()));
        is_front_proxy.then_some(trust)
    }
}
