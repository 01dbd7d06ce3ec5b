//! How the member that failed first ended.

use serde::{Deserialize, Serialize};

use crate::job::ReasonClass;
use crate::marks;
use crate::model::{PodSpec, SharedStr};

/// The member that failed first, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitCause {
    /// Name of the Pod.
    pub pod: SharedStr,
    /// `DeadlineExceeded`, `Evicted`, `OOMKilled`, `Error`, or what else its status says; `Error` where it says
    /// nothing.
    pub reason: SharedStr,
    /// The container that failed, and its exit code.
    pub container: Option<(SharedStr, i32)>,
    /// What its kubelet says about it.
    pub message: Option<SharedStr>,
    /// Epoch seconds.
    pub at: Option<i64>,
}

impl ExitCause {
    pub(crate) fn of(pod: &PodSpec) -> Self {
        let end = pod.end.as_deref().cloned().unwrap_or_default();
        let reason = pod.status_reason.clone();
        let reason = reason.or_else(|| end.container.as_ref().and_then(|exit| exit.reason.clone()));
        Self {
            pod: pod.name.clone(),
            reason: reason.unwrap_or_else(|| "Error".into()),
            container: end.container.map(|exit| (exit.name, exit.code)),
            message: end.message,
            at: end.at,
        }
    }

    pub(crate) fn class(&self) -> ReasonClass {
        match &*self.reason {
            "DeadlineExceeded" => ReasonClass::DeadlineExceeded,
            "Evicted" | "Preempting" | "Terminated" | "NodeShutdown" => ReasonClass::Disrupted,
            "NodeLost" => ReasonClass::NodesDown,
            other if other.starts_with("OutOf") => ReasonClass::BindFailed,
            _ => ReasonClass::PodFailed,
        }
    }

    pub(crate) fn text(&self, limit: Option<i64>) -> String {
        let (pod, reason) = (marks::shorten(&self.pod), marks::shorten(&self.reason));
        let container = match (&self.container, &*self.reason) {
            (Some((name, code)), "Error") => {
                return format!("container {} of Pod {pod} exited with code {code}", marks::shorten(name));
            }
            (Some((name, code)), _) => format!(", container {}, exit code {code}", marks::shorten(name)),
            (None, _) => String::new(),
        };
        let limit = match (limit, &*self.reason) {
            (Some(limit), "DeadlineExceeded") => format!(": its activeDeadlineSeconds is {limit}"),
            _ => String::new(),
        };
        let message = match (&self.message, &*self.reason) {
            (Some(message), reason) if reason != "DeadlineExceeded" => format!(": {message}"),
            _ => String::new(),
        };
        format!("{reason} (Pod {pod}{container}){limit}{message}")
    }
}
