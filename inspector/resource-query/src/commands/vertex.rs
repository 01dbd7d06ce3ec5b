//! The commands for properties and status of vertices.

use std::fmt::Write;

use fluxion::graph::{Status, VertexId};
use fluxion_text::{Syntax, escape};

use crate::session::Session;

/// The vertices under a path; empty after saying that there are none.
fn at_path(session: &mut Session<'_>, path: &str, could_not: &str) -> Vec<VertexId> {
    let found = session.engine.graph().at_path_text(path).to_vec();
    if found.is_empty() {
        session.output.answer(&format!("{could_not} find path {path} in resource graph.\n"));
    }
    found
}

/// `set-property PATH KEY=VALUE`
pub(super) fn set_property(session: &mut Session<'_>, words: &[&str]) {
    let pair = words[2].split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
    let Some((key, value)) = pair else {
        let usage = "Incorrect input format. \nPlease use `set-property <resource> PROPERTY=VALUE`.\n";
        session.output.answer(usage);
        return;
    };
    if !at_path(session, words[1], "Couldn't").is_empty() {
        session.engine.set_property(words[1], key, value);
    }
}

/// `get-property PATH`
pub(super) fn get_property(session: &mut Session<'_>, words: &[&str]) {
    let mut lines = String::new();
    for id in at_path(session, words[1], "Could not") {
        let graph = session.engine.graph();
        let properties = graph.properties(id);
        if properties.is_empty() {
            let uniq_id = graph.vertex(id).uniq_id;
            let _ = writeln!(lines, "No properties were found for {} (vtx's uniq_id={uniq_id}).", words[1]);
        }
        for (key, value) in properties {
            let line = format!("{key}={value}");
            let _ = writeln!(lines, "{}", escape(&line, &[], Syntax::Json));
        }
    }
    session.output.answer(&lines);
}

/// `remove-property PATH KEY`
pub(super) fn remove_property(session: &mut Session<'_>, words: &[&str]) {
    let found = at_path(session, words[1], "Could not");
    if found.is_empty() {
        return;
    }
    let graph = session.engine.graph();
    if !found.iter().any(|id| graph.properties(*id).iter().any(|(key, _)| *key == words[2])) {
        session.output.answer(&format!("No property {} was found for {}.\n", words[2], words[1]));
    }
    session.engine.remove_property(words[1], words[2]);
}

/// `set-status PATH up|down`
pub(super) fn set_status(session: &mut Session<'_>, words: &[&str]) {
    let found = at_path(session, words[1], "Could not");
    if found.is_empty() {
        return;
    }
    let status = match words[2] {
        "up" => Status::Up,
        "down" => Status::Down,
        _ => {
            session.output.error("ERROR: unrecognized status\n");
            return;
        }
    };
    session.engine.set_status(words[1], status);
}

/// `get-status PATH`
pub(super) fn get_status(session: &mut Session<'_>, words: &[&str]) {
    let mut lines = String::new();
    for id in at_path(session, words[1], "Could not") {
        let status = match session.engine.graph().vertex(id).status {
            Status::Up => "up",
            Status::Down => "down",
        };
        let _ = writeln!(lines, "{} is {status}", words[1]);
    }
    session.output.answer(&lines);
}
