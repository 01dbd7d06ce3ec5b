//! The command find.

use fluxion::search::Expression;

use crate::session::{SEPARATOR, Session};

/// `find EXPRESSION`
pub(super) fn run(session: &mut Session<'_>, words: &[&str]) {
    let text = words[1..].join(" ");
    let expression = match Expression::parse(&text) {
        Ok(expression) => expression,
        Err(error) => {
            // The doubled word is upstream's, and scripts look for it.
            session.output.error(&format!("findfind: {error}\n"));
            return;
        }
    };
    let now = (session.clock)();
    session.engine.find(&expression, now, &mut session.writer);
    match session.emit() {
        Ok(answer) => {
            let block = format!("{answer}{SEPARATOR}INFO: EXPRESSION=\"{text}\"\n{SEPARATOR}");
            session.output.answer(&block);
        }
        Err(errno) => session.output.error(&format!("find: ERROR: find writer emit: {}\n", errno.text())),
    }
}
