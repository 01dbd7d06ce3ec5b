//! Asks the inspector that a `server.json` names, and reads that file again when the inspector was started
//! anew: it then has another token, and perhaps another address.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use fluxion_api::client::{Answer, Call, Direct, Error, Transport};
use fluxion_api::server_file::ServerFile;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::read_server_file;

/// The inspector named by a file.
pub(super) struct FromFile {
    path: PathBuf,
    /// Only an inspector at this address is asked, whatever the file says.
    only: Option<String>,
    /// What it was called when the program started.
    name: String,
    current: Mutex<(ServerFile, Arc<Direct>)>,
}

impl FromFile {
    /// The inspector of `found`, which was read from `path`. With `only_there`, one that has moved to another
    /// address is not followed.
    pub(super) fn new(path: PathBuf, found: ServerFile, only_there: bool) -> Result<Self, Error> {
        let direct = Arc::new(Direct::new(&found.url, Some(found.token.clone()), None)?);
        let only = only_there.then(|| found.url.clone());
        Ok(Self { path, only, name: found.url.clone(), current: Mutex::new((found, direct)) })
    }

    fn current(&self) -> Arc<Direct> {
        // The pair is replaced as a whole, so a panic elsewhere can't have left half of it.
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// The inspector that the file names now, if that is another one than before.
    fn successor(&self) -> Option<Arc<Direct>> {
        let found = read_server_file(&self.path).ok()??;
        if self.only.as_ref().is_some_and(|only| *only != found.url) {
            return None;
        }
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 == found {
            return None;
        }
        let direct = Arc::new(Direct::new(&found.url, Some(found.token.clone()), None).ok()?);
        *current = (found, Arc::clone(&direct));
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

    fn server(&self) -> &str {
        &self.name
    }
}
