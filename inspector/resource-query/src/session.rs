//! A session: the matcher, the writer, and what is remembered of jobs between commands.

use std::collections::{BTreeMap, BTreeSet};

use fluxion_core::errno::Errno;
use fluxion_core::formats::writer::Writer;
use fluxion_core::matcher::Engine;
use fluxion_core::matcher::sink::Emit;

use crate::output::Output;

/// The line above and below every block.
pub const SEPARATOR: &str = "INFO: =============================\n";

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
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
pub struct Job {
    /// What became of it.
    pub state: JobState,
    /// When it starts, in seconds; 0 is now.
    pub at: i64,
    /// The file it came from, as typed.
    pub file: String,
    /// Seconds that the match took.
    pub overhead: f64,
}

impl Job {
    /// The line that `info` and `list` print.
    pub fn line(&self, id: u64) -> String {
        let overhead = crate::numbers::general(self.overhead);
        format!("INFO: {id}, {}, {}, {}, {overhead}\n", self.state.name(), self.at, self.file)
    }
}

/// Times that `stat` tells about.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Shortest, in seconds.
    pub min: f64,
    /// Longest, in seconds.
    pub max: f64,
    /// All together, in seconds.
    pub sum: f64,
}

/// Everything that commands work on.
pub struct Session<'w> {
    /// The matcher.
    pub engine: Engine,
    /// Puts answers into words.
    pub writer: Writer,
    /// Where texts go.
    pub output: Output<'w>,
    /// The number of the next job.
    pub next_job: u64,
    /// Every job, cancelled ones too.
    pub jobs: BTreeMap<u64, Job>,
    /// Jobs that run.
    pub allocations: BTreeSet<u64>,
    /// Jobs that are planned.
    pub reservations: BTreeSet<u64>,
    /// For `stat`.
    pub times: Times,
    /// Whether to print how long things take.
    pub elapse: bool,
    /// Gives the seconds since 1970.
    pub clock: fn() -> i64,
}

impl<'w> Session<'w> {
    /// A session in which nothing has happened.
    pub fn new(engine: Engine, writer: Writer, output: Output<'w>, elapse: bool) -> Self {
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
            clock: wall_clock,
        }
    }

    /// The text of what the writer gathered.
    pub fn emit(&mut self) -> Result<String, Errno> {
        let mut text = String::new();
        self.writer.emit(self.engine.graph(), &mut text).map(|()| text)
    }

    /// Enters a job that was matched.
    pub fn register(&mut self, id: u64, at: i64, file: &str, overhead: f64) {
        let state = if at == 0 { JobState::Allocated } else { JobState::Reserved };
        self.jobs.insert(id, Job { state, at, file: file.to_owned(), overhead });
        if at == 0 {
            self.allocations.insert(id);
        } else {
            self.reservations.insert(id);
        }
    }

    /// Notes that a job is gone.
    pub fn unregister(&mut self, id: u64) {
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
