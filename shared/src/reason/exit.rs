//! How the member ended that failed first.

use fluxion_text::shorten;
use serde::{Deserialize, Serialize};

/// Characters of a text that somebody else wrote.
const LONGEST: usize = 64;

/// How a member failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ExitCause {
    /// Name of the Pod.
    pub pod: String,
    /// `DeadlineExceeded`, `Evicted`, `OOMKilled`, `Error`, or what else its status says.
    pub reason: String,
    /// The container that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What the kubelet says about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
}

impl ExitCause {
    /// How the member failed; `limit_seconds` is its activeDeadlineSeconds.
    pub fn text(&self, limit_seconds: Option<i64>) -> String {
        let (pod, reason) = (shorten(&self.pod, LONGEST), shorten(&self.reason, LONGEST));
        let container = self.container.as_deref().zip(self.exit_code);
        if let (Some((name, code)), "Error") = (container, self.reason.as_str()) {
            return format!("container {} of Pod {pod} exited with code {code}", shorten(name, LONGEST));
        }
        let container = container.map_or_else(String::new, |(name, code)| {
            format!(", container {}, exit code {code}", shorten(name, LONGEST))
        });
        if self.reason == "DeadlineExceeded" {
            let limit = limit_seconds.map_or_else(String::new, |it| format!(", activeDeadlineSeconds {it}"));
            return format!("{reason} (Pod {pod}{container}{limit})");
        }
        let message = self.message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
        format!("{reason} (Pod {pod}{container}){message}")
    }
}
