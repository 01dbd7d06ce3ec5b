//! `server.json`: address and token of a standalone inspector.
//!
//! It is stored in `$XDG_STATE_HOME/fluxion/` (default `~/.local/state/fluxion/`) with mode 0600: anyone who can
//! read it has administrator access.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Default listen address of an inspector: port 8181 on the loopback interface.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8181);

/// The content of `server.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerFile {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    pub pid: u32,
    /// Identifies the cluster.
    pub cluster_id: String,
    /// Bearer token.
    pub token: String,
}

/// Reads `server.json` from this directory; `None` if it does not exist or is invalid.
pub fn read(folder: &Path) -> Option<ServerFile> {
    serde_json::from_slice(&std::fs::read(folder.join("server.json")).ok()?).ok()
}

/// `$XDG_STATE_HOME/fluxion`, or `~/.local/state/fluxion`; `None` when neither variable is set.
pub fn state_dir() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|base| base.join("fluxion"))
}
