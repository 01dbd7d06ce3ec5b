//! How the first failed member ended.

use fluxion_text::shorten;
use serde::{Deserialize, Serialize};

/// Maximum length of untrusted text, in characters.
const LONGEST: usize = 64;

/// How a member failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ExitCause {
    /// Name of the Pod.
    pub pod: String,
    /// `DeadlineExceeded`, `Evicted`, `OOMKilled`, `Error` or another reason from its status.
    pub reason: String,
    /// The container that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Message from the kubelet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
}

impl ExitCause {
    /// Describes the failure; `limit_seconds` is activeDeadlineSeconds of the Pod.
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
            let limit = limit_seconds.map_or_else(String::new, |it| format!(", activeDeadlineSeconds: {it}"));
            return format!("{reason} (Pod {pod}{container}{limit})");
        }
        let message = self.message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
        format!("{reason} (Pod {pod}{container}){message}")
    }
}
