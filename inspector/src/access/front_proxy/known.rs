//! Which peers are the front proxy.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use http::HeaderMap;
use rustls::pki_types::UnixTime;

use super::trust::Trust;
use crate::access::peer::{Peer, Proved};
use crate::access::user::User;

/// What was found out about a peer holds for so long: certificates expire.
const PROVED_FOR: Duration = Duration::from_secs(30);

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
        let mut proved = peer.proved.lock().unwrap_or_else(PoisonError::into_inner);
        let known = proved.filter(|known| known.trust == trust.number && known.at.elapsed() < PROVED_FOR);
        let is_front_proxy = known
            .map_or_else(|| trust.accepts(&peer.certificates, UnixTime::now()), |known| known.is_front_proxy);
        if known.is_none() {
            *proved = Some(Proved { trust: trust.number, at: Instant::now(), is_front_proxy });
        }
        is_front_proxy.then_some(trust)
    }
}
