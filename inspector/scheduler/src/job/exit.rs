//! How the first failed member ended.

use serde::{Deserialize, Serialize};

use crate::explain::utc;
use crate::job::ReasonClass;
use crate::model::{PodSpec, SharedStr, is_rejection};

/// The first failed member, and how it failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitCause {
    /// Name of the Pod.
    pub pod: SharedStr,
    /// `DeadlineExceeded`, `Evicted`, `OOMKilled`, `Error`, or another reason from its status; `Error` if there is
    /// none.
    pub reason: SharedStr,
    /// The container that failed, and its exit code.
    pub container: Option<(SharedStr, i32)>,
    /// The message from its kubelet.
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
            other if is_rejection(other) => ReasonClass::BindFailed,
            _ => ReasonClass::PodFailed,
        }
    }

    /// The form shown to users.
    pub fn told(&self) -> fluxion_api::reason::ExitCause {
        let (container, exit_code) = self.container.clone().unzip();
        fluxion_api::reason::ExitCause {
            pod: self.pod.to_string(),
            reason: self.reason.to_string(),
            container: container.map(|name| name.to_string()),
            exit_code,
            message: self.message.as_ref().map(ToString::to_string),
            time: self.at.map(utc),
        }
    }
}
