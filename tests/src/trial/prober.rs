//! Asks for jobs through kube-apiserver again and again, as a user would.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kube::Client;
use serde_json::Value;

const PATH: &str = "/apis/fluxion.flux-framework.org/v1alpha1/fluxionjobs?limit=1";
const PAUSE: Duration = Duration::from_millis(100);
const LIMIT: Duration = Duration::from_secs(35);

/// What was answered so far.
#[derive(Clone, Debug, Default)]
pub struct Probed {
    pub answers: usize,
    pub failures: usize,
    /// What must not be: an answer of another than the leader, a version lower than one before.
    pub wrong: Vec<String>,
    /// The last failure.
    pub last_failure: String,
    /// The longest time without an answer, since [`Prober::since_now`].
    pub longest_gap: Duration,
    last_answer: Option<Instant>,
    version: u64,
}

/// A running prober; ended on drop.
pub struct Prober {
    probed: Arc<Mutex<Probed>>,
    task: tokio::task::JoinHandle<()>,
}

impl Prober {
    /// Starts asking with this client.
    pub fn start(client: Client) -> Self {
        let probed = Arc::new(Mutex::new(Probed::default()));
        let shared = Arc::clone(&probed);
        let task = tokio::spawn(async move {
            loop {
                let answer = tokio::time::timeout(LIMIT, ask(&client)).await;
                let answer = answer.context("no answer").and_then(|answer| answer);
                shared.lock().unwrap_or_else(PoisonError::into_inner).see(answer, Instant::now());
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self { probed, task }
    }

    /// Measures the longest gap from now on.
    pub fn since_now(&self) {
        let mut probed = self.probed.lock().unwrap_or_else(PoisonError::into_inner);
        probed.longest_gap = Duration::ZERO;
        probed.last_answer = Some(Instant::now());
    }

    /// What was answered so far.
    pub fn probed(&self) -> Probed {
        let mut probed = self.probed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(last) = probed.last_answer {
            probed.longest_gap = probed.longest_gap.max(last.elapsed());
        }
        probed
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn ask(client: &Client) -> Result<Value> {
    let request = http::Request::get(PATH).body(Vec::new())?;
    Ok(client.request(request).await?)
}

impl Probed {
    fn see(&mut self, answer: Result<Value>, now: Instant) {
        let seen = answer.and_then(|list| {
            let metadata = &list["metadata"];
            let version = metadata["resourceVersion"].as_str().and_then(|version| version.parse().ok());
            match (&metadata["role"], version) {
                (role, Some(version)) if role == "leader" => Ok(version),
                _ => {
                    self.wrong.push(format!("answered with {metadata}"));
                    bail!("{metadata}")
                }
            }
        });
        match seen {
            Ok(version) => {
                if version < self.version {
                    self.wrong.push(format!("version {version} after {}", self.version));
                }
                self.version = version;
                self.answers += 1;
                if let Some(last) = self.last_answer.replace(now) {
                    self.longest_gap = self.longest_gap.max(now.duration_since(last));
                }
            }
            Err(error) => {
                self.failures += 1;
                self.last_failure = format!("{error:#}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_of_followers_and_lower_versions_are_noted() {
        let mut probed = Probed::default();
        let list = |role: &str, version: &str| {
            Ok(json!({ "metadata": { "role": role, "resourceVersion": version } }))
        };
        let start = Instant::now();
        probed.see(list("leader", "7"), start);
        probed.see(Err(anyhow::anyhow!("503")), start + Duration::from_secs(1));
        probed.see(list("leader", "7"), start + Duration::from_secs(2));
        assert!(probed.wrong.is_empty() && probed.longest_gap == Duration::from_secs(2));
        probed.see(list("leader", "6"), start);
        probed.see(list("follower", "9"), start);
        assert_eq!((probed.wrong.len(), probed.answers, probed.failures), (2, 3, 2));
    }
}
