//! The Lease that allows one inspector to bind.
//!
//! Its holder renews it; another inspector acquires it after seeing it unchanged for the Lease duration by its own
//! clock. It is safe if two inspectors briefly consider themselves the leader: bindings contain the Pod's UID. A
//! holder that fails to renew stops leading well before another one can take over.
//!
//! Each process has its own identity. An orderly shutdown releases the Lease; after a crash, it is taken over
//! immediately only if its holder is known to be dead (see [`process`]), otherwise once it expires.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::watch as signal;
use tokio::time::Instant;

use crate::failpoint;
use crate::health::{Health, Leadership, Trouble};
use crate::logs::{Repeated, kube_error};

mod process;

use process::{Process, Processes};

/// Annotation of the Lease with its holder's identity and process, for a successor on the same machine.
const HOLDER_PROCESS: &str = "fluxion.flux-framework.org/holder-process";

/// The Lease and our identity; cheap to clone.
#[derive(Clone)]
pub struct Lease {
    api: Api<Object>,
    name: String,
    /// Unique to this process.
    identity: Arc<str>,
    length: Duration,
    processes: Processes,
}

/// The last observed state of the Lease.
#[derive(Default)]
struct Seen {
    /// The Lease while held by another inspector, and since when it has been unchanged.
    other: Option<(LeaseSpec, Instant)>,
    holder: Option<String>,
}

/// A name unique to this process: the host name (or Pod name), and a number.
pub fn identity() -> String {
    let host = std::env::var("HOSTNAME").or_else(|_| std::fs::read_to_string("/etc/hostname"));
    let host = host.unwrap_or_default();
    let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("localhost");
    // Its keys are random.
    format!("{host}_{:016x}", RandomState::new().build_hasher().finish())
}

