//! Kubeconfig files: one cluster, one user, one context each. They are JSON, which is YAML too.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// How the user of a kubeconfig proves who it is.
pub(crate) enum Credentials {
    /// Files of a client certificate and its key.
    Certificate { certificate: PathBuf, key: PathBuf },
    /// A bearer token.
    Token(String),
}

/// Writes a kubeconfig that only its owner can read.
pub(crate) fn write(
    path: &Path,
    server: &str,
    authority: &Path,
    credentials: &Credentials,
    namespace: &str,
) -> Result<()> {
    let text = content(server, authority, credentials, namespace).to_string();
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))
            .with_context(|| format!("protecting {}", path.display()))?;
    }
    Ok(())
}

fn content(server: &str, authority: &Path, credentials: &Credentials, namespace: &str) -> Value {
    let user = match credentials {
        Credentials::Certificate { certificate, key } => {
            json!({ "client-certificate": certificate, "client-key": key })
        }
        Credentials::Token(token) => json!({ "token": token }),
    };
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "fluxion-tests", "cluster": { "server": server, "certificate-authority": authority } }],
        "users": [{ "name": "user", "user": user }],
        "contexts": [{
            "name": "fluxion-tests",
            "context": { "cluster": "fluxion-tests", "user": "user", "namespace": namespace },
        }],
        "current-context": "fluxion-tests",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kube_reads_what_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        let token = Credentials::Token("secret".to_owned());
        write(&path, "https://127.0.0.1:1", Path::new("/ca.crt"), &token, "team").unwrap();
        let read = kube::config::Kubeconfig::read_from(&path).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("fluxion-tests"));
        let context = read.contexts[0].context.as_ref().unwrap();
        assert_eq!(context.namespace.as_deref(), Some("team"));
    }
}
