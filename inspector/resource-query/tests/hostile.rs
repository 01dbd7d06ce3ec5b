//! Whatever comes in, as a document or as commands: no panic, no hang, nothing but an answer or an error.

#![allow(clippy::unwrap_used, reason = "a test that can't read its seeds has failed")]

use std::time::{Duration, Instant};

use fluxion::formats::hwloc::Allowlist;
use fluxion::formats::{grug, hwloc, jgf, rv1};
use fluxion::graph::Graph;
use fluxion::jobspec::Jobspec;
use fluxion::search::Expression;
use proptest::prelude::*;
use resource_query::{Streams, run};

/// Limit on vertices: small documents may ask for many.
const LIMIT: usize = 20_000;

/// No input of a few kilobytes may take longer (the machine may be busy with other things).
const PATIENCE: Duration = Duration::from_secs(5);

/// Values that are apt to overflow, to be negative, or to be of another kind.
const TROUBLE: [&str; 12] = [
    "-1",
    "0",
    "4294967295",
    "4294967296",
    "2147483648",
    "9223372036854775807",
    "99999999999999999999",
    "1e9",
    "0-4294967294",
    "null",
    "[",
    "\u{0}",
];

/// One change of a document.
#[derive(Debug, Clone)]
enum Edit {
    /// Cuts a stretch out.
    Cut(usize, usize),
    /// Writes a stretch twice.
    Double(usize, usize),
    /// Overwrites a byte.
    Byte(usize, u8),
    /// Puts trouble in place of a number.
    Number(usize, usize),
    /// Ends the document.
    End(usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (any::<usize>(), 1..40_usize).prop_map(|(at, len)| Edit::Cut(at, len)),
        (any::<usize>(), 1..200_usize).prop_map(|(at, len)| Edit::Double(at, len)),
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Edit::Byte(at, byte)),
        (any::<usize>(), 0..TROUBLE.len()).prop_map(|(at, which)| Edit::Number(at, which)),
        any::<usize>().prop_map(Edit::End),
    ]
}

fn apply(document: &mut Vec<u8>, edit: &Edit) {
    if document.is_empty() {
        return;
    }
    let size = document.len();
    match *edit {
        Edit::Cut(at, len) => drop(document.drain(at % size..(at % size + len).min(size))),
        Edit::Double(at, len) => {
            let stretch = document[at % size..(at % size + len).min(size)].to_vec();
            document.splice(at % size..at % size, stretch);
        }
        Edit::Byte(at, byte) => document[at % size] = byte,
        Edit::Number(at, which) => {
            let numbers: Vec<usize> = (0..size)
                .filter(|&at| {
                    document[at].is_ascii_digit() && (at == 0 || !document[at - 1].is_ascii_digit())
                })
                .collect();
            if let Some(&start) = numbers.get(at % numbers.len().max(1)) {
                let end = (start..size).find(|&at| !document[at].is_ascii_digit()).unwrap_or(size);
                document.splice(start..end, TROUBLE[which].bytes());
            }
        }
        Edit::End(at) => document.truncate(at % size),
    }
}

/// A document with some changes, mostly few.
fn damaged(file: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    let seed = std::fs::read(format!("tests/cases/data/{file}")).unwrap();
    prop::collection::vec(edit(), 1..6).prop_map(move |edits| {
        let mut document = seed.clone();
        for edit in &edits {
            apply(&mut document, edit);
        }
        document
    })
}

fn graph() -> Graph {
    let mut graph = Graph::new();
    graph.set_limit(LIMIT);
    graph
}

/// Runs something and sees that it ends soon.
fn soon<T>(work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = work();
    assert!(begun.elapsed() < PATIENCE, "took {:?}", begun.elapsed());
    result
}

/// Runs a session with a small graph; nothing it does may depend on more than its input.
fn session(arguments: &[&str], commands: &str) -> (u8, String) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut stdin = commands.as_bytes();
    let streams = Streams { stdin: &mut stdin, stdout: &mut stdout, stderr: &mut stderr, terminal: false };
    let status = soon(|| run(arguments.iter().map(ToString::to_string).collect(), streams));
    (status, String::from_utf8_lossy(&stdout).into_owned())
}

