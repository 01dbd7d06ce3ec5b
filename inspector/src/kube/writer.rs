//! Carries out the engine's effects on the API server.
//!
//! Effects on the same object are sent in order; otherwise, a fixed number are sent concurrently, bindings first. The
//! engine gets an outcome for every binding. Effects from before the Lease was lost are not sent, and those that are
//! being sent at that moment are broken off. Those that arrive even later are up to the [`fence`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fluxion_scheduler::event::{BindOutcome, Effect, Event};
use fluxion_scheduler::model::{ObjectRef, SharedStr};
use fluxion_scheduler::state::Job;
use kube::Client;
use tokio::sync::{Notify, mpsc};

use crate::engine::EngineHandle;
use crate::failpoint;
use crate::logs::RateLimit;
use crate::metrics::{Kind, Metrics, Outcome};
use crate::supervise::{Failure, Pulse, Tasks};
use crate::telemetry::{Span, SpanKind};

mod api;
mod bind;
mod condition;
mod delete;
mod evict;
mod fence;
mod group;
mod lanes;
mod note;
mod pin;
mod resume;
mod right;
mod storage;

use api::WriteError;
pub use delete::Deleter;
use lanes::{Lanes, Work};
use note::Notes;
pub use right::Right;

/// Maximum number of concurrent writes. More would only increase latency.
const IN_FLIGHT: usize = 24;
/// How long a shutdown waits for queued writes.
const LAST_WRITES: Duration = Duration::from_secs(8);

/// State shared by the workers.
struct Shared {
    client: Client,
    engine: EngineHandle,
    metrics: Arc<Metrics>,
    lanes: Mutex<Lanes>,
    wake: Notify,
    right: Right,
    notes: Notes,
    failures: RateLimit,
}

/// The running workers.
pub struct Writer {
    shared: Arc<Shared>,
    tasks: Tasks,
}

impl Writer {
    /// Starts receiving effects; they are sent while we have the right to. `instance` is our name in Events.
    pub fn start(
        client: Client,
        engine: EngineHandle,
        metrics: Arc<Metrics>,
        effects: mpsc::Receiver<Vec<Effect>>,
        right: Right,
        instance: String,
    ) -> Self {
        let shared = Arc::new(Shared {
            client,
            engine,
            metrics,
            lanes: Mutex::default(),
            wake: Notify::new(),
            right,
            notes: Notes::new(instance),
            failures: RateLimit::new(Duration::from_secs(5)),
        });
        let mut tasks = Tasks::default();
        tasks.spawn("the writer", take_in(Arc::clone(&shared), effects));
        for _ in 0..IN_FLIGHT {
            tasks.spawn("the writer", work(Arc::clone(&shared)));
        }
        Self { shared, tasks }
    }

    /// Waits until one of the workers ends unexpectedly.
    pub async fn failed(&mut self) -> Failure {
        self.tasks.failed().await
    }

    /// Their heartbeats.
    pub fn pulses(&self) -> impl Iterator<Item = Pulse> {
        self.tasks.pulses()
    }

