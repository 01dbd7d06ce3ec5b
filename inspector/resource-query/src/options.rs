//! Command-line options, processed in the given order.

mod getopt;

use std::path::{Path, PathBuf};

use fluxion::formats::writer::Format;

use self::getopt::{Found, Getopt, Known};

/// The default graph file.
const DEFAULT_LOAD_FILE: &str = "conf/default";

/// Maximum number of preallocated vertices.
const MAX_RESERVE: i64 = 2_000_000;

/// Default maximum number of vertices in a graph.
pub(crate) const DEFAULT_MAX_VERTICES: usize = 16_000_000;

/// Graph file formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadFormat {
    /// GRUG recipe in GraphML.
    Grug,
    /// hwloc topology in XML.
    Hwloc,
    /// JGF, with or without shorthand.
    Jgf,
    /// RV1: ranks and their resources in JSON.
    Rv1,
}

/// Parsed command-line options.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct Options {
    /// The graph file.
    pub(crate) load_file: PathBuf,
    /// Format of the graph file.
    pub(crate) load_format: LoadFormat,
    /// Kinds of hwloc objects to load, comma-separated; all without.
    pub(crate) load_allowlist: Option<String>,
    /// Name of the combination of subsystems.
    pub(crate) match_subsystems: String,
    /// Name or definition of the match policy.
    pub(crate) match_policy: String,
    /// Output format.
    pub(crate) match_format: Format,
    /// Name of the traverser.
    pub(crate) traverser_policy: String,
    /// Pruning filters; the default without.
    pub(crate) prune_filters: Option<String>,
    /// Output file; standard output if not set.
    pub(crate) test_output: Option<PathBuf>,
    /// Number of vertices to preallocate.
    pub(crate) reserve: usize,
    /// Print load and match times.
    pub(crate) elapse_time: bool,
    /// Do not print a prompt.
    pub(crate) disable_prompt: bool,
    /// Maximum number of vertices.
    pub(crate) max_vertices: usize,
    /// Keep equally ranked candidates in discovery order.
    pub(crate) stable_ties: bool,
    /// Enable the Kubernetes extensions and disable quirks.
    pub(crate) kubernetes: bool,
    /// Format for explaining failed matches; none to not explain them.
    pub(crate) explain: Option<Explain>,
}

/// Formats for explaining failed matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Explain {
    /// In lines.
    Text,
    /// As one line of JSON.
    Json,
}

impl Explain {
    /// A form by its name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// Result of parsing the command line.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// Go on with these, after printing the warnings.
    Run(Box<Options>, Vec<String>),
    /// Print the usage and end well.
    Help,
    /// Print the version and end well.
    Version,
    /// Print a message and the usage and end with status 1.
    Wrong(String),
}

const fn flag(short: char, long: &'static str) -> Known {
    Known { short: Some(short), long, value: false }
}

const fn value(short: char, long: &'static str) -> Known {
    Known { short: Some(short), long, value: true }
}

const KNOWN: [Known; 20] = [
    value('L', "load-file"),
    value('f', "load-format"),
    value('W', "load-allowlist"),
    value('S', "match-subsystems"),
    value('P', "match-policy"),
    value('F', "match-format"),
    value('T', "traverser-policy"),
    value('p', "prune-filters"),
    value('g', "graph-format"),
    value('o', "graph-output"),
    value('t', "test-output"),
    value('r', "reserve-vtx-vec"),
    flag('e', "elapse-time"),
    flag('d', "disable-prompt"),
    flag('h', "help"),
    Known { short: None, long: "max-vertices", value: true },
    Known { short: None, long: "stable-ties", value: false },
    Known { short: None, long: "kubernetes", value: false },
    Known { short: None, long: "explain", value: true },
    Known { short: None, long: "version", value: false },
];

/// The usage text.
pub(crate) const USAGE: &str = "usage: resource-query [OPTIONS...]

