//! The commands attach and remove.

use fluxion::formats::idset::Idset;
use fluxion::formats::{ReadError, jgf};
use fluxion::matcher::{Failure, JobId};

use crate::session::Session;

/// Why a graph is not attached.
struct Refused(String);

impl From<ReadError> for Refused {
    fn from(error: ReadError) -> Self {
        Self(error.to_string())
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self(failure.message)
    }
}

/// `attach JGF_FILE`
pub(super) fn attach(session: &mut Session<'_>, words: &[&str]) {
    let Some(bytes) = session.read_file(words[1]) else { return };
    let attached = jgf::check(&bytes)
        .map_err(Refused::from)
        .and_then(|()| session.engine.attach(|graph| jgf::add(graph, &bytes).map_err(Refused::from)));
    if let Err(Refused(message)) = attached {
        let text = format!(
            "ERROR: can't attach JGF subgraph \nERROR: add_subgraph: ERROR: add subgraph error: Invalid argument\nadd_subgraph: ERROR: reader returned error: {message}\n\n"
        );
        session.output.error(&text);
    }
}

/// `remove PATH true` or `remove RANKS false`
pub(super) fn remove(session: &mut Session<'_>, words: &[&str]) {
    let removed = match words[2] {
        "true" => session
            .engine
            .remove_path(words[1])
            .map_err(|failure| format!("ERROR: can't remove subgraph \nERROR: {}\n", failure.message)),
        "false" => remove_ranks(session, words[1]),
        _ => Err("ERROR: invalid path boolean input \n".to_owned()),
    };
    match removed {
        Ok(ended) => ended.into_iter().for_each(|job| session.unregister(job)),
        Err(message) => session.output.error(&message),
    }
}

fn remove_ranks(session: &mut Session<'_>, text: &str) -> Result<Vec<JobId>, String> {
    let failed = || "ERROR: failed to decode ranks.\n".to_owned();
    let set = Idset::parse(text).map_err(|_| failed())?;
    if set.len() > session.engine.graph().limit() as u64 {
        return Err(failed());
    }
    let ranks: Vec<i32> =
        set.iter().map(|rank| i32::try_from(rank).map_err(|_| failed())).collect::<Result<_, _>>()?;
    session
        .engine
        .remove_ranks(&ranks)
        .map_err(|failure| format!("ERROR: can't partial cancel subgraph \nERROR: {}\n", failure.message))
}
