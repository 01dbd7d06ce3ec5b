//! Why a match fails: the command explain, and the report after a failed match.

use fluxion::jobspec::Jobspec;
use fluxion::matcher::Failure;
use fluxion_scheduler::extension::{GangReport, why_gang};

use crate::options::Explain;
use crate::session::Session;

/// `explain JOBSPEC [text|json]`
pub(super) fn run(session: &mut Session<'_>, words: &[&str]) {
    let Some(form) = Explain::parse(words.get(2).copied().unwrap_or("text")) else {
        session.output.error(&format!("ERROR: invalid format {} (must be text or json)\n", words[2]));
        return;
    };
    let Some(bytes) = session.read_file(words[1]) else { return };
    let report = match session.parse(&bytes) {
        Ok(spec) => report(session, &spec, form).map_err(|failure| failure.to_string()),
        Err(error) => Err(format!("Jobspec error: {error}")),
    };
    match report {
        Ok(report) => session.output.answer(&report),
        Err(message) => session.output.error(&format!("explain: ERROR: {message}\n")),
    }
}

/// Says on standard error why a match failed, when the command line asks for that.
pub(super) fn after_failure(session: &mut Session<'_>, spec: &Jobspec) {
    let Some(form) = session.explain else { return };
    // A request that makes no sense was complained about already.
    if let Ok(report) = report(session, spec, form) {
        session.output.error(&report);
    }
}

/// Why the request is not met, in the form that is asked for.
fn report(session: &mut Session<'_>, spec: &Jobspec, form: Explain) -> Result<String, Failure> {
    let text = if let Some(gang) = spec.extra.as_ref().and_then(|extra| extra.get()) {
        let (why, start) = why_gang(&mut session.engine, gang, 0)?;
        let report = GangReport::new(&why, start);
        if form == Explain::Json {
            return Ok(format!("{}\n", report.json()));
        }
        report.to_string()
    } else {
        let why = session.engine.why_not(spec, 0)?;
        if form == Explain::Json {
            return Ok(format!("{}\n", why.json()));
        }
        why.to_string()
    };
    Ok(text.lines().fold(String::new(), |text, line| text + "INFO: " + line + "\n"))
}
