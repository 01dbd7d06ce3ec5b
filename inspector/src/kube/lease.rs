//! The Lease that allows one inspector to bind.
//!
//! Its holder renews it; another inspector acquires it after seeing it unchanged for the Lease duration by its own
//! clock. It is safe if two inspectors briefly consider themselves the leader: bindings contain the Pod's UID. A
//! holder that fails to renew stops leading well before another one can take over: its term ends by itself after two
//! thirds of the Lease duration, even if it was stopped and nothing in it ran. What it had sent before may still arrive
//! later; the chart's fence has the API server refuse that once there is a later term. So a holder whose term has ended
//! begins a new one when it renews the Lease, though nobody else has been elected.
//!
//! The holder records the number of its term and its address, so that other inspectors can forward requests to it
//! (see [`record`]).
//!
//! Each process has its own identity. An orderly shutdown releases the Lease; after a crash, it is taken over
//! immediately only if its holder is known to be dead (see [`process`]), otherwise once it expires.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::Instant;

use crate::failpoint;
use crate::health::{Health, Leadership, Term, Trouble};
use crate::logs::{Repeated, kube_error};

mod process;
mod record;

use process::{Process, Processes};
pub(crate) use record::TERM;

/// The Lease and our identity; cheap to clone.
#[derive(Clone)]
pub struct Lease {
    api: Api<Object>,
    name: String,
    /// Unique to this process.
    identity: Arc<str>,
    length: Duration,
    /// Where other inspectors reach us.
    address: Option<SocketAddr>,
    processes: Processes,
}

/// The last observed state of the Lease.
#[derive(Default)]
struct Seen {
    /// The Lease while held by another inspector, and since when it has been unchanged.
    other: Option<(LeaseSpec, Instant)>,
    holder: Option<String>,
    /// Where the holder is reached, as of this time.
    address: Option<(SocketAddr, Instant)>,
}

/// Our terms.
#[derive(Clone, Copy, Debug, Default)]
struct Terms {
    /// The one in which we held the Lease when we last looked; it may have ended since.
    held: Option<Term>,
    /// The number of the last one.
    last: Option<u64>,
}

impl Terms {
    /// We have the Lease in the term with this number (none: we don't), until then unless it is renewed. False if that is
    /// a term that ended before the renewal was confirmed: it is not resumed.
    fn renewed(&mut self, number: Option<u64>, until: Instant) -> bool {
        let ended = self.held.filter(|held| !held.lasts()).map(|held| held.number);
        let late = number.is_some() && number == ended;
        self.held = number.filter(|_| !late).map(|number| Term { number, until });
        self.last = self.last.max(number);
        !late
    }
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
            address: None,
            processes: Processes::default(),
        }
    }

    /// Tells other inspectors where we are reached, while we hold it.
    #[must_use]
    pub fn with_address(mut self, address: Option<SocketAddr>) -> Self {
        self.address = address;
        self
    }

    /// Reports to `health` whether we hold the Lease. Never returns; after it was cancelled, [`Self::release`]
    /// releases the Lease.
    pub async fn run(self, health: Arc<Health>) {
        let third = self.length / 3;
        let mut seen = Seen::default();
        let mut terms = Terms::default();
        let mut trouble: Option<Trouble> = None;
        let mut led = false;
        let failures = Repeated::new(Duration::from_mins(1));
        loop {
            failpoint::reached("lease");
            let began = Instant::now();
            // Our process may have been stopped for any time.
            self.report(&health, &seen, terms.held, trouble.clone(), &mut led);
            let mut again = false;
            let failed = match tokio::time::timeout(third, self.attempt(&mut seen, terms)).await {
                Ok(Ok(number)) => {
                    again = !terms.renewed(number, began + third * 2);
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
            self.report(&health, &seen, terms.held, trouble.clone(), &mut led);
            let pause = if led { third } else { third.min(Duration::from_secs(1)) };
            if !again {
                tokio::time::sleep(pause.saturating_sub(began.elapsed())).await;
            }
        }
    }

    fn report(
        &self,
        health: &Health,
        seen: &Seen,
        held: Option<Term>,
        trouble: Option<Trouble>,
        led: &mut bool,
    ) {
        let leads = held.is_some_and(|term| term.lasts());
        let holder = seen.holder.clone().filter(|_| !leads);
        let address = seen.address.filter(|(_, at)| !leads && at.elapsed() < self.length);
        let address = address.map(|(address, _)| address);
        health.set_leadership(Leadership { held: held.filter(Term::lasts), holder, address, trouble });
        if std::mem::replace(led, leads) == leads {
            return;
        }
        let (lease, identity) = (&self.name, &*self.identity);
        if leads {
            tracing::info!(lease, identity, "elected as leader");
        } else {
            tracing::warn!(lease, identity, "lost the Lease: binding is paused until it is acquired again");
        }
    }

    /// Releases the Lease, so that the next leader need not wait.
    pub async fn release(&self) -> kube::Result<()> {
        // A renewal that was cancelled may still arrive in between.
        for last in [false, true] {
            let Some(mut found) = self.api.get_opt(&self.name).await? else { return Ok(()) };
            let spec = found.spec.get_or_insert_default();
            if spec.holder_identity.as_deref() != Some(&*self.identity) {
                return Ok(());
            }
            spec.holder_identity = None;
            spec.renew_time = Some(MicroTime(jiff::Timestamp::now()));
            match self.api.replace(&self.name, &PostParams::default(), &found).await {
                Err(kube::Error::Api(status)) if status.code == 409 && !last => {}
                done => return done.map(drop),
            }
        }
        Ok(())
    }

    /// Acquires, renews or checks the Lease; the number of our term if we hold it now.
    async fn attempt(&self, seen: &mut Seen, ours: Terms) -> kube::Result<Option<u64>> {
        let now = jiff::Timestamp::now().as_millisecond();
        let Some(mut found) = self.api.get_opt(&self.name).await? else {
            let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
            let mut object = Object { metadata, spec: Some(self.spec(None)) };
            let term = record::next_term(ours.last, now);
            self.sign(&mut object, term);
            let created = won(self.api.create(&PostParams::default(), &object).await)?;
            return Ok(created.then_some(term));
        };
        let spec = found.spec.take().unwrap_or_default();
        let may_take = self.may_take(seen, &spec, Instant::now());
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        seen.address =
            record::address(&found, holder).filter(|_| !may_take).map(|address| (address, Instant::now()));
        if !may_take && !self.holder_is_dead(&spec, &found) {
            return Ok(None);
        }
        let lasting = ours.held.filter(Term::lasts).map(|held| held.number);
        let term = match record::term(&found) {
            Some(term) if holder == &*self.identity && lasting == Some(term) => term,
            before => record::next_term(before.max(ours.last), now),
        };
        found.spec = Some(self.spec(Some(&spec)));
        self.sign(&mut found, term);
        // Because of its resourceVersion, only one of several attempts succeeds.
        let replaced = won(self.api.replace(&self.name, &PostParams::default(), &found).await)?;
        Ok(replaced.then_some(term))
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
        let process: Option<Process> =
            record::process(found, holder).and_then(|process| process.parse().ok());
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

    /// Records us in the Lease.
    fn sign(&self, object: &mut Object, term: u64) {
        let process = self.processes.own().map(|own| own.to_string());
        record::sign(object, &self.identity, process, self.address, term);
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
