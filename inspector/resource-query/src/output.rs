//! Output streams: results, standard output and standard error.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use fluxion_text::{Syntax, escape};

/// What standard output may keep back, in bytes.
const PENDING: usize = 1 << 16;

/// The three places. What was written is sent before anything goes to another of them, and when a command is done,
/// so that they interleave as they happen.
pub(crate) struct Output<'w> {
    answers: Option<File>,
    stdout: &'w mut dyn Write,
    /// For standard output, not yet sent.
    pending: String,
    stderr: &'w mut dyn Write,
    /// Set when nobody reads standard output any more.
    closed: bool,
}

impl<'w> Output<'w> {
    /// Answers go to standard output until a file is opened.
    pub(crate) fn new(stdout: &'w mut dyn Write, stderr: &'w mut dyn Write) -> Self {
        Self { answers: None, stdout, pending: String::new(), stderr, closed: false }
    }

    /// Sends the answers to a file, which is made or emptied.
    pub(crate) fn open_answers(&mut self, path: &Path) -> io::Result<()> {
        self.answers = Some(File::create(path)?);
        Ok(())
    }

    /// Writes an answer.
    pub(crate) fn answer(&mut self, text: &str) {
        match &mut self.answers {
            Some(_) => {
                self.send();
                let written = self.answers.as_mut().map_or(Ok(()), |file| file.write_all(text.as_bytes()));
                if let Err(error) = written {
                    self.error(&format!("ERROR: can't write the output: {error}\n"));
                }
            }
            None => self.print(text),
        }
    }

    /// Writes to standard output.
    pub(crate) fn print(&mut self, text: &str) {
        self.pending.push_str(&shown(text));
        if self.pending.len() > PENDING {
            self.send();
        }
    }

    /// Sends what was written to standard output.
    pub(crate) fn send(&mut self) {
        if !self.pending.is_empty() {
            let written = self.stdout.write_all(self.pending.as_bytes()).and_then(|()| self.stdout.flush());
            self.closed |= written.is_err();
            self.pending.clear();
        }
    }

    /// Writes to standard error.
    pub(crate) fn error(&mut self, text: &str) {
        self.send();
        let written = self.stderr.write_all(shown(text).as_bytes()).and_then(|()| self.stderr.flush());
        // With standard error gone there is nobody left to tell.
        drop(written);
    }

    /// Whether nobody reads standard output any more, so that the session may end.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }
}

/// What a terminal may get: names of a graph can hold anything. A JSON document stays the same document.
fn shown(text: &str) -> std::borrow::Cow<'_, str> {
    escape(text, &['\n', '\t'], Syntax::Json)
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        self.send();
    }
}
