//! A command line, one argument a line, with nothing to do after the start.
#![no_main]

use fluxion_fuzz::{bounded, enter_cases, names_system_files};
use libfuzzer_sys::fuzz_target;
use resource_query::{Streams, run};

fuzz_target!(|text: &str| {
    enter_cases();
    let mut arguments: Vec<String> =
        ["-L", "pair.json", "-f", "jgf", "--max-vertices=100"].map(str::to_owned).into();
    arguments.extend(text.lines().map(str::to_owned));
    // Nothing is to be written, and nobody asks for room for millions of vertices.
    let harmful = |argument: &String| argument.starts_with('-') && argument.contains(['t', 'r', 'm']);
    if arguments.iter().skip(5).any(harmful) || names_system_files(text.as_bytes()) {
        return;
    }
    let (mut stdout, mut stderr) = (std::io::sink(), std::io::sink());
    bounded(text.len(), 100, || {
        let streams = Streams {
            stdin: &mut std::io::empty(),
            stdout: &mut stdout,
            stderr: &mut stderr,
            terminal: false,
        };
        assert!(run(arguments, streams) <= 1);
    });
});
