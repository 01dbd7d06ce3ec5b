//! Program entry point: parses the command line, runs the command and returns its exit code.

use std::process::ExitCode;

use clap::Parser;
use fluxion_api::Exit;
use kubectl_fluxion::cli::Cli;
use kubectl_fluxion::command::{self, suggest};
use kubectl_fluxion::output;

fn main() -> ExitCode {
    let suggests = is_called(suggest::PROGRAM);
    // Usage errors leave with code 2 from within, which is also ours.
    let cli = if suggests { None } else { Some(Cli::parse()) };
    output::choose_colours(cli.as_ref().is_some_and(|cli| cli.connection.no_color));
    // One thread is enough to wait for answers, and starts sooner.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::complain(&format!("failed to start the async runtime: {error}"));
            return Exit::Other.into();
        }
    };
    let Some(cli) = cli else {
        let words: Vec<String> =
            std::env::args_os().skip(1).map(|it| it.to_string_lossy().into_owned()).collect();
        runtime.block_on(suggest::run(&words));
        return Exit::Done.into();
    };
    match runtime.block_on(command::run(cli)) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            if let Some(message) = &failure.message {
                output::complain(message);
            }
            failure.exit.into()
        }
    }
}

/// Whether the program was started under this name.
fn is_called(name: &str) -> bool {
    let program = std::env::args_os().next().map(std::path::PathBuf::from);
    program.is_some_and(|program| program.file_stem().is_some_and(|stem| stem == name))
}
