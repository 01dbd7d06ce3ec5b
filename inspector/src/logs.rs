//! The log on stderr, and a limit on how often one thing is said in it.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fluxion_text::{Syntax, escape};
use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::LogFormat;

/// Starts the log; `RUST_LOG` filters it, else `level` does. A second call changes nothing.
pub fn start(format: LogFormat, level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let colours = io::stderr().is_terminal();
    if subscriber(format, filter, colours, io::stderr).try_init().is_err() {
        tracing::debug!("the log was started before");
    }
}

fn subscriber<W: Write + 'static>(
    format: LogFormat,
    filter: EnvFilter,
    colours: bool,
    writer: impl Fn() -> W + Send + Sync + 'static,
) -> Box<dyn Subscriber + Send + Sync> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || Lines { to: writer(), colours })
        .with_target(false)
        .with_ansi(colours);
    match format {
        LogFormat::Text => Box::new(builder.fmt_fields(fields()).finish()),
        LogFormat::Json => Box::new(builder.json().finish()),
    }
}

/// The message and fields as the text log writes them, each escaped: between them may stand colours of the log's own.
fn fields() -> impl for<'writer> FormatFields<'writer> + Send + Sync + 'static {
    debug_fn(|out, field, value| {
        let text = format!("{value:?}");
        let text = escape(&text, &[], Syntax::Json);
        if field.name() == "message" { write!(out, "{text}") } else { write!(out, "{field}={text}") }
    })
    .delimited(" ")
}

/// Keeps each entry on one line, with what users wrote escaped: an annotation must not write entries of its own.
struct Lines<W> {
    to: W,
    /// Whether escape characters are the log's own; those of others were escaped with their field.
    colours: bool,
}

impl<W: Write> Write for Lines<W> {
    /// Takes one whole entry, as the log hands them over.
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(entry);
        let keep: &[char] = if self.colours { &['\u{1b}'] } else { &[] };
        let mut line = escape(text.strip_suffix('\n').unwrap_or(&text), keep, Syntax::Json).into_owned();
        line.push('\n');
        self.to.write_all(line.as_bytes())?;
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Lets something be said once in a while, and counts what was left out.
#[derive(Debug)]
pub struct Seldom {
    every: Duration,
    last: Mutex<(Option<Instant>, u64)>,
}

impl Seldom {
    /// Once in `every`.
    pub const fn new(every: Duration) -> Self {
        Self { every, last: Mutex::new((None, 0)) }
    }

    /// `Some(n)`: say it now; it was left out n times since it was last said.
    pub fn now(&self) -> Option<u64> {
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if last.0.is_some_and(|said| said.elapsed() < self.every) {
            last.1 += 1;
            return None;
        }
        let left_out = last.1;
        *last = (Some(Instant::now()), 0);
        Some(left_out)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Where the log of a test goes.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn users_text_writes_no_entries_of_its_own() {
        let hostile = "1h\n\nERROR all is lost\r\u{1b}[31m\u{9b}\u{202e}\u{2028}x";
        for (format, colours) in [(LogFormat::Text, false), (LogFormat::Text, true), (LogFormat::Json, false)]
        {
            let kept = Kept::default();
            let writer = kept.clone();
            let log = subscriber(format, EnvFilter::new("info"), colours, move || writer.clone());
            tracing::subscriber::with_default(log, || {
                tracing::info!(reason = hostile, shown = %hostile, debug = ?hostile, "said: {hostile}");
            });
            let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
            let line = text.strip_suffix('\n').unwrap();
            assert!(!line.contains("\u{1b}[31m"), "{line:?}");
            let own = |c| colours && c == '\u{1b}';
            assert!(line.chars().all(|c| own(c) || !fluxion_text::is_unsafe(c)), "{line:?}");
            assert!(line.contains("ERROR all is lost"), "{line:?}");
            if let LogFormat::Json = format {
                let entry: serde_json::Value = serde_json::from_str(line).unwrap();
                assert_eq!(entry["fields"]["reason"], hostile);
            }
        }
    }

    #[test]
    fn what_is_said_too_often_is_counted() {
        let seldom = Seldom::new(Duration::from_millis(30));
        assert_eq!(seldom.now(), Some(0));
        assert_eq!((seldom.now(), seldom.now()), (None, None));
        std::thread::sleep(Duration::from_millis(40));
        assert_eq!(seldom.now(), Some(2));
    }
}