Loads a resource graph and runs commands such as match, find and cancel from standard input.

  -L, --load-file=FILE         graph file (default: conf/default)
  -f, --load-format=FORMAT     grug, hwloc, jgf, jgf_shorthand, rv1exec or rv1exec_force (default: grug)
  -W, --load-allowlist=KINDS   comma-separated kinds of hwloc objects to load (default: all)
  -S, --match-subsystems=NAME  CA, IBA, IBBA, PFS1BA, PA, VA, C+IBA, C+IBBA, C+PA, C+PFS1BA, IB+IBBA,
                               C+P+IBA, V+PFS1BA or ALL (default: CA)
  -P, --match-policy=POLICY    first, firstnodex, high, low, hinode, lonode, hinodex, lonodex, locality,
                               variation, or \"policy=high node_centric=true ...\" (default: first)
  -F, --match-format=FORMAT    simple, pretty_simple, jgf, jgf_shorthand, rlite, rv1, rv1_nosched or
                               rv1_shorthand (default: simple)
  -T, --traverser-policy=NAME  simple or flexible (default: simple)
  -p, --prune-filters=FILTERS  HIGH:LOW[,HIGH:LOW...]: LOW types to aggregate at HIGH ones, or at ALL
                               (default: ALL:core,ALL:node)
  -t, --test-output=FILE       write results to FILE (default: standard output)
  -r, --reserve-vtx-vec=N      preallocate memory for N vertices, 0 to 2000000 (default: 0)
  -g, --graph-format=FORMAT    dot or graphml; accepted for compatibility, has no effect
  -o, --graph-output=NAME      accepted for compatibility, has no effect
  -e, --elapse-time            print load and match times
  -d, --disable-prompt         do not print a prompt
      --max-vertices=N         reject graphs with more than N vertices (default: 16000000)
      --stable-ties            keep equally ranked candidates in discovery order instead of the order of
                               GNU's sort; faster on large graphs
      --kubernetes             support gangs (slots within one node, partial pools, a constraint per slot,
                               several shapes, one topology level) and do not reproduce flux-sched's quirks
      --explain=FORM           explain failed matches on standard error, as text or json
      --version                print the version and exit
  -h, --help                   print this help and exit

Enter \"help\" for a list of commands.
";

impl Options {
    fn new() -> Self {
        Self {
            load_file: PathBuf::from(DEFAULT_LOAD_FILE),
            load_format: LoadFormat::Grug,
            load_allowlist: None,
            match_subsystems: "CA".to_owned(),
            match_policy: "first".to_owned(),
            match_format: Format::Simple,
            traverser_policy: "simple".to_owned(),
            prune_filters: None,
            test_output: None,
            reserve: 0,
            elapse_time: false,
            disable_prompt: false,
            max_vertices: DEFAULT_MAX_VERTICES,
            stable_ties: false,
            kubernetes: false,
            explain: None,
        }
    }

    /// Reads the arguments after the program's name.
    pub(crate) fn parse(arguments: Vec<String>) -> Parsed {
        let mut options = Self::new();
        let mut warnings = Vec::new();
        let mut getopt = Getopt::new(&KNOWN, arguments);
        let mut rest = false;
        while let Some(found) = getopt.next() {
            let (name, value) = match found {
                Ok(Found::Option(name, value)) => (name, value),
                Ok(Found::Rest) => {
                    rest = true;
                    continue;
                }
                Err(message) => return Parsed::Wrong(format!("resource-query: {message}")),
            };
            match name {
                "help" => return Parsed::Help,
                "version" => return Parsed::Version,
                _ => {}
            }
            match options.set(name, &value) {
                Ok(None) => {}
                Ok(Some(warning)) => warnings.push(warning),
                Err(message) => return Parsed::Wrong(message),
            }
        }
        if rest {
            return Parsed::Wrong(
                "resource-query: unexpected argument: only options are accepted".to_owned(),
            );
        }
        Parsed::Run(Box::new(options), warnings)
    }

