//! The log on stderr, and rate limits for repeated messages.

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

/// kube logs the whole error of a failing watch at each attempt; the watches log it themselves.
const LEFT_OUT: &str = ",kube_runtime::watcher=error";

/// Initializes logging; filtered by `RUST_LOG`, else by `level`. A second call has no effect.
pub fn start(format: LogFormat, level: &str) {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(format!("{level}{LEFT_OUT}")));
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

/// The message and fields as in the text log, each escaped: the log's own colors may be between them.
fn fields() -> impl for<'writer> FormatFields<'writer> + Send + Sync + 'static {
    debug_fn(|out, field, value| {
        let text = format!("{value:?}");
        let text = escape(&text, &[], Syntax::Json);
        if field.name() == "message" { write!(out, "{text}") } else { write!(out, "{field}={text}") }
    })
    .delimited(" ")
}

/// Keeps each entry on one line, with user text escaped: an annotation must not be able to forge log entries.
struct Lines<W> {
    to: W,
    /// Whether escape sequences are the log's own; those in fields were escaped before.
    colours: bool,
}

impl<W: Write> Write for Lines<W> {
    /// Writes one whole entry, as passed by the logger.
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

/// Allows a message once per interval, and counts suppressed ones.
#[derive(Debug)]
pub struct RateLimit {
    every: Duration,
    last: Mutex<(Option<Instant>, u64)>,
}

impl RateLimit {
    /// Once per `every`.
    pub const fn new(every: Duration) -> Self {
        Self { every, last: Mutex::new((None, 0)) }
    }

    /// `Some(n)`: log it now; `n` were suppressed since it was last logged.
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

/// Allows the message of a continuing failure when it starts, when its text changes, and once per interval.
#[derive(Debug)]
pub struct Repeated {
    every: Duration,
    /// The last message, its time, and the number suppressed since.
    last: Mutex<Option<(String, Instant, u64)>>,
}

impl Repeated {
    /// The same message once per `every`.
    pub const fn new(every: Duration) -> Self {
        Self { every, last: Mutex::new(None) }
    }

    /// `Some(n)`: log `text` now; `n` were suppressed since the last one.
    pub fn now(&self, text: &str) -> Option<u64> {
        /// Two alternating messages are one failure, too.
        const OTHER: Duration = Duration::from_secs(10);
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((said, at, left_out)) = &mut *last {
            let wait = if said == text { self.every } else { OTHER.min(self.every) };
            if at.elapsed() < wait {
                *left_out += 1;
                return None;
            }
        }
        let before = last.replace((text.to_owned(), Instant::now(), 0));
        Some(before.map_or(0, |(_, _, left_out)| left_out))
    }

    /// The failure is over: the next one is logged immediately. True if one had been logged.
    pub fn over(&self) -> bool {
        self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take().is_some()
    }
}

/// The API server's message, if it sent one; else the error with its causes, without duplicates.
pub fn kube_error(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        let said = [&status.message, &status.reason].into_iter().find(|said| !said.is_empty());
        return said.cloned().unwrap_or_else(|| format!("the API server returned status {}", status.code));
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
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

    /// What is logged meanwhile.
    pub(crate) fn logged(format: LogFormat, work: impl FnOnce()) -> String {
        let kept = Kept::default();
        let writer = kept.clone();
        let log = subscriber(format, EnvFilter::new("info"), false, move || writer.clone());
        tracing::subscriber::with_default(log, work);
        String::from_utf8(kept.0.lock().unwrap().clone()).unwrap()
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
        let seldom = RateLimit::new(Duration::from_millis(30));
        assert_eq!(seldom.now(), Some(0));
        assert_eq!((seldom.now(), seldom.now()), (None, None));
        std::thread::sleep(Duration::from_millis(40));
        assert_eq!(seldom.now(), Some(2));
    }

    #[test]
    fn what_goes_on_failing_is_said_when_it_begins_and_when_it_changes() {
        let lease = Repeated::new(Duration::from_millis(40));
        assert_eq!((lease.now("forbidden"), lease.now("forbidden")), (Some(0), None));
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(lease.now("refused"), Some(1));
        assert!(lease.over() && !lease.over());
        assert_eq!(lease.now("refused"), Some(0));
    }

    #[test]
    fn of_an_answer_only_the_message_is_told() {
        let message = "leases is forbidden: User \"u\" cannot get resource \"leases\"";
        let status = kube::core::Status::failure(message, "Forbidden").with_code(403);
        let error = kube::Error::Api(status.boxed());
        assert_eq!(kube_error(&error), message);
        assert!(error.to_string().len() > 2 * message.len(), "why this is needed");
    }
}