fn word() -> impl Strategy<Value = String> {
    const FILES: [&str; 8] = [
        "core.json",
        "hour.json",
        "three.json",
        "held.json",
        "third.json",
        "r-rank1.json",
        "pair.json",
        "unknown.json",
    ];
    const WORDS: [&str; 34] = [
        "allocate",
        "allocate_orelse_reserve",
        "allocate_with_satisfiability",
        "satisfiability",
        "without_allocating",
        "without_allocating_future",
        "jgf",
        "jgf_shorthand",
        "rv1exec",
        "1",
        "2",
        "3",
        "0",
        "-1",
        "99999999999999999999",
        "true",
        "false",
        "up",
        "down",
        "stats",
        "/cluster0",
        "/cluster0/node0",
        "/cluster0/node1/core0",
        "a=b",
        "=",
        "status=down",
        "and",
        "or",
        "(sched-now=allocated)",
        "sched-now=free)",
        "agfilter=t",
        "names=node[0-99999999]",
        "jobid-tag=1",
        "0-4294967294",
    ];
    prop_oneof![
        1 => prop::sample::select(FILES.to_vec()).prop_map(|file| format!("tests/cases/data/{file}")),
        4 => prop::sample::select(WORDS.to_vec()).prop_map(str::to_owned),
        1 => "[ -~]{0,12}",
    ]
}

/// A command with words that may or may not suit it; now and then one that does.
fn line() -> impl Strategy<Value = String> {
    const COMMANDS: [&str; 19] = [
        "match",
        "m",
        "multi-match",
        "update",
        "attach",
        "remove",
        "find",
        "f",
        "cancel",
        "partial-cancel",
        "set-property",
        "get-property",
        "set-status",
        "get-status",
        "list",
        "info",
        "stat",
        "help",
        "remove-property",
    ];
    const WHOLE: [&str; 10] = [
        "match allocate tests/cases/data/core.json",
        "match allocate_orelse_reserve tests/cases/data/hour.json",
        "match allocate_orelse_reserve tests/cases/data/node.json",
        "update allocate jgf tests/cases/data/held.json 2 0 10",
        "update reserve rv1exec tests/cases/data/r-rank1.json 3 10 99999999999",
        "partial-cancel 1 rv1exec tests/cases/data/r-rank1.json stats",
        "cancel 1 stats",
        "attach tests/cases/data/third.json",
        "remove /cluster0/node0 true",
        "remove 0-1 false",
    ];
    prop_oneof![
        2 => (prop::sample::select(COMMANDS.to_vec()), prop::collection::vec(word(), 0..7))
            .prop_map(|(command, words)| format!("{command} {}", words.join(" "))),
        2 => prop::sample::select(WHOLE.to_vec()).prop_map(str::to_owned),
        1 => any::<String>().prop_map(|text| text.replace("quit", "")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn damaged_jgf(document in damaged("pair.json")) {
        let _ = soon(|| jgf::load(&mut graph(), document.as_slice()));
        let _ = soon(|| jgf::parse(document.as_slice(), true));
    }

    #[test]
    fn damaged_grug(document in damaged("small.graphml")) {
        let _ = soon(|| grug::load(&mut graph(), &document));
    }

    #[test]
    fn damaged_r(document in damaged("r.json")) {
        let _ = soon(|| rv1::parse(document.as_slice(), LIMIT).and_then(|parsed| rv1::load(&mut graph(), &parsed)));
    }

    #[test]
    fn damaged_hwloc(document in damaged("machine.xml")) {
        let _ = soon(|| hwloc::load(&mut graph(), &document, &Allowlist::all()));
    }

    #[test]
    fn damaged_jobspecs(document in prop_oneof![damaged("core.yaml"), damaged("fast.json")]) {
        let text = String::from_utf8_lossy(&document);
        let _ = soon(|| Jobspec::parse(&text, &|name| name != "tape"));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &document).unwrap();
        let commands = format!("match allocate_orelse_reserve {}\nmatch satisfiability {0}\n", file.path().display());
        let (status, _) = session(&["-L", "tests/cases/data/pair.json", "-f", "jgf", "-T", "flexible"], &commands);
        prop_assert_eq!(status, 0);
    }

    #[test]
    fn any_expression(text in "(\\(|\\)|status=up|status=down|and|or| |=|names=|core\\[0-3\\]|agfilter=t|jobid-tag=|f1|0x|[a-z0-9])*") {
        let _ = soon(|| Expression::parse(&text));
    }

    #[test]
    fn any_commands(
        lines in prop::collection::vec(line(), 1..25),
        policy in prop::sample::select(vec!["first", "low", "hinodex", "variation", "locality"]),
        format in prop::sample::select(vec!["simple", "jgf", "rlite", "rv1", "jgf_shorthand"]),
        sane in any::<bool>(),
    ) {
        let mut arguments = vec!["-L", "tests/cases/data/pair.json", "-f", "jgf", "-P", policy, "-F", format];
        if sane {
            arguments.push("--kubernetes");
        }
        let (status, _) = session(&arguments, &lines.join("\n"));
        prop_assert_eq!(status, 0);
    }

    #[test]
    fn any_arguments(arguments in prop::collection::vec("(-[a-zA-Z]|--[a-z-]{1,10}|--[a-z-]{1,8}=|ALL:core|jgf|CA|[ -~]{0,8})", 0..8)) {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        // Never the name of a file to be written.
        prop_assume!(!arguments.iter().any(|argument| argument.starts_with("-t") || argument.starts_with("--te")));
        prop_assume!(!arguments.iter().any(|argument| argument.starts_with('-') && argument.contains('t')));
        let (status, _) = session(&arguments, "");
        prop_assert!(status <= 1);
    }
}

#[test]
fn deep_documents_are_refused() {
    for depth in [100, 10_000, 200_000] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        assert!(
            soon(|| jgf::load(&mut graph(), format!("{{\"graph\": {open}{close}}}").as_bytes())).is_err()
        );
        assert!(soon(|| Jobspec::parse(&format!("resources: {open}{close}"), &|_| true)).is_err());
        assert!(soon(|| rv1::parse(format!("{{\"execution\": {open}{close}}}").as_bytes(), LIMIT)).is_err());
        let (open, close) = ("(".repeat(depth), ")".repeat(depth));
        assert!(soon(|| Expression::parse(&format!("{open}status=up{close}"))).is_err() || depth == 100);
        let (open, close) = ("<object type=\"Group\">".repeat(depth), "</object>".repeat(depth));
        let text = format!("<topology>{open}{close}</topology>");
        assert!(
            soon(|| hwloc::load(&mut graph(), text.as_bytes(), &Allowlist::all())).is_err() || depth == 100
        );
    }
}

