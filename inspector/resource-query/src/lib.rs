//! `resource-query`: matches jobspecs against a resource graph. Its protocol and output are those of flux-sched's
//! tool of the same name.
//!
//! Matching is implemented in `fluxion`, gang matching in `fluxion-scheduler`; this crate reads the command line, files
//! and commands, and prints results. It works on arbitrary streams, so tests need no process.

mod commands;
mod input;
mod numbers;
mod options;
mod output;
mod session;
mod startup;

use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::time::Instant;

use commands::Flow;
use options::{Options, Parsed, USAGE};
use output::Output;
use session::Session;

/// Input and output streams of a session.
pub struct Streams<'s> {
    /// Commands.
    pub stdin: &'s mut dyn BufRead,
    /// Results and reports.
    pub stdout: &'s mut dyn Write,
    /// Errors and warnings.
    pub stderr: &'s mut dyn Write,
    /// Whether the input is a terminal, so that a prompt is printed.
    pub terminal: bool,
}

/// Runs the program with its arguments, excluding the program name, and returns the exit status.
pub fn run(arguments: Vec<String>, streams: Streams<'_>) -> u8 {
    let Streams { stdin, stdout, stderr, terminal } = streams;
    let mut output = Output::new(stdout, stderr);
    let options = match Options::parse(arguments) {
        Parsed::Run(options, warnings) => {
            for warning in warnings {
                output.error(&format!("{warning}\n"));
            }
            options
        }
        Parsed::Help => {
            output.error(USAGE);
            return 0;
        }
        Parsed::Version => {
            output.print(concat!("resource-query ", env!("CARGO_PKG_VERSION"), "\n"));
            return 0;
        }
        Parsed::Wrong(message) => {
            output.error(&format!("{message}\n{USAGE}"));
            return 1;
        }
    };
    let begun = Instant::now();
    let (engine, writer) = match startup::start(&options) {
        Ok(started) => started,
        Err(error) => {
            output.error(&format!(": Runtime error: {error}\n"));
            return 1;
        }
    };
    if options.elapse_time {
        output.print(&load_statistics(engine.graph(), begun.elapsed().as_secs_f64()));
    }
    if let Some(path) = &options.test_output
        && let Err(error) = output.open_answers(path)
    {
        output.error(&format!("[ERROR] can't write to {} for --test-output: {error}\n", path.display()));
        return 1;
    }
    let mut session = Session::new(engine, writer, output, options.elapse_time);
    session.explain = options.explain;
    let prompt = terminal && !options.disable_prompt;
    command_loop(&mut session, stdin, prompt);
    0
}

/// Runs commands until one quits, the input ends, or nobody reads the output any more.
fn command_loop(session: &mut Session<'_>, stdin: &mut dyn BufRead, prompt: bool) {
    loop {
        if prompt {
            session.output.print("resource-query> ");
        }
        session.output.send();
        if session.output.is_closed() {
            return;
        }
        match input::read_line(stdin, input::LINE_MAX) {
            Ok(Some(line)) => {
                if commands::run_line(session, &line) == Flow::Quit {
                    return;
                }
            }
            Ok(None) => return,
            Err(error) => {
                session.output.error(&format!("ERROR: can't read commands: {error}\n"));
                return;
            }
        }
    }
}

fn load_statistics(graph: &fluxion::graph::Graph, seconds: f64) -> String {
    let (types, names, paths) = graph.index_sizes();
    let mut text = format!("INFO: Graph Load Time: {}\n", numbers::general(seconds));
    for (what, count) in [
        ("Vertex Count", graph.vertex_count()),
        ("Edge Count", graph.edge_count()),
        ("by_type Key-Value Pairs", types),
        ("by_name Key-Value Pairs", names),
        ("by_path Key-Value Pairs", paths),
    ] {
        let _ = writeln!(text, "INFO: {what}: {count}");
    }
    for (rank, vertices) in graph.ranks() {
        let _ = writeln!(text, "INFO: number of vertices with rank {rank}: {}", vertices.len());
    }
    text
}