    /// Takes one option; answers a warning, or fails with a message.
    fn set(&mut self, name: &str, value: &str) -> Result<Option<String>, String> {
        let unknown = || format!("[ERROR] unknown format for --{name}: {value}");
        match name {
            "load-file" => {
                let path = Path::new(value);
                if !path.exists() {
                    return Err(format!("[ERROR] file does not exist for --load-file: {value}"));
                }
                if path.is_dir() {
                    return Err(format!("[ERROR] path passed to --load-file is a directory: {value}"));
                }
                path.clone_into(&mut self.load_file);
            }
            "load-format" => {
                self.load_format = match value {
                    "grug" => LoadFormat::Grug,
                    "hwloc" => LoadFormat::Hwloc,
                    "jgf" | "jgf_shorthand" => LoadFormat::Jgf,
                    "rv1exec" | "rv1exec_force" => LoadFormat::Rv1,
                    _ => return Err(unknown()),
                }
            }
            "load-allowlist" => append(&mut self.load_allowlist, value),
            "match-subsystems" => value.clone_into(&mut self.match_subsystems),
            "match-policy" => value.clone_into(&mut self.match_policy),
            "match-format" => self.match_format = value.parse().map_err(|_| unknown())?,
            "traverser-policy" => value.clone_into(&mut self.traverser_policy),
            "prune-filters" => append(&mut self.prune_filters, value),
            "graph-format" if !["dot", "graphml"].contains(&value.to_lowercase().as_str()) => {
                return Err(unknown());
            }
            "test-output" => self.test_output = Some(PathBuf::from(value)),
            "reserve-vtx-vec" => {
                let number = leading_number(value);
                match usize::try_from(number) {
                    Ok(reserve) if number <= MAX_RESERVE => self.reserve = reserve,
                    _ => {
                        self.reserve = 0;
                        let warning = format!("WARN: out of range specified for --reserve-vtx-vec: {value}");
                        return Ok(Some(warning));
                    }
                }
            }
            "elapse-time" => self.elapse_time = true,
            "disable-prompt" => self.disable_prompt = true,
            "max-vertices" => {
                self.max_vertices = value
                    .parse()
                    .map_err(|_| format!("[ERROR] invalid number for --max-vertices: {value}"))?;
            }
            "stable-ties" => self.stable_ties = true,
            "kubernetes" => self.kubernetes = true,
            "explain" => match Explain::parse(value) {
                Some(form) => self.explain = Some(form),
                None => {
                    return Err(format!(
                        "[ERROR] invalid value for --explain: {value} (must be text or json)"
                    ));
                }
            },
            _ => {}
        }
        Ok(None)
    }
}

/// Joins the values of a repeated option; blank ones count as not given.
fn append(list: &mut Option<String>, value: &str) {
    if value.trim().is_empty() {
        return;
    }
    match list {
        Some(list) => {
            list.push(',');
            list.push_str(value);
        }
        None => *list = Some(value.to_owned()),
    }
}

/// The number a text begins with, as C's `strtoll` reads it: 0 without any, saturating.
pub(crate) fn leading_number(text: &str) -> i64 {
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.bytes().take_while(u8::is_ascii_digit);
    digits.fold(0_i64, |sum, digit| {
        let digit = i64::from(digit - b'0');
        sum.saturating_mul(10).saturating_add(if negative { -digit } else { digit })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Parsed {
        Options::parse(arguments.iter().map(ToString::to_string).collect())
    }

    fn run(arguments: &[&str]) -> (Box<Options>, Vec<String>) {
        match parse(arguments) {
            Parsed::Run(options, warnings) => (options, warnings),
            other => panic!("{arguments:?}: {other:?}"),
        }
    }

    #[test]
    fn repeated_lists_are_joined_and_blank_ones_ignored() {
        let (options, _) = run(&["-p", "ALL:core", "--prune=rack:node", "-p", " ", "-W", "node", "-Wcore"]);
        assert_eq!(options.prune_filters.as_deref(), Some("ALL:core,rack:node"));
        assert_eq!(options.load_allowlist.as_deref(), Some("node,core"));
        assert_eq!(run(&["--prune-filters="]).0.prune_filters, None);
    }

    #[test]
    fn a_reserve_out_of_range_is_a_warning() {
        let (options, warnings) = run(&["-r", "2000001"]);
        assert_eq!((options.reserve, warnings.len()), (0, 1));
        assert_eq!(run(&["-r", "20x"]).0.reserve, 20);
    }

    #[test]
    fn stops_at_the_first_mistake() {
        for (arguments, text) in [
            (&["-F", "Simple", "-h"][..], "unknown format for --match-format: Simple"),
            (&["-f", "xml"], "unknown format for --load-format: xml"),
            (&["-g", "svg"], "unknown format for --graph-format: svg"),
            (&["-L", "/nowhere"], "file does not exist for --load-file: /nowhere"),
            (&["-L", "/"], "is a directory: /"),
            (&["file"], "unexpected argument"),
            (&["--match", "x"], "ambiguous"),
        ] {
            match parse(arguments) {
                Parsed::Wrong(message) => assert!(message.contains(text), "{message}"),
                other => panic!("{arguments:?}: {other:?}"),
            }
        }
        assert!(matches!(parse(&["-h", "-F", "Simple"]), Parsed::Help));
        assert!(matches!(parse(&["-g", "GraphML", "-o", "x"]), Parsed::Run(..)));
    }

    #[test]
    fn numbers_are_read_as_far_as_they_go() {
        for (text, number) in [
            ("12x", 12),
            ("-3", -3),
            ("+4", 4),
            ("x", 0),
            ("", 0),
            ("99999999999999999999", i64::MAX),
            (" 7", 7),
        ] {
            assert_eq!(leading_number(text), number, "{text}");
        }
    }
}
