//! The form that cases are written in. Unknown words are errors: a check that is not understood must not pass.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// As the file is called.
    pub name: String,
    /// What goes wrong elsewhere, and what is right.
    pub about: String,
    /// Where it was reported.
    pub source: String,
    /// What it is about in one word.
    pub kind: String,
    /// Queue policy; `None` is the default.
    pub policy: Option<String>,
    /// Keys of the inspector's configuration file.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
    /// Applied first.
    pub objects: Vec<Value>,
    /// Done one after the other, each after the cluster has settled.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// What must be true.
    pub expect: Vec<Check>,
    /// Whether what is written first also arrives first, Pods that a controller makes included: so it is in the files
    /// that standalone mode reads. Otherwise the objects of a step come at one moment.
    #[serde(skip)]
    pub in_order: bool,
}

impl Case {
    /// The seconds that its steps wait.
    pub fn seconds(&self) -> u64 {
        let waits =
            self.steps.iter().map(|step| if let Step::Wait { seconds } = step { *seconds } else { 0 });
        waits.sum()
    }
}

/// One step.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// Creates objects.
    Apply {
        objects: Vec<Value>,
        /// So many copies, with {i} counted from 0.
        repeat: Option<u32>,
        /// The API server must refuse them.
        #[serde(default)]
        rejected: bool,
    },
    /// Deletes `kind/name`, or all Pods of `pods:SELECTOR`.
    Delete { object: String, namespace: Option<String> },
    /// Patches them.
    Patch { object: String, namespace: Option<String>, subresource: Option<String>, patch: Value },
    /// Lets time pass.
    Wait { seconds: u64 },
    /// Another scheduler binds a Pod.
    BindForeign { pod: String, node: String, namespace: Option<String> },
    /// Kills the inspector and starts it again.
    RestartInspector,
    /// Cancels a job by the plugin.
    Cancel {
        job: String,
        namespace: Option<String>,
        #[serde(default)]
        dry_run: bool,
        /// The user it is done as.
        r#as: Option<String>,
    },
}

/// One thing that must be true. Which fields are set says what it is about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Check {
    /// After which step: 0 is after `objects`, `None` after all.
    pub after: Option<usize>,
    pub namespace: Option<String>,
    /// The rule it follows from.
    pub because: Option<String>,
    /// Seconds in which it must become true.
    pub within_seconds: Option<u64>,
    /// Seconds after the start at which it must be true; where nothing is done in steps.
    pub at: Option<u64>,

    pub pod: Option<String>,
    pub pods: Option<String>,
    pub bound: Option<Value>,
    pub count: Option<usize>,
    pub distinct_nodes: Option<usize>,
    pub on_nodes: Option<Vec<String>>,

    pub job: Option<String>,
    pub jobs: Option<JobsOf>,
    pub state: Option<OneOf>,
    pub members: Option<String>,
    pub duration: Option<Value>,
    pub start: Option<String>,
    /// `KIND/NAME+SECONDS`: its estimate is not before that job's planned start and so many seconds.
    pub eta_after: Option<String>,
    pub request: Option<Amounts>,
    /// The nodes it runs on, or ran on.
    pub on: Option<Vec<String>>,

    pub node: Option<String>,
    pub sum_of: Option<Vec<String>>,
    pub allocated: Option<Amounts>,
    pub foreign: Option<Amounts>,
    pub free: Option<Amounts>,
    pub deficit: Option<Amounts>,

    pub object: Option<String>,
    pub exists: Option<bool>,

    pub reason_mentions: Option<Vec<Value>>,
    /// The object an Event of which must mention it; it may be gone by then.
    pub event: Option<String>,

    /// The number of the step that cancelled.
    pub cancel: Option<usize>,
    pub outcome: Option<OneOf>,

    pub queue_order: Option<Vec<String>>,
    pub never: Option<String>,
}

/// Resource to amount.
pub type Amounts = BTreeMap<String, Value>;

/// Jobs of a kind whose names begin alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct JobsOf {
    pub kind: String,
    pub name_prefix: String,
}

/// One word, or any of several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOf {
    One(String),
    Any(Vec<String>),
}

impl OneOf {
    /// Whether the word is among them.
    pub fn allows(&self, word: &str) -> bool {
        match self {
            Self::One(one) => one == word,
            Self::Any(any) => any.iter().any(|one| one == word),
        }
    }

