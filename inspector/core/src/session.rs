//! A sitting with the matcher: job numbers, the table of jobs, and one method per command.
//!
//! It decides what is remembered and which number a job gets; how commands are typed and where texts
//! go is not its business. Messages are those that belong on the error stream.

use std::collections::BTreeMap;

use crate::document::Document;
use crate::errno::Errno;
use crate::graph::{Graph, Status};
use crate::jobspec::Jobspec;
use crate::matcher::sink::Emit;
use crate::matcher::{Engine, Failure, Found, JobId, Operation};
use crate::search::{Expression, InvalidCriteria};

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It runs.
    Allocated,
    /// It is planned for later.
    Reserved,
    /// It was cancelled, or lost all it had.
    Cancelled,
}

/// A job of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// What became of it.
    pub state: JobState,
    /// Start in seconds; 0 is now.
    pub at: i64,
    /// The file it came from, as it was named.
    pub file: String,
    /// How long it took to match, in seconds; whoever has a clock may set it.
    pub overhead: f64,
}

/// The answer to a match or an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The text of what was found, or of what was left from before; may be empty.
    pub text: String,
    /// The number the job has, or would have had.
    pub job: JobId,
    /// When it starts, or why not.
    pub outcome: Result<Found, Errno>,
    /// Messages for the error stream, each a line without its newline.
    pub messages: Vec<String>,
}

impl Answer {
    /// Whether it can't ever work, as far as the error number tells.
    pub fn is_unsatisfiable(&self) -> bool {
        matches!(self.outcome, Err(Errno::Enodev | Errno::Enoent))
    }
}

/// The answer to a partial cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartialAnswer {
    /// Part of the job, or all of it, was let go of.
    Done,
    /// The job is only planned; that can't be cut.
    Reserved,
    /// There is no such job.
    Unknown,
    /// The document does not fit.
    Failed(Failure),
}

/// The sitting.
#[derive(Debug)]
pub struct Session<W> {
    engine: Engine,
    writer: W,
    jobs: BTreeMap<JobId, Job>,
    next: JobId,
    now: i64,
}

impl<W: Emit> Session<W> {
    /// A sitting with a matcher, of which answers are written by `writer`. Time stands still at 0.
    pub fn new(engine: Engine, writer: W) -> Self {
        Self { engine, writer, jobs: BTreeMap::new(), next: 1, now: 0 }
    }

    /// The matcher.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The jobs by number.
    pub fn jobs(&self) -> &BTreeMap<JobId, Job> {
        &self.jobs
    }

    /// The number that the next job gets.
    pub fn next_job(&self) -> JobId {
        self.next
    }

    /// Notes how long it took to match a job, in seconds.
    pub fn set_overhead(&mut self, job: JobId, seconds: f64) {
        if let Some(job) = self.jobs.get_mut(&job) {
            job.overhead = seconds;
        }
    }

    /// Matches a jobspec given as text; `file` is what the table of jobs shows as its origin.
    pub fn match_text(&mut self, operation: Operation, text: &str, file: &str) -> Answer {
        let job = self.next;
        let graph = self.engine.graph();
        let spec = Jobspec::parse(text, &|name| graph.find_type(name).is_some());
        match spec {
            Ok(spec) => self.match_spec(operation, &spec, file),
            Err(error) => Answer {
                text: String::new(),
                job,
                outcome: Err(Errno::Einval),
                messages: vec![format!("match_allocate: ERROR: Jobspec error for {job}: {error}")],
            },
        }
    }

    /// Matches a jobspec.
    pub fn match_spec(&mut self, operation: Operation, spec: &Jobspec, file: &str) -> Answer {
        let job = self.next;
        let result = self.engine.match_job(operation, spec, job, self.now, &mut self.writer);
        let mut answer =
            Answer { text: String::new(), job, outcome: Err(Errno::Unset), messages: Vec::new() };
        let errno = result.as_ref().map_or_else(|failure| failure.errno, |_| Errno::Unset);
        if let Err(failure) = &result {
            if !failure.message.is_empty() {
                answer.messages.push(format!("match_allocate: ERROR: {}", failure.message));
            } else if !matches!(errno, Errno::Ebusy | Errno::Enodev) {
                answer.messages.push(format!("match_allocate: ERROR: traverser: {}", errno.text()));
            }
            if !matches!(errno, Errno::Ebusy | Errno::Enodev) {
                answer.outcome = Err(errno);
                return answer;
            }
        }
        if let Err(errno) = self.writer.emit(self.engine.graph(), &mut answer.text) {
            if result.is_ok() && operation.books() && !self.engine.quirks().leaked_bookings {
                // The answer can't be given, so nobody may hold what it says; an unknown job holds nothing.
                let _ = self.engine.cancel(job);
            }
            self.engine.leave_errno(errno);
            answer.messages.push(format!("match_allocate: ERROR: match writer emit: {}", errno.text()));
            answer.outcome = Err(errno);
            return answer;
        }
        if operation.books() {
            self.next += 1;
            if let Ok(found) = &result {
                self.remember(job, found.at, file);
            }
        }
        answer.outcome = result.map_err(|failure| failure.errno);
        answer
    }