    /// Stops the workers once everything that is queued has been sent, which takes at most 8 s.
    pub async fn stop(mut self) {
        let until = Instant::now() + LAST_WRITES;
        let unsent = || {
            let lanes = self.shared.lock();
            lanes.busy() + lanes.len()
        };
        while unsent() > 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        match unsent() {
            0 => {}
            writes => tracing::warn!(writes, "shutting down before all writes were sent"),
        }
        self.tasks.shutdown().await;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A binding that was not attempted: the engine emits it again once it schedules again.
    fn not_deciding(&self, effect: Effect) {
        if let Some(event) = failed(&effect, "not the leader, or the watches are stale") {
            self.engine.send(event);
        } else if matches!(effect, Effect::Note { .. }) {
            self.metrics.events_dropped.inc();
        }
    }

    /// `NAMESPACE/KIND.NAME` of the job that the object with this UID belongs to, for logs.
    fn job_of(&self, uid: &str) -> Option<String> {
        let state = &self.engine.snapshot().state;
        let job = state.job_of_pod(uid).or_else(|| state.jobs().find(|job| *job.key.uid == *uid));
        job.map(Job::full_name)
    }

    /// The span of a binding, below that of its job's start.
    fn binding(&self, pod: &ObjectRef, node: &str) -> Option<Span> {
        let tracer = self.engine.tracer();
        if !tracer.enabled() {
            return None;
        }
        let snapshot = self.engine.snapshot();
        let job = snapshot.state.job_of_pod(&pod.uid);
        let parent = job.and_then(|job| tracer.start_of(&job.key.uid));
        let mut span = tracer.start("bind pod", SpanKind::Client, parent)?;
        span.set("k8s.namespace.name", &pod.namespace);
        span.set("k8s.pod.name", &pod.name);
        span.set("k8s.pod.uid", &pod.uid);
        span.set("k8s.node.name", node);
        if let Some(job) = job {
            span.set("fluxion.job", &job.full_name());
        }
        Some(span)
    }

    /// Sends an effect, unless we may not, or until we may not any more.
    async fn attempt(&self, work: Work) {
        let term = self.right.term().filter(|now| work.term.is_none_or(|then| then == *now));
        let Some(term) = term else { return self.not_deciding(work.effect) };
        // Whether it has arrived is seen by the object.
        let broken_off = failed(&work.effect, "no longer the leader, or the watches are stale");
        let mut right = self.right.clone();
        tokio::select! {
            biased;
            () = right.ended(term) => if let Some(event) = broken_off {
                self.engine.send(event);
            },
            () = self.carry_out(work, term) => {}
        }
    }

    async fn carry_out(&self, work: Work, term: u64) {
        let about = work.lane;
        let (kind, done) = match work.effect {
            Effect::Bind { pod, node, record } => {
                let mut span = self.binding(&pod, &node);
                let outcome = match record.pin {
                    Some(_) => pin::pin(&self.client, &pod, &node, &record, term).await,
                    None => bind::bind(&self.client, &pod, &node, &record, term).await,
                };
                self.metrics.binds.get_or_create(&Outcome { outcome: bind::word(&outcome) }).inc();
                self.metrics.bind_seconds.observe(work.since.elapsed().as_secs_f64());
                if outcome != BindOutcome::Done
                    && let Some(left_out) = self.failures.now()
                {
                    let job = self.job_of(&pod.uid);
                    tracing::warn!(job, namespace = %pod.namespace, pod = %pod.name, %node, ?outcome, left_out,
                        "a binding failed");
                }
                if let Some(span) = &mut span
                    && outcome != BindOutcome::Done
                {
                    span.fail(bind::word(&outcome));
                }
                // It ends before that of its job.
                drop(span);
                self.engine.send(Event::Bound { pod: pod.uid, outcome });
                return;
            }
            Effect::Resume { object } => {
                let job = self.job_of(&object.uid);
                tracing::info!(job, namespace = %object.namespace, name = %object.name, "resuming");
                let done = resume::object(&self.client, &object, term).await;
                let outcome = resume::outcome(&done);
                self.engine.send(Event::Resumed { object: object.uid.clone(), outcome });
                ("resume", done)
            }
            Effect::SelectNode { claim, node, at } => {
                let done = storage::select(&self.client, &claim, &node, at, term).await;
                self.storage_written(claim.uid, &done);
                ("claim", done)
            }
            Effect::DeselectNode { claim, node } => {
                ("claim", storage::deselect(&self.client, &claim, &node, term).await)
            }
            Effect::ReserveVolume { volume, version, claim } => {
                let done = storage::reserve(&self.client, &volume, &version, &claim, term).await;
                self.storage_written(volume.uid, &done);
                ("volume", done)
            }
            Effect::FreeVolume { volume, claim } => {
                ("volume", storage::free(&self.client, &volume, &claim, term).await)
            }
            Effect::Unscheduled { pod, reason, message } => {
                let known = self.engine.snapshot();
                let was_false = known.state.pod(&pod.uid).is_some_and(|known| known.unscheduled.is_some());
                ("condition", condition::unscheduled(&self.client, &pod, reason, &message, was_false).await)
            }
            Effect::Reserved { pod, reservation } => {
                ("condition", condition::reserved(&self.client, &pod, reservation.as_deref()).await)
            }
            Effect::GroupScheduled { group, scheduled, reason, message } => {
                ("group", group::scheduled(&self.client, &group, scheduled, reason, &message).await)
            }
            Effect::GroupStatus { group, status } => {
                ("group", group::status(&self.client, &group, &status).await)
            }
            Effect::Note { regarding, warning, reason, action, note } => {
                ("event", self.notes.write(&self.client, &regarding, warning, reason, action, &note).await)
            }
            Effect::Evict { pod, why } => {
                let job = self.job_of(&pod.uid);
                tracing::info!(job, namespace = %pod.namespace, name = %pod.name, why, "evicting");
                ("evict", evict::pod(&self.client, &pod, &why, job.as_deref(), term).await)
            }
            Effect::Delete { object, why } => {
                let job = self.job_of(&object.uid);
                tracing::info!(job, namespace = %object.namespace, kind = %object.kind, name = %object.name, why, "deleting");
                ("delete", delete::object(&self.client, &object).await)
            }
            Effect::Journal(_) => return,
        };
        self.count(kind, &about, done);
    }

    fn storage_written(&self, object: SharedStr, done: &Result<(), WriteError>) {
        self.engine.send(Event::StorageWritten { object, outcome: storage::outcome(done) });
    }

    fn count(&self, kind: &'static str, about: &str, done: Result<(), WriteError>) {
        match done {
            // The object was deleted, so there is nothing to report about it.
            Ok(()) | Err(WriteError::Gone) => {
                self.metrics.writes.get_or_create(&Kind { kind }).inc();
            }
            Err(WriteError::Dropped) => {
                self.metrics.events_dropped.inc();
            }
            Err(error) => {
                self.metrics.write_failures.get_or_create(&Kind { kind }).inc();
                if let Some(left_out) = self.failures.now() {
                    let job = self.job_of(about);
                    tracing::warn!(job, kind, %error, left_out, "a write to the API server failed permanently");
                }
            }
        }
    }
}

/// Queues effects; never waits for the API server, so the engine doesn't either.
async fn take_in(shared: Arc<Shared>, mut effects: mpsc::Receiver<Vec<Effect>>) {
    while let Some(batch) = effects.recv().await {
        failpoint::reached("writer");
        let (mut dropped, term) = (0, shared.right.term());
        {
            let mut lanes = shared.lock();
            for effect in batch {
                if !matches!(effect, Effect::Journal(_)) && !lanes.push(effect, term) {
                    dropped += 1;
                }
            }
            shared.metrics.effects_waiting.set(i64::try_from(lanes.len()).unwrap_or(i64::MAX));
        }
        shared.metrics.events_dropped.inc_by(dropped);
        shared.wake.notify_one();
    }
}

async fn work(shared: Arc<Shared>) {
    loop {
        let (next, more) = {
            let mut lanes = shared.lock();
            let next = lanes.pop();
            shared.metrics.effects_waiting.set(i64::try_from(lanes.len()).unwrap_or(i64::MAX));
            (next, lanes.ready())
        };
        if more {
            // One permit wakes one worker, which wakes the next.
            shared.wake.notify_one();
        }
        let Some(work) = next else {
            shared.wake.notified().await;
            continue;
        };
        let lane = work.lane.clone();
        shared.attempt(work).await;
        shared.lock().done(&lane);
    }
}

#[cfg(test)]
mod tests;

/// What the engine is told when an effect whose outcome it waits for was not carried out, and may be tried again.
fn failed(effect: &Effect, why: &str) -> Option<Event> {
    let outcome = BindOutcome::Transient(why.into());
    match effect {
        Effect::Bind { pod, .. } => Some(Event::Bound { pod: pod.uid.clone(), outcome }),
        Effect::Resume { object } => Some(Event::Resumed { object: object.uid.clone(), outcome }),
        Effect::SelectNode { claim: object, .. } | Effect::ReserveVolume { volume: object, .. } => {
            Some(Event::StorageWritten { object: object.uid.clone(), outcome })
        }
        _ => None,
    }
}
