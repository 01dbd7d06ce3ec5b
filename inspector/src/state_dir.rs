//! The state directory of a running inspector: locked by one process, with the file that says how to connect.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use fluxion_api::server_file::{self, ServerFile};

/// Why the directory can't be used.
#[derive(Debug, thiserror::Error)]
pub enum StateDirError {
    #[error("no state directory: set --state-dir, XDG_STATE_HOME or HOME")]
    NoPlace,
    #[error(
        "{path}: another inspector{} is using this state directory: stop it, or use another --state-dir",
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    InUse { path: PathBuf, pid: Option<u32> },
    #[error("{path} is not a directory: choose another --state-dir")]
    NoFolder { path: PathBuf },
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("can't generate a token: no random numbers available")]
    Random,
}

/// The directory, locked by this process until this is dropped, which also removes `server.json`.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    /// The lock.
    _lock: File,
}

impl StateDir {
    /// Creates the directory (mode 0700) if it doesn't exist, and locks it. Default: `$XDG_STATE_HOME/fluxion`.
    pub fn claim(path: Option<&Path>) -> Result<Self, StateDirError> {
        let path = match path {
            Some(path) => path.to_path_buf(),
            None => server_file::state_dir().ok_or(StateDirError::NoPlace)?,
        };
        let failed = |source| StateDirError::Io { path: path.clone(), source };
        if path.exists() && !path.is_dir() {
            return Err(StateDirError::NoFolder { path });
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        let failed = |source| StateDirError::Io { path: path.join("lock"), source };
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path.join("lock"))
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(std::fs::TryLockError::WouldBlock) => {
                let pid = server_file::read(&path).map(|found| found.pid);
                Err(StateDirError::InUse { path, pid })
            }
            Err(std::fs::TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// Absolute, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory itself, or a subdirectory (created with mode 0700 if it doesn't exist).
    pub fn folder(&self, inside: Option<&str>) -> Result<PathBuf, StateDirError> {
        let path = self.path.join(inside.unwrap_or_default());
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|source| StateDirError::Io { path: path.clone(), source })?;
        Ok(path)
    }

    /// Writes `server.json` (mode 0600, atomically) and returns its content, including the token.
    pub fn announce(&self, listen: SocketAddr, cluster_id: &str) -> Result<ServerFile, StateDirError> {
        let content = ServerFile {
            url: format!("http://{listen}"),
            pid: std::process::id(),
            cluster_id: cluster_id.to_owned(),
            token: token()?,
        };
        let (path, part) = (self.server_file(), self.path.join("server.json.part"));
        let failed = |source| StateDirError::Io { path: path.clone(), source };
        // A leftover temporary file may have another mode, which must not be kept.
        if let Err(source) = std::fs::remove_file(&part)
            && source.kind() != std::io::ErrorKind::NotFound
        {
            return Err(failed(source));
        }
        let mut file =
            OpenOptions::new().create_new(true).write(true).mode(0o600).open(&part).map_err(failed)?;
        let text = serde_json::to_vec_pretty(&content).map_err(|error| failed(error.into()))?;
        file.write_all(&text).map_err(failed)?;
        std::fs::rename(&part, &path).map_err(failed)?;
        Ok(content)
    }

    fn server_file(&self) -> PathBuf {
        self.path.join("server.json")
    }
}

impl Drop for StateDir {
    /// The server is no longer reachable. If the file can't be removed, clients will notice.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.server_file());
    }
}

/// 256 random bits, in hex.
fn token() -> Result<String, StateDirError> {
    let mut bytes = [0_u8; 32];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| StateDirError::Random)?;
    Ok(bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|half| char::from_digit(half.into(), 16))
        .collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn one_process_has_it_and_only_its_owner_reads_the_token() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let claimed = StateDir::claim(Some(&path)).unwrap();
        assert!(matches!(StateDir::claim(Some(&path)), Err(StateDirError::InUse { .. })));
        let said = claimed.announce("127.0.0.1:4711".parse().unwrap(), "c").unwrap();
        assert_eq!((said.url.as_str(), said.token.len()), ("http://127.0.0.1:4711", 64));
        let file = path.join("server.json");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let read: ServerFile = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(read, said);
        assert!(matches!(StateDir::claim(Some(&file)), Err(StateDirError::NoFolder { .. })));
        drop(claimed);
        assert!(!file.exists());
        StateDir::claim(Some(&path)).unwrap();
    }
}
