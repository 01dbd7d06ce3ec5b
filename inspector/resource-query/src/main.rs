//! Program entry point: passes arguments and standard streams to the library.

use std::io::{IsTerminal, stderr, stdin, stdout};
use std::process::ExitCode;

use resource_query::{Streams, run};

fn main() -> ExitCode {
    let arguments =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let terminal = stdin().is_terminal();
    let streams = Streams {
        stdin: &mut stdin().lock(),
        stdout: &mut stdout().lock(),
        stderr: &mut stderr().lock(),
        terminal,
    };
    ExitCode::from(run(arguments, streams))
}
