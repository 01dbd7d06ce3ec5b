//! Why a match fails: the command explain, and the report after a failed match.

use fluxion_core::jobspec::Jobspec;
use fluxion_core::matcher::WhyNot;

use crate::options::Explain;
use crate::session::Session;

/// `explain JOBSPEC [text|json]`
pub(super) fn run(session: &mut Session<'_>, words: &[&str]) {
    let Some(form) = Explain::parse(words.get(2).copied().unwrap_or("text")) else {
        session.output.error(&format!("ERROR: neither text nor json: {}\n", words[2]));
        return;
    };
    let Some(bytes) = session.read_file(words[1]) else { return };
    let graph = session.engine.graph();
    let text = String::from_utf8_lossy(&bytes);
    let parsed = Jobspec::parse(&text, &|name| graph.find_type(name).is_some());
    let report = match parsed {
        Ok(spec) => session.engine.why_not(&spec, 0).map_err(|failure| failure.to_string()),
        Err(error) => Err(format!("Jobspec error: {error}")),
    };
    match report {
        Ok(report) => session.output.answer(&words_of(&report, form)),
        Err(message) => session.output.error(&format!("explain: ERROR: {message}\n")),
    }
}

/// Says on standard error why a match failed, when the command line asks for that.
pub(super) fn after_failure(session: &mut Session<'_>, spec: &Jobspec) {
    let Some(form) = session.explain else { return };
    // A request that makes no sense was complained about already.
    if let Ok(report) = session.engine.why_not(spec, 0) {
        session.output.error(&words_of(&report, form));
    }
}

fn words_of(report: &WhyNot, form: Explain) -> String {
    match form {
        Explain::Json => format!("{}\n", report.json()),
        Explain::Text => {
            report.to_string().lines().fold(String::new(), |text, line| text + "INFO: " + line + "\n")
        }
    }
}
