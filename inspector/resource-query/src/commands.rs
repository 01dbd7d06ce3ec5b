//! The command table: names, arguments and handlers.

mod cancel;
mod explain;
mod find;
mod grow;
mod matching;
mod report;
mod update;
mod vertex;

use crate::input::words;
use crate::session::Session;

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// With the next line.
    Continue,
    /// No further.
    Quit,
}

/// A command that can be typed.
struct Command {
    name: &'static str,
    short: &'static str,
    note: &'static str,
    /// How many words it takes, its name included: least and most.
    words: (usize, usize),
    /// Whether flux-sched's tool lacks it, and takes its abbreviation for a comment.
    extension: bool,
    run: fn(&mut Session<'_>, &[&str]),
}

const ANY: usize = usize::MAX;

const fn command(
    name: &'static str,
    short: &'static str,
    words: (usize, usize),
    run: fn(&mut Session<'_>, &[&str]),
    note: &'static str,
) -> Command {
    Command { name, short, note, words, extension: false, run }
}

const fn extension(command: Command) -> Command {
    Command { extension: true, ..command }
}

/// In order of look-up: of two with one abbreviation, the first has it.
static COMMANDS: [Command; 20] = [
    command("match", "m", (3, 3), matching::one, "Match a jobspec: match OPERATION JOBSPEC"),
    command(
        "multi-match",
        "M",
        (4, ANY),
        matching::several,
        "Match jobspecs one by one: multi-match OPERATION JOBSPEC...",
    ),
    command(
        "update",
        "u",
        (7, 7),
        update::run,
        "Update the graph with an existing allocation: update allocate|reserve FORMAT FILE JOBID AT DURATION",
    ),
    command("attach", "j", (2, 2), grow::attach, "Attach a JGF subgraph: attach JGF_FILE"),
    command(
        "remove",
        "j",
        (3, 3),
        grow::remove,
        "Remove a subgraph: remove PATH true, or remove RANKS false",
    ),
    command("find", "f", (2, ANY), find::run, "Search vertices: find EXPRESSION"),
    command("cancel", "c", (2, 3), cancel::run, "Cancel a job: cancel JOBID [stats]"),
    command(
        "partial-cancel",
        "pc",
        (4, 5),
        cancel::partial,
        "Release part of the resources of a job: partial-cancel JOBID FORMAT FILE [stats]",
    ),
    command("set-property", "p", (3, 3), vertex::set_property, "Set a property: set-property PATH KEY=VALUE"),
    command(
        "get-property",
        "g",
        (2, 2),
        vertex::get_property,
        "Print the properties of a vertex: get-property PATH",
    ),
    command(
        "set-status",
        "t",
        (3, 3),
        vertex::set_status,
        "Set the status of a vertex: set-status PATH up|down",
    ),
    command("get-status", "e", (2, 2), vertex::get_status, "Print the status of a vertex: get-status PATH"),
    command("list", "l", (1, ANY), report::list, "List all jobs"),
    command("info", "i", (2, 2), report::info, "Print information about a job: info JOBID"),
    command("stat", "s", (1, 1), report::stat, "Print match time statistics"),
    command("cat", "a", (2, ANY), report::cat, "Print a file: cat FILE"),
    command("help", "h", (1, ANY), help, "List commands: help [COMMAND]"),
    command("quit", "q", (1, ANY), |_, _| (), "End the session"),
    extension(command(
        "remove-property",
        "rp",
        (3, 3),
        vertex::remove_property,
        "Remove a property: remove-property PATH KEY",
    )),
    extension(command(
        "explain",
        "x",
        (2, 3),
        explain::run,
        "Explain why a jobspec cannot be matched now: explain JOBSPEC [text|json]",
    )),
];

impl Command {
    /// Whether a word means this command. What flux-sched's tool lacks is meant by its full name alone, unless
    /// extensions were asked for.
    fn is_called(&self, word: &str, extended: bool) -> bool {
        self.name == word || (self.short == word && (extended || !self.extension))
    }
}

/// Runs one line. A line whose first word is no command is a comment.
pub(crate) fn run_line(session: &mut Session<'_>, line: &str) -> Flow {
    let words = words(line);
    let Some(&first) = words.first() else { return Flow::Continue };
    let extended = session.is_extended();
    let Some(command) = COMMANDS.iter().find(|command| command.is_called(first, extended)) else {
        return Flow::Continue;
    };
    if command.name == "quit" {
        return Flow::Quit;
    }
    let (least, most) = command.words;
    if words.len() < least || words.len() > most {
        let end = if command.name == "find" { " " } else { "" };
        session
            .output
            .error(&format!("ERROR: malformed command{}{end}\n", if end.is_empty() { "" } else { ":" }));
        return Flow::Continue;
    }
    (command.run)(session, &words);
    Flow::Continue
}

fn help(session: &mut Session<'_>, words: &[&str]) {
    let wanted = words.get(1).copied();
    let mut any = false;
    for command in &COMMANDS {
        if wanted.is_none_or(|wanted| command.is_called(wanted, session.is_extended())) {
            any = true;
            session
                .output
                .print(&format!("INFO: {} ({}) -- {}\n", command.name, command.short, command.note));
        }
    }
    if let (false, Some(wanted)) = (any, wanted) {
        session.output.print(&format!("ERROR: unknown command: {wanted}\n"));
    }
}
