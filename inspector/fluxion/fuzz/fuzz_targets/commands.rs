//! Lines of commands on a small machine. Files are those of resource-query's test cases.
#![no_main]

use fluxion_fuzz::{bounded, choice, enter_cases, names_system_files};
use libfuzzer_sys::fuzz_target;
use resource_query::{Streams, run};

fuzz_target!(|data: &[u8]| {
    enter_cases();
    let Some((choice, mut lines)) = choice(data) else { return };
    if names_system_files(lines) {
        return;
    }
    let formats = ["simple", "jgf", "rlite", "rv1", "jgf_shorthand", "pretty_simple"];
    let policies = ["first", "low", "hinodex", "variation", "locality"];
    let mut arguments: Vec<String> =
        ["-L", "pair.json", "-f", "jgf", "--max-vertices=100"].map(str::to_owned).into();
    arguments.extend(["-P".to_owned(), policies[usize::from(choice >> 4) % policies.len()].to_owned()]);
    arguments.extend(["-F".to_owned(), formats[usize::from(choice >> 1) % formats.len()].to_owned()]);
    if choice & 1 == 0 {
        arguments.push("--kubernetes".to_owned());
    }
    let (mut stdout, mut stderr) = (std::io::sink(), std::io::sink());
    // Each command may read a file and write the whole machine, so a byte may stand for more than itself.
    let commands = lines.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() + 1;
    bounded(lines.len() + 1_000 * commands, 100, || {
        let streams =
            Streams { stdin: &mut lines, stdout: &mut stdout, stderr: &mut stderr, terminal: false };
        assert_eq!(run(arguments, streams), 0);
    });
});
