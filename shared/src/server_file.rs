//! `server.json`: where a standalone inspector says how it is reached.
//!
//! It lies in `$XDG_STATE_HOME/fluxion/` (default `~/.local/state/fluxion/`), mode 0600: who can read it is
//! administrator.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The content of `server.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerFile {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    pub pid: u32,
    /// Tells one cluster's state from another's.
    pub cluster_id: String,
    /// Bearer token.
    pub token: String,
}

/// `$XDG_STATE_HOME/fluxion`, or `~/.local/state/fluxion`; `None` when neither variable is set.
pub fn state_dir() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|base| base.join("fluxion"))
}
