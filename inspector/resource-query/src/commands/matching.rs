//! The commands match and multi-match.

use std::fmt::Write;
use std::time::Instant;

use fluxion::errno::Errno;
use fluxion::matcher::{Found, Operation};

use super::explain;
use crate::session::{SEPARATOR, Session};

/// `match OPERATION JOBSPEC`
pub(super) fn one(session: &mut Session<'_>, words: &[&str]) {
    if let Some(operation) = operation(session, words[1]) {
        run(session, operation, words[2]);
    }
}

/// `multi-match OPERATION JOBSPEC…`, until one fails.
pub(super) fn several(session: &mut Session<'_>, words: &[&str]) {
    let Some(operation) = operation(session, words[1]) else { return };
    for file in &words[2..] {
        if !run(session, operation, file) {
            return;
        }
    }
}

fn operation(session: &mut Session<'_>, name: &str) -> Option<Operation> {
    let operation = Operation::parse(name);
    if operation.is_none() {
        session.output.error(&format!("ERROR: unknown subcmd {name}\n"));
    }
    operation
}

/// A match that failed, and whether its number is used up.
struct Missed {
    errno: Errno,
    consumed: bool,
}

/// Matches one jobspec and prints the outcome. Answers false when it failed; a file that can't be read
/// counts as no failure.
fn run(session: &mut Session<'_>, operation: Operation, file: &str) -> bool {
    let Some(bytes) = session.read_file(file) else { return true };
    let id = session.next_job;
    let begun = Instant::now();
    let outcome = attempt(session, operation, id, &bytes);
    let overhead = begun.elapsed().as_secs_f64();
    if let Ok(found) = &outcome
        && operation.allocates()
    {
        session.register(id, found.at, file, overhead);
    }
    let consumed = outcome.as_ref().map_or_else(|missed| missed.consumed, |_| true);
    if consumed && operation.allocates() {
        session.next_job += 1;
    }
    print(session, operation, id, outcome.as_ref().map_err(|missed| missed.errno), overhead);
    outcome.is_ok()
}

/// Matches, and writes what was found; what a failed match left in the writer, too.
fn attempt(session: &mut Session<'_>, operation: Operation, id: u64, bytes: &[u8]) -> Result<Found, Missed> {
    let parsed = session.parse(bytes);
    let spec = match parsed {
        Ok(spec) => spec,
        Err(error) => {
            session.output.error(&format!("match_allocate: ERROR: Jobspec error for {id}: {error}\n"));
            return Err(Missed { errno: Errno::Einval, consumed: false });
        }
    };
    let matched = session.engine.match_job(operation, &spec, id, 0, &mut session.writer);
    if let Err(failure) = &matched {
        explain::after_failure(session, &spec);
        let expected = matches!(failure.errno, Errno::Ebusy | Errno::Enodev);
        if !failure.message.is_empty() {
            session.output.error(&format!("match_allocate: ERROR: {}\n", failure.message));
        } else if !expected {
            session.output.error(&format!("match_allocate: ERROR: traverser: {}\n", failure.errno.text()));
        }
        if !expected {
            return Err(Missed { errno: failure.errno, consumed: false });
        }
    }
    match session.emit() {
        Ok(text) => session.output.answer(&text),
        Err(errno) => {
            if matched.is_ok() && operation.allocates() && !session.engine.quirks().leaked_bookings {
                undo(session, id);
            }
            session.output.error(&format!("match_allocate: ERROR: match writer emit: {}\n", errno.text()));
            return Err(Missed { errno, consumed: false });
        }
    }
    matched.map_err(|failure| Missed { errno: failure.errno, consumed: true })
}

/// Releases what was booked for a match whose answer can't be written.
fn undo(session: &mut Session<'_>, id: u64) {
    if let Err(failure) = session.engine.cancel(id) {
        session.output.error(&format!("match_allocate: ERROR: {failure}\n"));
    }
}

fn print(
    session: &mut Session<'_>,
    operation: Operation,
    id: u64,
    outcome: Result<&Found, Errno>,
    overhead: f64,
) {
    let impossible = matches!(outcome, Err(Errno::Enodev | Errno::Enoent));
    if operation == Operation::Satisfiability {
        // With accidents on, a request that makes no sense counts as satisfiable.
        let impossible = impossible || (outcome.is_err() && session.engine.is_extended());
        let answer = if impossible { "Unsatisfiable" } else { "Satisfiable" };
        session.output.answer(&format!("{SEPARATOR}INFO: {answer} request\n{SEPARATOR}"));
        elapsed(session, overhead);
        return;
    }
    match outcome {
        Ok(found) => {
            let state = match (operation.allocates(), found.at) {
                (false, _) => "MATCHED",
                (true, 0) => "ALLOCATED",
                (true, _) => "RESERVED",
            };
            block(session, id, state, found.at, overhead);
        }
        Err(_) => missed_block(session, id, impossible, overhead),
    }
}

/// The block of a success.
pub(super) fn block(session: &mut Session<'_>, id: u64, state: &str, at: i64, overhead: f64) {
    let when = if at == 0 { "Now".to_owned() } else { at.to_string() };
    let lines = format!("{SEPARATOR}INFO: JOBID={id}\nINFO: RESOURCES={state}\nINFO: SCHEDULED AT={when}\n");
    session.output.answer(&lines);
    elapsed(session, overhead);
    session.output.answer(SEPARATOR);
}

/// The block of a failure.
pub(super) fn missed_block(session: &mut Session<'_>, id: u64, impossible: bool, overhead: f64) {
    let mut lines = format!("{SEPARATOR}INFO: No matching resources found\n");
    if impossible {
        lines.push_str("INFO: Unsatisfiable request\n");
    }
    let _ = writeln!(lines, "INFO: JOBID={id}");
    session.output.answer(&lines);
    if session.elapse {
        // This line alone goes to the answers: an accident that tools may see.
        session.output.answer(&format!("INFO: ELAPSE={overhead:.6}\n"));
        counts(session);
    }
    session.output.answer(SEPARATOR);
}

fn elapsed(session: &mut Session<'_>, overhead: f64) {
    if session.elapse {
        session.output.print(&format!("INFO: ELAPSE={overhead:.6}\n"));
        counts(session);
    }
}

fn counts(session: &mut Session<'_>) {
    let (preorder, postorder) = session.engine.visits();
    let lines = format!("INFO: PREORDER VISIT COUNT={preorder}\nINFO: POSTORDER VISIT COUNT={postorder}\n");
    session.output.print(&lines);
}
