//! Connects to an inspector configured by files (`server.json`, a token file), and reads them again when it was
//! restarted, because its token and possibly its address have changed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use fluxion_api::client::{Answer, Call, Direct, Error, Transport};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::files::{read_server_file, read_token};
use crate::failure::Failure;

/// Where the URL and token are stored.
pub(super) enum AddressSource {
    /// Both in `server.json`, unless there is a separate token file. With `only`, an inspector that has moved
    /// to another URL is not followed.
    ServerFile { path: PathBuf, only: Option<String>, token_file: Option<PathBuf> },
    /// The URL is specified, the token is in a file.
    Url { url: String, token_file: PathBuf, certificates: Option<Vec<u8>> },
}

/// URL and token of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    url: String,
    token: String,
}

impl AddressSource {
    /// Reads the current contents of the files; `None` if there is no inspector to follow.
    fn read(&self) -> Result<Option<Target>, Failure> {
        match self {
            Self::ServerFile { path, only, token_file } => {
                let Some(found) = read_server_file(path)? else { return Ok(None) };
                if only.as_ref().is_some_and(|only| *only != found.url) {
                    return Ok(None);
                }
                let token = token_file.as_deref().map_or(Ok(found.token), read_token)?;
                Ok(Some(Target { url: found.url, token }))
            }
            Self::Url { url, token_file, .. } => {
                Ok(Some(Target { url: url.clone(), token: read_token(token_file)? }))
            }
        }
    }

    fn connect(&self, target: &Target) -> Result<Direct, Error> {
        let certificates = match self {
            Self::ServerFile { .. } => None,
            Self::Url { certificates, .. } => certificates.as_deref(),
        };
        Direct::new(&target.url, Some(target.token.clone()), certificates)
    }
}

/// The inspector configured by the files.
pub(super) struct FromFile {
    source: AddressSource,
    current: Mutex<(Target, Arc<Direct>)>,
}

impl FromFile {
    /// The current inspector of `source`; `None` if there is none.
    pub(super) fn new(source: AddressSource) -> Result<Option<Self>, Failure> {
        let Some(target) = source.read()? else { return Ok(None) };
        let direct = source.connect(&target).map_err(|error| match &source {
            AddressSource::ServerFile { path, token_file: None, .. } => Failure::new(
                fluxion_api::Exit::Other,
                format!(
                    "invalid server file {}: {error}; delete it and restart the inspector",
                    path.display()
                ),
            ),
            _ => error.into(),
        })?;
        Ok(Some(Self { source, current: Mutex::new((target, Arc::new(direct))) }))
    }

    fn current(&self) -> Arc<Direct> {
        // The pair is replaced as a whole, so a panic elsewhere can't have left half of it.
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// The inspector currently configured by the files, if it has changed.
    fn successor(&self) -> Option<Arc<Direct>> {
        // Half-written files are read again at the next attempt.
        let target = self.source.read().ok()??;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 == target {
            return None;
        }
        let direct = Arc::new(self.source.connect(&target).ok()?);
        *current = (target, Arc::clone(&direct));
        Some(direct)
    }
}

impl Transport for FromFile {
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, Error>> {
        async move {
            let first = self.current().send(call.clone()).await;
            if !matches!(&first, Err(Error::Unreachable { .. }) | Ok(Answer { status: 401, .. })) {
                return first;
            }
            match self.successor() {
                Some(direct) => direct.send(call).await,
                None => first,
            }
        }
        .boxed()
    }

    fn server(&self) -> String {
        self.current().server()
    }
}
