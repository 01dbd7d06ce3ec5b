//! The program: reads the command line, runs the command, ends with its exit code.

use std::process::ExitCode;

use clap::Parser;
use fluxion_api::Exit;
use kubectl_fluxion::cli::Cli;
use kubectl_fluxion::{command, output};

fn main() -> ExitCode {
    // Usage errors leave with code 2 from within, which is also ours.
    let cli = Cli::parse();
    output::choose_colours(cli.connection.no_color);
    // One thread is enough to wait for answers, and starts sooner.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::complain(&format!("the runtime can't be started: {error}"));
            return Exit::Other.into();
        }
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