#[test]
fn names_of_a_graph_neither_write_lines_nor_act_on_the_terminal() {
    let hostile = "n\u{1b}[31m\u{9b}\r\nFAKE\u{2028}\u{202e}";
    let pair = std::fs::read_to_string("tests/cases/data/pair.json").unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&pair).unwrap();
    for vertex in document["graph"]["nodes"].as_array_mut().unwrap() {
        let kind = vertex["metadata"]["type"].as_str().unwrap().to_owned();
        vertex["metadata"]["name"] = format!("{kind}{hostile}{}", vertex["id"]).into();
        vertex["metadata"]["properties"] = serde_json::json!({hostile: hostile});
        vertex["metadata"]["unit"] = hostile.into();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.json");
    let job = "tests/cases/data/core.json";
    for broken in [false, true] {
        if broken {
            document["graph"]["edges"][0]["target"] = hostile.into();
        }
        std::fs::write(&path, document.to_string()).unwrap();
        for format in ["simple", "pretty_simple", "jgf", "rlite", "rv1", "rv1_nosched", "jgf_shorthand"] {
            let arguments = ["-L", path.to_str().unwrap(), "-f", "jgf", "-F", format];
            let commands = format!(
                "match allocate {job}\nfind status=up\nget-property /cluster0/node0\nset-status /{hostile} down\nfind {hostile}\ninfo 1\nexplain {job}\nmatch allocate /no/{hostile}\n"
            );
            let (status, text) = session(&arguments, &commands);
            assert_eq!(status, u8::from(broken), "{text}");
            let acts = |c: char| !matches!(c, '\n' | '\t') && fluxion_text::is_unsafe(c);
            assert!(!text.contains(acts), "{format}: {text:?}");
            // What was typed after a line break is a command of its own, and named in an error.
            let forged = text.lines().filter(|line| line.starts_with("FAKE")).count();
            assert_eq!(forged, 0, "{format}: {text}");
        }
    }
}
