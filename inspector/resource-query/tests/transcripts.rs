//! Golden transcripts: whole sessions as one reads them, in `tests/cases/*.txt`.
//!
//! `$` begins a session with its arguments, `>` is a typed line, `!` a line on standard error, `=` the
//! exit status; the rest is standard output, `#` a remark. Paths are relative to the package. With
//! `UPDATE_TRANSCRIPTS=1` the answers are written instead of compared.

#![allow(clippy::unwrap_used, reason = "a test that can't set up its files has failed")]

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;
use std::rc::Rc;

use resource_query::{Streams, run};

/// The transcript that a session writes.
type Log = Rc<RefCell<String>>;

/// Appends what a stream gets, each line with a mark in front.
struct Stream {
    log: Log,
    mark: &'static str,
    pending: Vec<u8>,
}

impl Stream {
    fn new(log: &Log, mark: &'static str) -> Self {
        Self { log: Rc::clone(log), mark, pending: Vec::new() }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            let line = format!("{}{}", self.mark, String::from_utf8_lossy(&line));
            self.log.borrow_mut().push_str(mask(line.trim_end()).as_str());
            self.log.borrow_mut().push('\n');
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Hides how long a match took in the line of a job.
fn mask(line: &str) -> String {
    match line.rsplit_once(", ") {
        Some((job, _))
            if [", ALLOCATED, ", ", RESERVED, ", ", CANCELED, "].iter().any(|state| job.contains(state)) =>
        {
            format!("{job}, SECONDS")
        }
        _ => line.to_owned(),
    }
}

/// Types lines, and notes each when it is read.
struct Typist {
    log: Log,
    lines: Vec<String>,
    current: Vec<u8>,
}

impl Read for Typist {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Typist {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.current.is_empty() && !self.lines.is_empty() {
            let line = self.lines.remove(0);
            writeln!(self.log.borrow_mut(), "> {line}").unwrap();
            self.current = format!("{line}\n").into_bytes();
        }
        Ok(&self.current)
    }

    fn consume(&mut self, count: usize) {
        self.current.drain(..count);
    }
}

/// Plays the sessions of a transcript anew; remarks and empty lines before a session stay.
fn replay(text: &str) -> String {
    let log: Log = Log::default();
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        let Some(arguments) = lines[at].strip_prefix("$ resource-query") else {
            log.borrow_mut().push_str(lines[at]);
            log.borrow_mut().push('\n');
            at += 1;
            continue;
        };
        writeln!(log.borrow_mut(), "{}", lines[at]).unwrap();
        at += 1;
        let mut typed = Vec::new();
        while at < lines.len() && !lines[at - 1].starts_with('=') && !lines[at].starts_with(['$', '#']) {
            if let Some(line) = lines[at].strip_prefix('>') {
                typed.push(line.trim_start().to_owned());
            }
            at += 1;
        }
        let mut stdin = Typist { log: Rc::clone(&log), lines: typed, current: Vec::new() };
        let (mut stdout, mut stderr) = (Stream::new(&log, ""), Stream::new(&log, "! "));
        let streams =
            Streams { stdin: &mut stdin, stdout: &mut stdout, stderr: &mut stderr, terminal: false };
        // Arguments with blanks are put into quotes.
        let mut words = Vec::new();
        for (index, part) in arguments.split('"').enumerate() {
            if index % 2 == 0 {
                words.extend(part.split_whitespace().map(str::to_owned));
            } else {
                words.push(part.to_owned());
            }
        }
        let status = run(words, streams);
        writeln!(log.borrow_mut(), "= {status}").unwrap();
    }
    log.take()
}

#[test]
fn sessions_go_as_written_down() {
    let folder = Path::new("tests/cases");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    assert!(files.len() >= 10);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let played = replay(&text);
        if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
            std::fs::write(&file, played).unwrap();
            continue;
        }
        for (at, (want, got)) in text.lines().zip(played.lines()).enumerate() {
            assert_eq!(want, got, "{}:{}", file.display(), at + 1);
        }
        assert_eq!(text.lines().count(), played.lines().count(), "{}", file.display());
    }
}
