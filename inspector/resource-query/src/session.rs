//! Session state: the engine, the writer and the jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use fluxion::errno::Errno;
use fluxion::formats::writer::Writer;
use fluxion::jobspec::Jobspec;
use fluxion::matcher::Engine;
use fluxion::matcher::sink::Emit;
use fluxion_scheduler::extension::GangReader;

use crate::options::Explain;
use crate::output::Output;

/// The line above and below every block.
pub(crate) const SEPARATOR: &str = "INFO: =============================\n";

/// The largest file that is read as a whole, in bytes.
pub(crate) const FILE_MAX: u64 = 512 << 20;

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobState {
    /// It runs now.
    Allocated,
    /// It is planned for later.
    Reserved,
    /// It was cancelled.
    Cancelled,
}

impl JobState {
    fn name(self) -> &'static str {
        match self {
            Self::Allocated => "ALLOCATED",
            Self::Reserved => "RESERVED",
            Self::Cancelled => "CANCELED",
        }
    }
}

/// What is remembered of a job.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// What became of it.
    pub(crate) state: JobState,
    /// When it starts, in seconds; 0 is now.
    pub(crate) at: i64,
    /// The file it came from, as typed.
    pub(crate) file: String,
    /// Seconds that the match took.
    pub(crate) overhead: f64,
}

impl Job {
    /// The line that `info` and `list` print.
    pub(crate) fn line(&self, id: u64) -> String {
        let overhead = crate::numbers::general(self.overhead);
        format!("INFO: {id}, {}, {}, {}, {overhead}\n", self.state.name(), self.at, self.file)
    }
}

/// Times that `stat` tells about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Shortest, in seconds.
    pub(crate) min: f64,
    /// Longest, in seconds.
    pub(crate) max: f64,
    /// All together, in seconds.
    pub(crate) sum: f64,
}

/// Everything that commands work on.
pub(crate) struct Session<'w> {
    /// The matcher.
    pub(crate) engine: Engine,
    /// Puts answers into words.
    pub(crate) writer: Writer,
    /// Where texts go.
    pub(crate) output: Output<'w>,
    /// The number of the next job.
    pub(crate) next_job: u64,
    /// Every job, cancelled ones too.
    pub(crate) jobs: BTreeMap<u64, Job>,
    /// Jobs that run.
    pub(crate) allocations: BTreeSet<u64>,
    /// Jobs that are planned.
    pub(crate) reservations: BTreeSet<u64>,
    /// For `stat`.
    pub(crate) times: Times,
    /// Whether to print how long things take.
    pub(crate) elapse: bool,
    /// How to tell why a match fails; none: not at all.
    pub(crate) explain: Option<Explain>,
    /// Gives the seconds since 1970.
    pub(crate) clock: fn() -> i64,
}

impl<'w> Session<'w> {
    /// A session in which nothing has happened.
    pub(crate) fn new(engine: Engine, writer: Writer, output: Output<'w>, elapse: bool) -> Self {
        Self {
            engine,
            writer,
            output,
            next_job: 1,
            jobs: BTreeMap::new(),
            allocations: BTreeSet::new(),
            reservations: BTreeSet::new(),
            times: Times { min: f64::MAX, max: 0.0, sum: 0.0 },
            elapse,
            explain: None,
            clock: wall_clock,
        }
    }

    /// Whether commands that flux-sched's tool does not have may be abbreviated.
    pub(crate) fn is_extended(&self) -> bool {
        self.explain.is_some() || self.engine.is_extended()
    }

    /// The text of what the writer gathered.
    pub(crate) fn emit(&mut self) -> Result<String, Errno> {
        let mut text = String::new();
        self.writer.emit(self.engine.graph(), &mut text).map(|()| text)
    }

    /// A jobspec, with the extensions where they are on; an error is its message.
    pub(crate) fn parse(&self, bytes: &[u8]) -> Result<Jobspec, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| format!("invalid UTF-8: {error}"))?;
        let graph = self.engine.graph();
        let known = |name: &str| graph.find_type(name).is_some();
        if self.engine.is_extended() {
            return Jobspec::parse_with(text, &known, &GangReader).map_err(|error| error.to_string());
        }
        Jobspec::parse(text, &known).map_err(|error| match Jobspec::parse_with(text, &known, &GangReader) {
            // It is the gang that Fluxion does not know.
            Ok(Jobspec { extra: Some(_), .. }) => format!("{error}; gangs require --kubernetes"),
            _ => error.to_string(),
        })
    }

    /// The bytes of a file that a command names; none after saying that it can't be read, or is too large.
    pub(crate) fn read_file(&mut self, path: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = std::fs::File::open(path).and_then(|file| file.take(FILE_MAX + 1).read_to_end(&mut bytes));
        match read {
            Ok(length) if length as u64 <= FILE_MAX => return Some(bytes),
            Ok(_) => self.output.error(&format!("ERROR: {path} is larger than {} MiB\n", FILE_MAX >> 20)),
            Err(_) => self.output.error(&format!("ERROR: can't open {path}\n")),
        }
        None
    }

    /// Enters a job that was matched.
    pub(crate) fn register(&mut self, id: u64, at: i64, file: &str, overhead: f64) {
        let state = if at == 0 { JobState::Allocated } else { JobState::Reserved };
        self.jobs.insert(id, Job { state, at, file: file.to_owned(), overhead });
        if at == 0 {
            self.allocations.insert(id);
        } else {
            self.reservations.insert(id);
        }
    }

    /// Notes that a job is gone.
    pub(crate) fn unregister(&mut self, id: u64) {
        self.allocations.remove(&id);
        self.reservations.remove(&id);
        if let Some(job) = self.jobs.get_mut(&id) {
            job.state = JobState::Cancelled;
        }
    }
}

fn wall_clock() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
