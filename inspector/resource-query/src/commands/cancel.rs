//! The commands cancel and partial-cancel.

use super::update::{Reader, read_document};
use crate::options::leading_number;
use crate::session::{SEPARATOR, Session};

/// `cancel JOBID [stats]`
pub(super) fn run(session: &mut Session<'_>, words: &[&str]) {
    let number = leading_number(words[1]);
    let id = number.cast_unsigned();
    if !session.allocations.contains(&id) && !session.reservations.contains(&id) {
        session.output.error(&format!("cancel: ERROR: nonexistent job {number}\n"));
        return;
    }
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
    let id = number.cast_unsigned();
    if session.reservations.contains(&id) {
        session.output.error("ERROR: reservations not currently supported by partial cancel\n");
        return;
    }
    if !session.allocations.contains(&id) {
        session.output.error(&format!("ERROR: nonexistent job {number}\n"));
        return;
    }
    match release(session, number, reader, &bytes) {
        Ok(true) => session.unregister(id),
        Ok(false) => {}
        Err(message) => {
            // On standard output: an accident that tools may see.
            session.output.print(&message);
            session.output.error(&format!("ERROR: error encountered while removing job {id}\n"));
        }
    }
    if words.get(4) == Some(&"stats") {
        stats(session, "PARTIAL CANCEL", (0, 0));
    }
}

/// Lets go of what a document lists. Answers whether the job holds nothing any more; an error is its message.
fn release(session: &mut Session<'_>, number: i64, reader: Reader, bytes: &[u8]) -> Result<bool, String> {
    if matches!(reader, Reader::Jgf) && number <= 0 {
        return Err("partial_cancel: invalid jobid\n".to_owned());
    }
    let document = match read_document(session, reader, bytes) {
        Ok(document) => document,
        // Upstream's reader of R has no words for what it can't read.
        Err(message) if matches!(reader, Reader::Rv1) => {
            session.output.error(&message);
            return Err(String::new());
        }
        Err(message) => return Err(message),
    };
    session.engine.partial_cancel(number.cast_unsigned(), &document).map_err(|failure| failure.message)
}

fn stats(session: &mut Session<'_>, what: &str, (preorder, postorder): (u64, u64)) {
    let lines = format!(
        "{SEPARATOR}INFO: {what} PREORDER COUNT=\"{preorder}\"\nINFO: {what} POSTORDER COUNT=\"{postorder}\"\n{SEPARATOR}"
    );
    session.output.answer(&lines);
}
