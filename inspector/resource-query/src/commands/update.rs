//! The command update: imports an existing allocation from a document.

use std::time::Instant;

use fluxion::document::Document;
use fluxion::formats::{jgf, rv1};

use super::matching::{block, missed_block};
use crate::options::leading_number;
use crate::session::Session;

/// Forms of a document about part of the graph.
#[derive(Clone, Copy)]
pub(super) enum Reader {
    Jgf,
    JgfShorthand,
    Rv1,
}

/// Reads a document; an error is its message, a whole line.
pub(super) fn read_document(session: &Session<'_>, reader: Reader, bytes: &[u8]) -> Result<Document, String> {
    let document = match reader {
        Reader::Jgf => jgf::parse(bytes, false).map(Document::Graph),
        Reader::JgfShorthand => jgf::parse(bytes, true).map(Document::Graph),
        Reader::Rv1 => rv1::parse(bytes, session.engine.graph().limit()).map(Document::Ranks),
    };
    document.map_err(|error| format!("{}\n", error.to_string().trim_end()))
}

/// `update allocate|reserve FORMAT FILE JOBID AT DURATION`
pub(super) fn run(session: &mut Session<'_>, words: &[&str]) {
    if !matches!(words[1], "allocate" | "reserve") {
        session.output.error(&format!("ERROR: unknown subcmd {}\n", words[1]));
        return;
    }
    let reader = match words[2] {
        "jgf" => Reader::Jgf,
        "jgf_shorthand" => Reader::JgfShorthand,
        "rv1exec" => Reader::Rv1,
        other => {
            session.output.error(&format!("ERROR: unsupported reader {other}\n"));
            return;
        }
    };
    let file = words[3];
    let Some(bytes) = session.read_file(file) else { return };
    let id = leading_number(words[4]).cast_unsigned();
    if session.allocations.contains(&id) || session.reservations.contains(&id) {
        session.output.error("ERROR: existing Jobid \n");
        return;
    }
    let (at, duration) = (leading_number(words[5]), leading_number(words[6]));
    if at < 0 || duration == 0 {
        session.output.error(&format!("ERROR: invalid time ({at}, {duration})\n"));
        return;
    }
    // A negative duration is stored unsigned upstream: as long as can be.
    let duration = if duration < 0 { i64::MAX - at } else { duration };
    let begun = Instant::now();
    let updated = read_document(session, reader, &bytes).and_then(|document| {
        let done = session.engine.update(&document, id, at, duration, &mut session.writer);
        done.map_err(|failure| failure.message)
    });
    let overhead = begun.elapsed().as_secs_f64();
    if let Err(message) = &updated {
        session.output.error("ERROR: traverser run () returned error \n");
        if !message.is_empty() {
            session.output.error(&format!("ERROR: {message}"));
        }
    }
    if let Ok(text) = session.emit() {
        session.output.answer(&text);
    }
    if updated.is_ok() {
        session.register(id, at, file, overhead);
        session.times.min = session.times.min.min(overhead);
        session.times.max = session.times.max.max(overhead);
        session.times.sum += overhead;
        block(session, id, if at == 0 { "ALLOCATED" } else { "RESERVED" }, at, overhead);
    } else {
        missed_block(session, id, false, overhead);
    }
    session.next_job = id.wrapping_add(1);
}
