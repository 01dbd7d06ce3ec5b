//! The commands cancel and partial-cancel.

use fluxion_core::document::Document;

use super::update::{Reader, read_document};
use crate::options::leading_number;
use crate::session::{SEPARATOR, Session};

/// `cancel JOBID [stats]`
pub(super) fn run(session: &mut Session<'_>, words: &[&str]) {
    let number = leading_number(words[1]);
    let known = u64::try_from(number)
        .ok()
        .filter(|id| session.allocations.contains(id) || session.reservations.contains(id));
    let Some(id) = known else {
        session.output.error(&format!("cancel: ERROR: nonexistent job {number}\n"));
        return;
    };
    match session.engine.cancel(id) {
        Ok(()) => session.unregister(id),
        Err(failure) => {
            let message = if failure.message.is_empty() { failure.errno.text() } else { &failure.message };
            let text = format!("ERROR: {message}\nERROR: error encountered while removing job {id}\n");
            session.output.error(&text);
        }
    }
    if words.get(2) == Some(&"stats") {
        let counts = session.engine.visits();
        stats(session, "CANCEL", counts);
    }
}

/// `partial-cancel JOBID FORMAT FILE [stats]`
pub(super) fn partial(session: &mut Session<'_>, words: &[&str]) {
    let number = leading_number(words[1]);
    let reader = match words[2] {
        "jgf" => Reader::Jgf,
        "rv1exec" => Reader::Rv1,
        other => {
            session.output.error(&format!("ERROR: unsupported reader {other}\n"));
            return;
        }
    };
    let Some(bytes) = session.read_file(words[3]) else { return };
    let id = u64::try_from(number).ok();
    if id.is_some_and(|id| session.reservations.contains(&id)) {
        session.output.error("ERROR: reservations not currently supported by partial cancel\n");
        return;
    }
    let Some(id) = id.filter(|id| session.allocations.contains(id)) else {
        session.output.error(&format!("ERROR: nonexistent job {number}\n"));
        return;
    };
    let released = read_document(session, reader, &bytes).and_then(|document: Document| {
        session.engine.partial_cancel(id, &document).map_err(|failure| failure.message)
    });
    match released {
        Ok(true) => session.unregister(id),
        Ok(false) => {}
        Err(message) => {
            // On standard output: an accident that tools may see.
            session.output.print(&format!("{message}\n"));
            session.output.error(&format!("ERROR: error encountered while removing job {id}\n"));
        }
    }
    if words.get(4) == Some(&"stats") {
        stats(session, "PARTIAL CANCEL", (0, 0));
    }
}

fn stats(session: &mut Session<'_>, what: &str, (preorder, postorder): (u64, u64)) {
    let lines = format!(
        "{SEPARATOR}INFO: {what} PREORDER COUNT=\"{preorder}\"\nINFO: {what} POSTORDER COUNT=\"{postorder}\"\n{SEPARATOR}"
    );
    session.output.answer(&lines);
}