impl Lease {
    /// `seconds` is the Lease duration.
    pub fn new(client: Client, namespace: &str, name: &str, identity: &str, seconds: u16) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            name: name.to_owned(),
            identity: identity.into(),
            length: Duration::from_secs(u64::from(seconds)),
            processes: Processes::default(),
        }
    }

    /// Keeps `leading` true while we hold the Lease, and updates `health`. Never returns; after it was cancelled,
    /// [`Self::release`] releases the Lease.
    pub async fn run(self, leading: signal::Sender<bool>, health: Arc<Health>) {
        let third = self.length / 3;
        let mut seen = Seen::default();
        let mut renewed: Option<Instant> = None;
        let mut trouble: Option<Trouble> = None;
        let failures = Repeated::new(Duration::from_mins(1));
        loop {
            failpoint::reached("lease");
            let began = Instant::now();
            let failed = match tokio::time::timeout(third, self.attempt(&mut seen)).await {
                Ok(Ok(ours)) => {
                    renewed = ours.then_some(began);
                    None
                }
                Ok(Err(error)) => Some((unreachable(&error), kube_error(&error))),
                Err(_) => Some((true, format!("no response within {} s", third.as_secs()))),
            };
            if let Some((unreachable, why)) = failed {
                if let Some(left_out) = failures.now(&why) {
                    tracing::warn!(
                        lease = self.name,
                        error = why,
                        left_out,
                        "failed to acquire or renew the Lease"
                    );
                }
                let since = trouble.map_or_else(|| jiff::Timestamp::now().as_second(), |before| before.since);
                trouble = Some(Trouble { since, unreachable, why });
            } else {
                trouble = None;
                if failures.over() {
                    tracing::info!(lease = self.name, "access to the Lease has recovered");
                }
            }
            let leads = renewed.is_some_and(|at| at.elapsed() < third * 2);
            let holder = seen.holder.clone().filter(|_| !leads);
            health.set_leadership(Leadership { leads, holder, trouble: trouble.clone() });
            if leading.send_if_modified(|now| std::mem::replace(now, leads) != leads) {
                let (lease, identity) = (&self.name, &*self.identity);
                if leads {
                    tracing::info!(lease, identity, "elected as leader");
                } else {
                    tracing::warn!(
                        lease,
                        identity,
                        "lost the Lease: binding is paused until it is acquired again"
                    );
                }
            }
            let pause = if leads { third } else { third.min(Duration::from_secs(1)) };
            tokio::time::sleep(pause.saturating_sub(began.elapsed())).await;
        }
    }

    /// Releases the Lease, so that the next leader need not wait.
    pub async fn release(&self) -> kube::Result<()> {
        let Some(mut found) = self.api.get_opt(&self.name).await? else { return Ok(()) };
        if let Some(spec) = &mut found.spec
            && spec.holder_identity.as_deref() == Some(&*self.identity)
        {
            spec.holder_identity = None;
            spec.renew_time = Some(MicroTime(jiff::Timestamp::now()));
            self.api.replace(&self.name, &PostParams::default(), &found).await?;
        }
        Ok(())
    }

    /// Acquires, renews or checks the Lease; true if we hold it now.
    async fn attempt(&self, seen: &mut Seen) -> kube::Result<bool> {
        let Some(mut found) = self.api.get_opt(&self.name).await? else {
            let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
            let mut object = Object { metadata, spec: Some(self.spec(None)) };
            self.sign(&mut object);
            return won(self.api.create(&PostParams::default(), &object).await);
        };
        let spec = found.spec.take().unwrap_or_default();
        if !self.may_take(seen, &spec, Instant::now()) && !self.holder_is_dead(&spec, &found) {
            return Ok(false);
        }
        found.spec = Some(self.spec(Some(&spec)));
        self.sign(&mut found);
        // Because of its resourceVersion, only one of several attempts succeeds.
        won(self.api.replace(&self.name, &PostParams::default(), &found).await)
    }

    fn may_take(&self, seen: &mut Seen, spec: &LeaseSpec, now: Instant) -> bool {
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        if holder.is_empty() || holder == &*self.identity {
            *seen = Seen::default();
            return true;
        }
        if seen.holder.as_deref() != Some(holder) {
            tracing::info!(lease = self.name, holder, "another inspector is the leader");
            seen.holder = Some(holder.to_owned());
        }
        let length = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let length = length.map_or(self.length, Duration::from_secs);
        match &seen.other {
            Some((other, since)) if other == spec => now.duration_since(*since) >= length,
            _ => {
                seen.other = Some((spec.clone(), now));
                false
            }
        }
    }

    /// Whether the holder was a process on this machine that has certainly exited.
    fn holder_is_dead(&self, spec: &LeaseSpec, found: &Object) -> bool {
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        let signed = found.metadata.annotations.as_ref().and_then(|all| all.get(HOLDER_PROCESS));
        // It was written for this holder, not for an earlier one.
        let process = signed.and_then(|text| text.split_once(' ')).filter(|(signer, _)| *signer == holder);
        let process: Option<Process> = process.and_then(|(_, process)| process.parse().ok());
        let dead = process.is_some_and(|process| self.processes.gone(&process));
        if dead {
            tracing::info!(
                lease = self.name,
                holder,
                "the previous holder of the Lease has exited: taking over"
            );
        }
        dead
    }

    /// Records our process in the Lease.
    fn sign(&self, object: &mut Object) {
        let annotations = object.metadata.annotations.get_or_insert_with(BTreeMap::new);
        match self.processes.own() {
            Some(own) => {
                annotations.insert(HOLDER_PROCESS.to_owned(), format!("{} {own}", self.identity));
            }
            None => drop(annotations.remove(HOLDER_PROCESS)),
        }
    }

    fn spec(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(jiff::Timestamp::now());
        let kept = before.filter(|spec| spec.holder_identity.as_deref() == Some(&*self.identity));
        let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.identity.to_string()),
            lease_duration_seconds: i32::try_from(self.length.as_secs()).ok(),
            acquire_time: kept.and_then(|spec| spec.acquire_time.clone()).or_else(|| Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(if kept.is_some() { transitions } else { transitions.saturating_add(1) }),
            ..LeaseSpec::default()
        }
    }
}

/// The API server did not respond, or is unavailable.
fn unreachable(error: &kube::Error) -> bool {
    !matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 429)
}

/// A conflict means that another inspector was faster.
fn won(answer: kube::Result<Object>) -> kube::Result<bool> {
    match answer {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
