//! A certificate in files that others renew, such as those of a mounted Secret.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::certificate::{ServingCertificate, TlsError};

/// The files are read this often.
const EVERY: Duration = Duration::from_secs(10);

/// Why files can't be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("can't read {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", path.display())]
    Invalid { path: PathBuf, source: TlsError },
}

/// Files with a certificate chain and its key, in PEM.
pub struct Files {
    certificate: PathBuf,
    key: PathBuf,
    shown: (String, String),
    serving: Arc<ServingCertificate>,
}

impl Files {
    /// Shows what the files hold now.
    pub fn open(certificate: &Path, key: &Path, serving: Arc<ServingCertificate>) -> Result<Self, FileError> {
        let shown = (String::new(), String::new());
        let mut files = Self { certificate: certificate.to_owned(), key: key.to_owned(), shown, serving };
        files.refresh()?;
        Ok(files)
    }

    /// Shows what they hold now, when that is something else; whether it is.
    fn refresh(&mut self) -> Result<bool, FileError> {
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|source| FileError::Io { path: path.to_owned(), source })
        };
        let held = (read(&self.certificate)?, read(&self.key)?);
        if held == self.shown {
            return Ok(false);
        }
        self.serving
            .set(&held.0, &held.1)
            .map_err(|source| FileError::Invalid { path: self.certificate.clone(), source })?;
        self.shown = held;
        Ok(true)
    }

    /// Follows the files; never ends. While they can't be used, the last certificate is shown.
    pub async fn follow(mut self) {
        let mut complained = false;
        loop {
            tokio::time::sleep(EVERY).await;
            match self.refresh() {
                Ok(false) => complained = false,
                Ok(true) => {
                    tracing::info!(file = %self.certificate.display(), "loaded a new serving certificate");
                    complained = false;
                }
                // One of two files may be newer for a moment.
                Err(error) if !complained => {
                    tracing::warn!(%error, "failed to read the serving certificate");
                    complained = true;
                }
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn renewed_files_are_taken_and_broken_ones_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let (certificate, key) = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
        let write = |(one, other): &(String, String)| {
            std::fs::write(&certificate, one).unwrap();
            std::fs::write(&key, other).unwrap();
        };
        let serving = Arc::new(ServingCertificate::default());
        let open = || Files::open(&certificate, &key, Arc::clone(&serving));
        assert!(matches!(open(), Err(FileError::Io { .. })));
        let (first, second) = (pair(), pair());
        write(&first);
        let mut files = open().unwrap();
        assert!(serving.is_set() && !files.refresh().unwrap());
        let shown = serving.0.load_full();
        write(&(second.0.clone(), first.1.clone()));
        assert!(files.refresh().is_err(), "a key of another certificate");
        assert!(Arc::ptr_eq(&shown.unwrap(), &serving.0.load_full().unwrap()));
        write(&second);
        assert!(files.refresh().unwrap());
        for broken in [("", ""), (&*second.0, "key"), ("certificate", &*second.1)] {
            write(&(broken.0.to_owned(), broken.1.to_owned()));
            assert!(files.refresh().is_err());
        }
    }
}