    fn remember(&mut self, job: JobId, at: i64, file: &str) {
        let state = if at == self.now { JobState::Allocated } else { JobState::Reserved };
        self.jobs.insert(job, Job { state, at, file: file.to_owned(), overhead: 0.0 });
    }

    /// Whether a job holds something, as far as the table knows.
    pub fn is_active(&self, job: JobId) -> bool {
        self.jobs.get(&job).is_some_and(|job| job.state != JobState::Cancelled)
    }

    /// Books what a document says, for a job that has nothing yet. The next job gets the number after
    /// it, whether that worked or not.
    pub fn update(&mut self, document: &Document, job: JobId, at: i64, duration: i64, file: &str) -> Answer {
        let types: Vec<&str> = match document {
            Document::Graph(document) => document.nodes.iter().map(|node| node.type_name.as_str()).collect(),
            Document::Ranks(document) => {
                document.ranks.iter().flat_map(|rank| &rank.children).map(|(name, _)| name.as_str()).collect()
            }
        };
        self.engine.know_types(&types);
        let result = self.engine.update(document, job, at, duration, &mut self.writer);
        let mut answer =
            Answer { text: String::new(), job, outcome: Err(Errno::Einval), messages: Vec::new() };
        if let Err(errno) = self.writer.emit(self.engine.graph(), &mut answer.text) {
            answer.messages.push(format!("ERROR: match writer emit: {}", errno.text()));
        }
        match result {
            Ok(()) => {
                self.remember(job, at, file);
                answer.outcome = Ok(Found { at, duration });
            }
            Err(failure) => {
                answer.messages.push("ERROR: traverser run () returned error ".to_owned());
                answer.messages.push(format!("ERROR: {}", failure.message.trim_end()));
                answer.outcome = Err(failure.errno);
            }
        }
        self.next = job.saturating_add(1);
        answer
    }

    /// Cancels a job. Errors: the job is unknown or has ended, or (see
    /// [`Quirks`](crate::quirks::Quirks)) is not known at the root.
    pub fn cancel(&mut self, job: JobId) -> Result<(), Failure> {
        if !self.is_active(job) {
            return Err(Failure::new(Errno::Enoent, format!("nonexistent job {job}")));
        }
        self.engine.cancel(job)?;
        self.end(job);
        Ok(())
    }

    fn end(&mut self, job: JobId) {
        if let Some(job) = self.jobs.get_mut(&job) {
            job.state = JobState::Cancelled;
        }
    }

    /// Lets go of the part of a job that a document lists.
    pub fn partial_cancel(&mut self, job: JobId, document: &Document) -> PartialAnswer {
        match self.jobs.get(&job).map(|job| job.state) {
            Some(JobState::Allocated) => {}
            Some(JobState::Reserved) => return PartialAnswer::Reserved,
            _ => return PartialAnswer::Unknown,
        }
        match self.engine.partial_cancel(job, document) {
            Ok(all) => {
                if all {
                    self.end(job);
                }
                PartialAnswer::Done
            }
            Err(failure) => PartialAnswer::Failed(failure),
        }
    }

    /// Lets a reader add to the graph.
    pub fn attach<E: From<Failure>>(
        &mut self,
        read: impl FnOnce(&mut Graph) -> Result<(), E>,
    ) -> Result<(), E> {
        self.engine.attach(read)
    }

    /// Removes a vertex with everything below it.
    pub fn remove_path(&mut self, path: &str) -> Result<(), Failure> {
        let ended = self.engine.remove_path(path)?;
        ended.into_iter().for_each(|job| self.end(job));
        Ok(())
    }

    /// Removes all vertices of some ranks.
    pub fn remove_ranks(&mut self, ranks: &[i32]) -> Result<(), Failure> {
        let ended = self.engine.remove_ranks(ranks)?;
        ended.into_iter().for_each(|job| self.end(job));
        Ok(())
    }

    /// Marks what is at a path as usable or not; answers whether there is anything.
    pub fn set_status(&mut self, path: &str, status: Status) -> bool {
        self.engine.set_status(path, status) > 0
    }

    /// Sets a property of what is at a path; answers whether there is anything.
    pub fn set_property(&mut self, path: &str, key: &str, value: &str) -> bool {
        self.engine.set_property(path, key, value) > 0
    }

    /// Removes a property of what is at a path; answers whether there is anything.
    pub fn remove_property(&mut self, path: &str, key: &str) -> bool {
        self.engine.remove_property(path, key) > 0
    }

    /// Searches for vertices. `now` is the second for which sums are shown. The inner error is that
    /// of the writer.
    pub fn find(&mut self, expression: &str, now: i64) -> Result<Result<String, Errno>, InvalidCriteria> {
        let expression = Expression::parse(expression)?;
        self.engine.find(&expression, now, &mut self.writer);
        let mut text = String::new();
        Ok(self.writer.emit(self.engine.graph(), &mut text).map(|()| text))
    }
}
