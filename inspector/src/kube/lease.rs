//! The Lease that lets one inspector bind.
//!
//! Its holder renews it; whoever sees it unchanged for its whole length, by the own clock, takes it. Two inspectors
//! that both believe to lead for a moment do no harm: bindings are fenced by uid. A holder that can't renew stops
//! leading well before anybody may take over.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::watch as signal;
use tokio::time::Instant;

/// Which Lease, and who we are.
pub struct Lease {
    api: Api<Object>,
    name: String,
    /// The same after a restart of the same inspector, so that it goes on at once; never that of two at a time.
    identity: String,
    length: Duration,
    /// What the Lease of another looked like, and since when.
    seen: Option<(LeaseSpec, Instant)>,
    last_holder: Option<String>,
}

impl Lease {
    /// `seconds` is how long it holds unrenewed.
    pub fn new(client: Client, namespace: &str, name: &str, identity: String, seconds: u16) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            name: name.to_owned(),
            identity,
            length: Duration::from_secs(u64::from(seconds)),
            seen: None,
            last_holder: None,
        }
    }

    /// Keeps `leading` true while we hold the Lease. Runs for good; after it was cancelled, [`release`] gives the
    /// Lease back.
    pub async fn run(&mut self, leading: &signal::Sender<bool>) {
        let third = self.length / 3;
        let mut renewed: Option<Instant> = None;
        loop {
            let began = Instant::now();
            match tokio::time::timeout(third, self.attempt()).await {
                Ok(Ok(true)) => renewed = Some(began),
                Ok(Ok(false)) => renewed = None,
                Ok(Err(error)) => {
                    tracing::warn!(lease = self.name, %error, "the Lease can't be had or renewed");
                }
                Err(_) => tracing::warn!(lease = self.name, "no answer about the Lease"),
            }
            let leads = renewed.is_some_and(|at| at.elapsed() < third * 2);
            if leading.send_if_modified(|now| std::mem::replace(now, leads) != leads) {
                tracing::info!(lease = self.name, identity = self.identity, leads, "leadership");
            }
            let pause = if leads { third } else { third.min(Duration::from_secs(1)) };
            tokio::time::sleep(pause.saturating_sub(began.elapsed())).await;
        }
    }

    /// Gives the Lease back, so that the next one need not wait.
    pub async fn release(&self) -> kube::Result<()> {
        let Some(mut found) = self.api.get_opt(&self.name).await? else { return Ok(()) };
        if let Some(spec) = &mut found.spec
            && spec.holder_identity.as_deref() == Some(&self.identity)
        {
            spec.holder_identity = None;
            spec.renew_time = Some(MicroTime(jiff::Timestamp::now()));
            self.api.replace(&self.name, &PostParams::default(), &found).await?;
        }
        Ok(())
    }

    /// Takes, renews or looks at the Lease; true when it is ours now.
    async fn attempt(&mut self) -> kube::Result<bool> {
        let Some(mut found) = self.api.get_opt(&self.name).await? else {
            let object = Object {
                metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
                spec: Some(self.spec(None)),
            };
            return won(self.api.create(&PostParams::default(), &object).await);
        };
        let spec = found.spec.take().unwrap_or_default();
        if !self.may_take(&spec, Instant::now()) {
            return Ok(false);
        }
        found.spec = Some(self.spec(Some(&spec)));
        // The resourceVersion in it lets one of several win.
        won(self.api.replace(&self.name, &PostParams::default(), &found).await)
    }

    fn may_take(&mut self, spec: &LeaseSpec, now: Instant) -> bool {
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        if holder.is_empty() || holder == self.identity {
            self.seen = None;
            return true;
        }
        if self.last_holder.as_deref() != Some(holder) {
            tracing::info!(lease = self.name, holder, "another inspector leads");
            self.last_holder = Some(holder.to_owned());
        }
        let length = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let length = length.map_or(self.length, Duration::from_secs);
        match &self.seen {
            Some((seen, since)) if seen == spec => now.duration_since(*since) >= length,
            _ => {
                self.seen = Some((spec.clone(), now));
                false
            }
        }
    }

    fn spec(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(jiff::Timestamp::now());
        let kept = before.filter(|spec| spec.holder_identity.as_deref() == Some(&self.identity));
        let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(self.length.as_secs()).ok(),
            acquire_time: kept.and_then(|spec| spec.acquire_time.clone()).or_else(|| Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(if kept.is_some() { transitions } else { transitions.saturating_add(1) }),
            ..LeaseSpec::default()
        }
    }
}

/// A conflict means that another one was faster.
fn won(answer: kube::Result<Object>) -> kube::Result<bool> {
    match answer {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
