//! Kubernetes Events: one object per message, with a count of repetitions.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fluxion_scheduler::model::{ObjectRef, SharedStr};
use fluxion_text::clean;
use kube::Client;
use serde_json::{Value, json};

use super::api::{Write, WriteError, segment};

const CONTROLLER: &str = "fluxion.flux-framework.org/inspector";
/// Maximum length accepted by the API server, in bytes.
const NOTE_MAX: usize = 1024;
/// A message repeated within this time increments the count of the existing Event.
const SERIES: Duration = Duration::from_mins(6);
/// Maximum number of messages remembered.
const REMEMBERED: usize = 4096;
/// Maximum number of different messages about one object at once; one more is allowed every [`REFILL`].
const BURST: f64 = 25.0;
const REFILL: Duration = Duration::from_secs(30);

type Said = (SharedStr, &'static str, String);

struct Series {
    path: String,
    count: u32,
    last: Instant,
}

struct Budget {
    left: f64,
    since: Instant,
}

#[derive(Default)]
struct Memory {
    series: HashMap<Said, Series>,
    budgets: HashMap<SharedStr, Budget>,
}

/// What to do with a message.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    New,
    Again { path: String, count: u32 },
    TooMuch,
}

/// Writes Events.
pub(super) struct Notes {
    instance: String,
    memory: Mutex<Memory>,
}

impl Notes {
    /// `instance` is the name of this instance.
    pub(super) fn new(instance: String) -> Self {
        Self { instance, memory: Mutex::default() }
    }

    pub(super) async fn write(
        &self,
        client: &Client,
        regarding: &ObjectRef,
        warning: bool,
        reason: &'static str,
        action: &str,
        note: &str,
    ) -> Result<(), WriteError> {
        let said = (regarding.uid.clone(), reason, note.to_owned());
        let now = jiff::Timestamp::now();
        let verdict = self.lock().judge(&said, Instant::now());
        match verdict {
            Verdict::TooMuch => Err(WriteError::Dropped),
            Verdict::Again { path, count } => {
                let patch = json!({"series": {"count": count, "lastObservedTime": micro(now)}});
                Write::patch(path, "application/strategic-merge-patch+json", &patch).send(client).await?;
                Ok(())
            }
            Verdict::New => {
                let event = self.event(regarding, warning, reason, action, note, now);
                let name = event["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                let namespace = event["metadata"]["namespace"].as_str().unwrap_or_default();
                let events = format!("/apis/events.k8s.io/v1/namespaces/{}/events", segment(namespace));
                Write::json("POST", events.clone(), &event).send(client).await?;
                self.lock().written(said, format!("{events}/{name}"), Instant::now());
                Ok(())
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn event(
        &self,
        regarding: &ObjectRef,
        warning: bool,
        reason: &str,
        action: &str,
        note: &str,
        now: jiff::Timestamp,
    ) -> Value {
        // Events about cluster-scoped objects are created where kubectl looks for them.
        let namespace = if regarding.namespace.is_empty() { "default" } else { &*regarding.namespace };
        // Names have at most 253 bytes; object names are ASCII.
        let stem: String = segment(&regarding.name).chars().take(230).collect();
        let name = format!("{stem}.{:x}", now.as_nanosecond());
        json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": micro(now),
            "reportingController": CONTROLLER,
            "reportingInstance": cut(&self.instance, 128),
            "action": action,
            "reason": reason,
            "type": if warning { "Warning" } else { "Normal" },
            "regarding": {"apiVersion": &*regarding.api_version, "kind": &*regarding.kind,
                "namespace": &*regarding.namespace, "name": &*regarding.name, "uid": &*regarding.uid},
            "note": cut(&clean(note), NOTE_MAX),
        })
    }
}

impl Memory {
    fn judge(&mut self, said: &Said, now: Instant) -> Verdict {
        self.forget(now);
        if let Some(series) = self.series.get_mut(said) {
            series.count = series.count.saturating_add(1);
            series.last = now;
            return Verdict::Again { path: series.path.clone(), count: series.count };
        }
        let budget = self.budgets.entry(said.0.clone()).or_insert(Budget { left: BURST, since: now });
        let refilled = now.duration_since(budget.since).as_secs_f64() / REFILL.as_secs_f64();
        *budget = Budget { left: (budget.left + refilled).min(BURST), since: now };
        if budget.left < 1.0 {
            return Verdict::TooMuch;
        }
        budget.left -= 1.0;
        Verdict::New
    }

    fn written(&mut self, said: Said, path: String, now: Instant) {
        self.series.insert(said, Series { path, count: 1, last: now });
    }

    /// Keeps both caches within their limits; a dropped message would become a new Event.
    fn forget(&mut self, now: Instant) {
        if self.series.len() >= REMEMBERED {
            self.series.retain(|_, series| now.duration_since(series.last) < SERIES);
        }
        if self.series.len() >= REMEMBERED {
            self.series.clear();
        }
        if self.budgets.len() >= REMEMBERED * 4 {
            self.budgets.retain(|_, budget| now.duration_since(budget.since) < REFILL);
        }
        if self.budgets.len() >= REMEMBERED * 4 {
            self.budgets.clear();
        }
    }
}

/// Truncates to a number of bytes, at a character boundary.
fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let dots = "…";
    let mut end = bytes - dots.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{dots}", &text[..end])
}

fn micro(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(uid: &str, note: &str) -> Said {
        (uid.into(), "Reason", note.to_owned())
    }

    #[test]
    fn the_same_thing_said_again_counts_up() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        assert_eq!(memory.judge(&said("a", "x"), now), Verdict::New);
        memory.written(said("a", "x"), "/p".to_owned(), now);
        assert_eq!(memory.judge(&said("a", "x"), now), Verdict::Again { path: "/p".to_owned(), count: 2 });
        assert_eq!(memory.judge(&said("a", "y"), now), Verdict::New);
    }

    #[test]
    fn one_object_cannot_flood() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        let fresh = (0..40).filter(|n| memory.judge(&said("a", &n.to_string()), now) == Verdict::New);
        assert_eq!(fresh.count(), 25);
        assert_eq!(memory.judge(&said("b", "x"), now), Verdict::New);
        assert_eq!(memory.judge(&said("a", "later"), now + REFILL), Verdict::New);
    }

    #[test]
    fn memory_is_bounded() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        for number in 0..3 * REMEMBERED {
            let said = said(&number.to_string(), "x");
            memory.judge(&said, now);
            memory.written(said, String::new(), now);
        }
        assert!(memory.series.len() <= REMEMBERED);
    }

    fn event(note: &str) -> Value {
        Notes::new("me".to_owned()).event(
            &ObjectRef {
                namespace: "".into(),
                kind: "Node".into(),
                api_version: "v1".into(),
                name: "n1".into(),
                uid: "u".into(),
            },
            true,
            "Reason",
            "Act",
            note,
            jiff::Timestamp::UNIX_EPOCH,
        )
    }

    #[test]
    fn a_note_is_one_line_that_shows_what_it_says() {
        assert_eq!(event("a\n\u{202e}b")["note"], "a \u{fffd}b");
    }

    #[test]
    fn notes_are_cut_between_characters() {
        let event = event(&"ü".repeat(600));
        let note = event["note"].as_str().unwrap();
        assert!(note.len() <= NOTE_MAX && note.ends_with('…'));
        assert_eq!(event["metadata"]["namespace"], "default");
        assert_eq!(event["eventTime"], "1970-01-01T00:00:00.000000Z");
    }
}
