//! The configuration file: parsed strictly, validated, and converted to the engine's settings.
//!
//! Only knows the format; `examples/config.yaml` documents the settings.

use fluxion_scheduler::placement::NodePolicy;
use fluxion_scheduler::queue::{OnPartialBind, Planning, QueueConfig, QueuePolicy};
use fluxion_scheduler::state::Settings;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod journal;
mod seconds;

pub use journal::JournalConfig;
use seconds::{Seconds, SecondsOrNone, SecondsOrZero};

/// Maximum size of a configuration file (bytes).
const SIZE_MAX: u64 = 1 << 20;
/// Maximum number of queues.
const QUEUES_MAX: usize = 1000;

/// Why a configuration is rejected.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("can't read configuration file {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("configuration file {} is larger than 1 MiB", path.display())]
    TooLarge { path: PathBuf },
    #[error("{}{}: {message} (see examples/config.yaml for all settings)", file, at(*.line))]
    Syntax { file: String, line: Option<u64>, message: String },
    #[error("{file}: {field}: {message}")]
    Value { file: String, field: String, message: String },
}

fn at(line: Option<u64>) -> String {
    line.map_or_else(String::new, |line| format!(", line {line}"))
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct File {
    queues: Option<Vec<Queue>>,
    scheduler_names: Option<Vec<String>>,
    replace_default_scheduler: Option<bool>,
    topology_keys: Option<Vec<String>>,
    startup_taints: Option<Vec<String>>,
    bind_deadline: Option<Seconds>,
    lost_member_deadline: Option<SecondsOrZero>,
    assumed_duration: Option<SecondsOrNone>,
    on_partial_bind: Option<PartialBind>,
    limits: Option<Limits>,
    journal: Option<journal::Section>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Queue {
    name: String,
    #[serde(default)]
    policy: Policy,
    queue_depth: Option<usize>,
    reservation_depth: Option<usize>,
    max_reservation_depth: Option<usize>,
    #[serde(default)]
    planning: Plans,
    default_duration: Option<Seconds>,
    assumed_duration: Option<SecondsOrNone>,
    #[serde(default)]
    node_policy: Nodes,
    on_partial_bind: Option<PartialBind>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Policy {
    Fcfs,
    #[default]
    Easy,
    Conservative,
    Hybrid,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Plans {
    #[default]
    Compress,
    Replan,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Nodes {
    #[default]
    Low,
    High,
    Spread,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PartialBind {
    Hold,
    Release,
}

impl From<PartialBind> for OnPartialBind {
    fn from(partial: PartialBind) -> Self {
        match partial {
            PartialBind::Hold => Self::Hold,
            PartialBind::Release => Self::Release,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Limits {
    keep_ended: Option<Seconds>,
    keep_ended_max: Option<usize>,
    unschedulable_max: Option<usize>,
    group_size_max: Option<u32>,
}

/// The content of a configuration file.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub settings: Settings,
    pub journal: JournalConfig,
}

/// The configuration: defaults, overridden by the file, overridden by the names from the command line, if any. `replace`
/// allows the name of kube-scheduler in the latter.
pub fn load(path: Option<&Path>, scheduler_names: &[String], replace: bool) -> Result<Config, ConfigError> {
    let mut config = match path {
        None => Config::default(),
        Some(path) => {
            let io = |source| ConfigError::Io { path: path.to_owned(), source };
            if std::fs::metadata(path).map_err(io)?.len() > SIZE_MAX {
                return Err(ConfigError::TooLarge { path: path.to_owned() });
            }
            let text = std::fs::read_to_string(path).map_err(io)?;
            parse_with(&path.display().to_string(), &text, replace)?
        }
    };
    if !scheduler_names.is_empty() {
        config.settings.scheduler_names = names("--scheduler-name", scheduler_names)
            .map_err(|message| value("command line", "--scheduler-name", message))?;
        if !replace && has_default(&config.settings.scheduler_names) {
            let message =
                format!("{SHARED}: pass --replace-default-scheduler if kube-scheduler does not run");
            return Err(value("command line", "--scheduler-name", message));
        }
    }
    Ok(config)
}

/// Why Pods that don't set a scheduler name should not be scheduled here.
const SHARED: &str =
    "Pods of default-scheduler are scheduled by kube-scheduler, so both schedulers would bind them";

fn has_default(names: &[Arc<str>]) -> bool {
    names.iter().any(|name| &**name == "default-scheduler")
}

/// Parses the text of a configuration; `file` is its name in errors.
pub fn parse(file: &str, text: &str) -> Result<Settings, ConfigError> {
    parse_with(file, text, false).map(|config| config.settings)
}

fn parse_with(file: &str, text: &str, replace: bool) -> Result<Config, ConfigError> {
    let options = serde_saphyr::options! { with_snippet: false };
    let mut field = String::new();
    let read: Result<File, _> =
        serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
            serde_path_to_error::deserialize(deserializer).map_err(|error| {
                field = error.path().to_string();
                error.into_inner()
            })
        });
    let read = read.map_err(|error| {
        let line = error.location().map(|location| location.line());
        let what = worded(&error.to_string());
        // If the error concerns the whole file, there is no field to report.
        let message = if field == "." || field.is_empty() { what } else { format!("{field}: {what}") };
        ConfigError::Syntax { file: file.to_owned(), line, message }
    })?;
    let mut read = read;
    let journal = read.journal.take();
    let settings = settings(file, read, replace)?;
    let journal = journal.map_or_else(|| Ok(JournalConfig::default()), |section| section.check(&settings));
    let journal = journal.map_err(|(field, message)| value(file, format!("journal.{field}"), message))?;
    Ok(Config { settings, journal })
}

/// The YAML parser's error in user-friendly words, without the position, which is reported separately.
fn worded(told: &str) -> String {
    let told = told.rsplit_once(" at line ").map_or(told, |(what, _)| what);
    match told {
        "invalid u64" => "must be an integer, 0 or greater".to_owned(),
        "invalid u32" => format!("must be an integer between 0 and {}", u32::MAX),
        "expected sequence start" => "must be a list, e.g. [a, b]".to_owned(),
        "expected mapping start" => "must be a mapping, e.g. {key: value}".to_owned(),
        other => other.to_owned(),
    }
}

fn value(file: &str, field: impl Into<String>, message: impl Into<String>) -> ConfigError {
    ConfigError::Value { file: file.to_owned(), field: field.into(), message: message.into() }
}

fn settings(file: &str, read: File, replace: bool) -> Result<Settings, ConfigError> {
    let mut settings = Settings::default();
    if let Some(queues) = read.queues {
        if queues.is_empty() || queues.len() > QUEUES_MAX {
            let message = format!("must have between 1 and {QUEUES_MAX} queues, not {}", queues.len());
            return Err(value(file, "queues", message));
        }
        settings.queues.clear();
        for (index, queue) in queues.into_iter().enumerate() {
            let queue = queue_config(queue, read.assumed_duration)
                .map_err(|(key, message)| value(file, format!("queues[{index}].{key}"), message))?;
            if settings.queues.iter().any(|other| other.name == queue.name) {
                let message = format!("duplicate queue '{}'", queue.name);
                return Err(value(file, format!("queues[{index}].name"), message));
            }
            settings.queues.push(queue);
        }
    } else if let Some(assumed) = read.assumed_duration {
        for queue in &mut settings.queues {
            queue.assumed_duration = assumed.0;
        }
    }
    if let Some(list) = read.scheduler_names {
        settings.scheduler_names =
            names("schedulerNames", &list).map_err(|message| value(file, "schedulerNames", message))?;
        let replace = replace || read.replace_default_scheduler == Some(true);
        if !replace && has_default(&settings.scheduler_names) {
            let message =
                format!("{SHARED}: set replaceDefaultScheduler: true if kube-scheduler does not run");
            return Err(value(file, "schedulerNames", message));
        }
    }
    if let Some(list) = read.topology_keys {
        settings.topology_keys =
            names("topologyKeys", &list).map_err(|message| value(file, "topologyKeys", message))?;
    }
    if let Some(list) = read.startup_taints {
        settings.startup_taints =
            names("startupTaints", &list).map_err(|message| value(file, "startupTaints", message))?;
    }
    if let Some(deadline) = read.bind_deadline {
        settings.bind_deadline = deadline.0;
    }
    if let Some(deadline) = read.lost_member_deadline {
        settings.lost_member_deadline = deadline.0;
    }
    settings.on_partial_bind = read.on_partial_bind.map(Into::into);
    let limits = read.limits.unwrap_or_default();
    if let Some(keep) = limits.keep_ended {
        settings.keep_ended = keep.0;
    }
    if let Some(max) = limits.keep_ended_max {
        settings.keep_ended_max = max;
    }
    if let Some(max) = limits.unschedulable_max {
        settings.unschedulable_max = max;
    }
    if let Some(max) = limits.group_size_max {
        if max == 0 {
            return Err(value(file, "limits.groupSizeMax", "must be at least 1"));
        }
        settings.group_size_max = max;
    }
    Ok(settings)
}

fn queue_config(
    queue: Queue,
    assumed_duration: Option<SecondsOrNone>,
) -> Result<QueueConfig, (&'static str, String)> {
    let defaults = QueueConfig::default();
    if !is_label(&queue.name) {
        let message = format!(
            "invalid name '{}' (must consist of at most 63 lower case letters, digits and '-')",
            queue.name
        );
        return Err(("name", message));
    }
    let queue_depth = queue.queue_depth.unwrap_or(defaults.queue_depth);
    if queue_depth == 0 {
        return Err(("queueDepth", "must be at least 1, otherwise no job can start".to_owned()));
    }
    let max_reservation_depth = queue.max_reservation_depth.unwrap_or(defaults.max_reservation_depth);
    if max_reservation_depth == 0 {
        return Err((
            "maxReservationDepth",
            "must be at least 1; use policy fcfs for no reservations".to_owned(),
        ));
    }
    let reservation_depth = queue.reservation_depth.unwrap_or(defaults.reservation_depth);
    if queue.reservation_depth.is_some_and(|depth| !(1..=max_reservation_depth).contains(&depth)) {
        let message = format!("must be between 1 and maxReservationDepth ({max_reservation_depth})");
        return Err(("reservationDepth", message));
    }
    Ok(QueueConfig {
        name: Arc::from(queue.name),
        policy: match queue.policy {
            Policy::Fcfs => QueuePolicy::Fcfs,
            Policy::Easy => QueuePolicy::Easy,
            Policy::Conservative => QueuePolicy::Conservative,
            Policy::Hybrid => QueuePolicy::Hybrid,
        },
        queue_depth,
        reservation_depth,
        max_reservation_depth,
        planning: match queue.planning {
            Plans::Compress => Planning::Compress,
            Plans::Replan => Planning::Replan,
        },
        default_duration: queue.default_duration.map(|seconds| seconds.0),
        assumed_duration: queue
            .assumed_duration
            .or(assumed_duration)
            .map_or(defaults.assumed_duration, |seconds| seconds.0),
        node_policy: match queue.node_policy {
            Nodes::Low => NodePolicy::Low,
            Nodes::High => NodePolicy::High,
            Nodes::Spread => NodePolicy::Spread,
        },
        on_partial_bind: queue.on_partial_bind.map(Into::into),
    })
}

/// A DNS label: it becomes the name of a `FluxionQueue`.
fn is_label(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=63).contains(&name.len())
        && name.bytes().all(|byte| plain(byte) || byte == b'-')
        && name.bytes().next().is_some_and(plain)
        && name.bytes().next_back().is_some_and(plain)
}

/// Validates names used in labels and specs: at least one, none empty, no duplicates.
fn names(what: &str, list: &[String]) -> Result<Vec<Arc<str>>, String> {
    if list.is_empty() && what == "schedulerNames" {
        return Err("must contain at least one name".to_owned());
    }
    let mut names: Vec<Arc<str>> = Vec::new();
    for name in list {
        if name.is_empty() || name.len() > 317 || name.contains(char::is_whitespace) {
            return Err(format!("invalid name '{name}'"));
        }
        if names.iter().any(|known| **known == **name) {
            return Err(format!("duplicate '{name}'"));
        }
        names.push(Arc::from(name.as_str()));
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