    /// The words.
    pub fn words(&self) -> Vec<&str> {
        match self {
            Self::One(one) => vec![one],
            Self::Any(any) => any.iter().map(String::as_str).collect(),
        }
    }
}

impl Check {
    /// The namespace it is about.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }

    /// In one line, for the table.
    pub fn title(&self) -> String {
        let after = self.after.map_or_else(String::new, |after| format!(" after {after}"));
        format!("{}{after}", self.subject())
    }

    fn subject(&self) -> String {
        let mut parts = Vec::new();
        let mut say = |word: &str, value: Option<String>| {
            if let Some(value) = value {
                parts.push(format!("{word} {value}"));
            }
        };
        say("never:", self.never.clone());
        say("queue-order", self.queue_order.as_ref().map(|names| names.join(", ")));
        say("cancel in step", self.cancel.map(|step| step.to_string()));
        say("object", self.object.clone());
        say("event on", self.event.clone());
        say("namespace", self.namespace.clone());
        say("pod", self.pod.clone());
        say("pods", self.pods.clone());
        say("job", self.job.clone());
        say("jobs", self.jobs.as_ref().map(|jobs| format!("{}/{}*", jobs.kind, jobs.name_prefix)));
        say("node", self.node.clone());
        say("bound", self.bound.as_ref().map(plain));
        say("count", self.count.map(|count| count.to_string()));
        say("state", self.state.as_ref().map(|state| state.words().join(" or ")));
        say("outcome", self.outcome.as_ref().map(|outcome| outcome.words().join(" or ")));
        say("exists", self.exists.map(|exists| exists.to_string()));
        say("members", self.members.clone());
        say("duration", self.duration.as_ref().map(plain));
        say("start", self.start.clone());
        say("estimate after", self.eta_after.clone());
        say("on", self.on.as_ref().map(|nodes| nodes.join(" ")));
        for (word, amounts) in [
            ("request", &self.request),
            ("allocated", &self.allocated),
            ("foreign", &self.foreign),
            ("free", &self.free),
            ("deficit", &self.deficit),
        ] {
            say(word, amounts.as_ref().map(list));
        }
        let mentions = self.reason_mentions.as_ref();
        say("mentions", mentions.map(|words| words.iter().map(plain).collect::<Vec<_>>().join(", ")));
        parts.join(", ")
    }
}

fn list(amounts: &Amounts) -> String {
    if amounts.is_empty() {
        return "none".to_owned();
    }
    amounts.iter().map(|(name, amount)| format!("{name}={}", plain(amount))).collect::<Vec<_>>().join(" ")
}

/// A value as it stands in the file, without quotes.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str = r"
name: small
about: what it is about
source: nowhere
kind: queue
settings: {bindDeadline: 30s}
objects: [{apiVersion: v1, kind: Node, metadata: {name: n1}}]
steps:
- {do: apply, repeat: 2, objects: [{apiVersion: v1, kind: Pod, metadata: {name: 'w-{i}'}}]}
- {do: cancel, job: job/a, dry-run: true}
- {do: restart-inspector}
expect:
- {pods: a=b, after: 1, bound: 2, distinct-nodes: 2, because: 'it fits'}
- {job: job/a, state: [Pending, Reserved], reason-mentions: [cpu, '3']}
- {event: pod/w-0, after: 1, reason-mentions: [refused]}
- {never: 'a panic'}
";

    #[test]
    fn the_form_is_read() {
        let case: Case = serde_saphyr::from_str(CASE).unwrap();
        assert!(matches!(case.steps[0], Step::Apply { repeat: Some(2), rejected: false, .. }));
        assert!(matches!(case.steps[1], Step::Cancel { dry_run: true, .. }));
        assert_eq!(case.settings["bindDeadline"], "30s");
        assert_eq!(case.expect[0].title(), "pods a=b, bound 2 after 1");
        assert_eq!(case.expect[2].title(), "event on pod/w-0, mentions refused after 1");
        assert!(case.expect[1].state.as_ref().unwrap().allows("Reserved"));
    }

    #[test]
    fn a_word_that_is_not_known_is_an_error() {
        for wrong in ["{pod: a, bounds: true}", "{job: a, sate: Running}"] {
            assert!(serde_saphyr::from_str::<Check>(wrong).is_err(), "{wrong}");
        }
        assert!(serde_saphyr::from_str::<Step>("{do: wait, minutes: 3}").is_err());
    }
}
