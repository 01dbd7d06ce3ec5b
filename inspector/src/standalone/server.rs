//! The main loop of standalone mode: effects of the engine and user requests in, events and journal entries out.
//!
//! Every change is on disk before the engine or a user sees it, so if the process is killed, nothing acknowledged is
//! lost and nothing is repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fluxion_scheduler::event::{BindOutcome, Effect, Event};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::cluster::{CHANGES_MAX, Cluster};
use super::feed;
use super::kubelet::{self, RUN_TIME};
use super::object::Object;
use super::packed::Packed;
use super::store::{Change, NameKey, StoreError, called, name_key, submission_key};
use crate::engine::{Clock, EngineHandle};
use crate::failpoint;
use crate::journal::{Batch, Journal, JournalError, Kept, ObjectRow, Submission};
use crate::submit::Taken;

/// The results for the objects of a request, in order.
type Answers = Vec<Result<Taken, NotTaken>>;

/// Delay between the submission of a manifest and the creation of its object.
pub use fluxion_scheduler::marks::SUBMIT_AT;
/// Maximum number of effects and requests processed per iteration.
const TURN_MAX: usize = 256;
/// Maximum interval at which the loop checks the clock, which may jump.
const NAP: Duration = Duration::from_secs(1);

/// Why an object was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{object}: annotation {key}: {problem}")]
    Annotation { object: String, key: &'static str, problem: String },
    #[error("the server is shutting down")]
    Stopped,
}

/// Submits objects; cheap to clone.
#[derive(Clone, Debug)]
pub struct SubmitHandle(mpsc::Sender<SubmitRequest>);

#[derive(Debug)]
struct SubmitRequest {
    objects: Vec<Object>,
    answer: oneshot::Sender<Answers>,
}

impl SubmitHandle {
    /// One result per object, in order; they are on disk when this returns.
    pub(super) async fn submit_objects(&self, objects: Vec<Object>) -> Result<Answers, NotTaken> {
        let (answer, answers) = oneshot::channel();
        self.0.send(SubmitRequest { objects, answer }).await.map_err(|_| NotTaken::Stopped)?;
        answers.await.map_err(|_| NotTaken::Stopped)
    }
}

/// All state of standalone mode.
pub struct Server {
    cluster: Cluster,
    journal: Journal,
    clock: Clock,
    /// Objects to be created later, by time.
    waiting: BTreeMap<(i64, NameKey), Object>,
    /// Everything submitted, including before a restart.
    known: BTreeSet<NameKey>,
    batch: Batch,
}

/// A journal row that is not a valid object.
#[derive(Debug, thiserror::Error)]
#[error("the state contains an invalid {what}: {problem}; move state.db away to start over")]
pub struct BadRow {
    what: String,
    problem: String,
}

impl Server {
    /// Restores the state from the journal.
    pub fn new(mut cluster: Cluster, journal: Journal, kept: Kept, clock: Clock) -> Result<Self, BadRow> {
        // One by one: both forms of all of them would take twice the memory.
        for row in kept.objects {
            cluster.restore(parse(&row.kind, &row.body)?);
        }
        cluster.restored();
        let (mut waiting, mut known) = (BTreeMap::new(), BTreeSet::new());
        for submission in kept.submissions {
            if let Some(body) = &submission.body {
                waiting.insert((submission.due, submission.key.clone()), parse("manifest", body)?);
            }
            known.insert(submission.key);
        }
        Ok(Self { cluster, journal, clock, waiting, known, batch: Batch::default() })
    }

    /// The objects.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Whether nothing was ever submitted.
    pub fn is_new(&self) -> bool {
        self.known.is_empty() && self.cluster.store().is_empty()
    }

    /// Epoch seconds.
    pub fn now(&self) -> i64 {
        (self.clock)().div_euclid(1000)
    }

    /// Makes these Nodes the cluster: new ones are created, known ones updated, others deleted unless Pods run on
    /// them. Returns the names of Nodes that could not be deleted.
    pub fn set_nodes(&mut self, nodes: Vec<Object>) -> Result<Vec<String>, StoreError> {
        let now = self.now();
        let names: BTreeSet<NameKey> = nodes.iter().map(name_key).collect();
        for node in nodes {
            let known = self.cluster.store().named(&name_key(&node)).cloned();
            match known {
                Some(uid) => self.cluster.replace_node(&uid, node, now)?,
                None => drop(self.cluster.create(node, now)?),
            }
        }
        let held: BTreeSet<String> =
            self.cluster.store().iter().filter_map(|object| node_held(&object)).collect();
        let absent: Vec<(String, String)> = self
            .cluster
            .store()
            .iter()
            .filter(|object| matches!(**object, Object::Node(_)) && !names.contains(&name_key(object)))
            .map(|object| (object.uid().to_owned(), object.name().to_owned()))
            .collect();
        let mut kept = Vec::new();
        for (uid, name) in absent {
            if held.contains(&name) {
                kept.push(name);
            } else {
                self.cluster.delete(&uid, now);
            }
        }
        Ok(kept)
    }

    /// Submits an object. With `once`, an object whose name was submitted before is skipped, whether or not it still
    /// exists.
    pub fn submit(&mut self, object: Object, once: bool) -> Result<Taken, NotTaken> {
        let now = self.now();
        let (key, called) = (submission_key(&object), called(&object));
        if once && self.known.contains(&key) {
            return Ok(Taken::Known { called });
        }
        let span = |key: &'static str, text: &str| {
            kubelet::span(text).map_err(|problem| NotTaken::Annotation {
                object: called.clone(),
                key,
                problem: problem.to_string(),
            })
        };
        for text in [object.annotation(RUN_TIME), object.annotation_of_pods(RUN_TIME)].into_iter().flatten() {
            span(RUN_TIME, text)?;
        }
        if let Some(delay) = object.annotation(SUBMIT_AT) {
            let delay = span(SUBMIT_AT, delay)?;
            let due = now.saturating_add(delay);
            if due > now {
                self.cluster.check(&object, now)?;
                let body = Some(object.to_value().to_string());
                self.batch.submissions.push(Submission { key: key.clone(), due, body });
                self.known.insert(key.clone());
                self.waiting.insert((due, key), object);
                return Ok(Taken::Later { called, due });
            }
        }
        self.take(key, object, now)?;
        Ok(Taken::Created { called })
    }

    fn take(&mut self, key: NameKey, object: Object, now: i64) -> Result<(), StoreError> {
        self.cluster.create(object, now)?;
        self.batch.submissions.push(Submission { key: key.clone(), due: now, body: None });
        self.known.insert(key);
        Ok(())
    }

    /// Creates the objects due by `now`.
    fn take_due(&mut self, now: i64) {
        while self.cluster.changed() < CHANGES_MAX
            && let Some(entry) = self.waiting.first_entry().filter(|entry| entry.key().0 <= now)
        {
            let ((due, key), object) = entry.remove_entry();
            let called = called(&object);
            if let Err(error) = self.take(key.clone(), object, due) {
                tracing::warn!(object = called, %error, "rejected a manifest");
                // It is not retried: otherwise, every restart would.
                self.batch.submissions.push(Submission { key, due, body: None });
            }
        }
    }

    /// Processes everything that is due, writes changes to the journal and sends events to the engine: in batches, so
    /// that neither transactions nor memory use grow with the state.
    pub async fn settle(&mut self, mut tell: impl FnMut(Event)) -> Result<(), JournalError> {
        let now = self.now();
        loop {
            self.take_due(now);
            let changes = self.cluster.settle(now);
            let store = self.cluster.store();
            for change in &changes {
                match change {
                    Change::Set(uid) => {
                        self.batch.objects.extend(store.packed(uid).map(|packed| row(uid, packed)));
                    }
                    Change::Gone(packed) => self.batch.gone.push(packed.open().uid().to_owned()),
                }
            }
            self.journal.write(&std::mem::take(&mut self.batch)).await?;
            changes.iter().filter_map(|change| feed::event(store, change)).for_each(&mut tell);
            let later = self.waiting.first_key_value().is_some_and(|((due, _), _)| *due <= now);
            if !later && !self.cluster.unfinished(now) {
                return Ok(());
            }
        }
    }

    /// The same if there are many changes, during a longer operation.
    pub async fn settle_much(&mut self, tell: impl FnMut(Event)) -> Result<(), JournalError> {
        if self.cluster.changed() < CHANGES_MAX && self.batch.submissions.len() < CHANGES_MAX {
            return Ok(());
        }
        self.settle(tell).await
    }

    /// Events for all objects, for a new engine.
    pub fn everything(&self) -> impl Iterator<Item = Event> {
        self.cluster.store().iter().filter_map(|object| feed::of(&object))
    }

    /// Runs until stopped, or until the journal can't be written.
    pub async fn run(
        mut self,
        engine: EngineHandle,
        mut effects: mpsc::Receiver<Vec<Effect>>,
        mut requests: SubmitRequests,
        stopping: CancellationToken,
    ) -> Result<(), JournalError> {
        loop {
            let mut outcomes = Vec::new();
            let mut answers = Vec::new();
            let nap = self.nap();
            failpoint::reached("keeper");
            tokio::select! {
                () = stopping.cancelled() => break,
                batch = effects.recv() => match batch {
                    Some(batch) => self.carry_out(batch, &mut outcomes, &engine).await?,
                    None => break,
                },
                Some(request) = requests.0.recv() => answers.push(self.grant(request)),
                () = tokio::time::sleep(nap) => {}
            }
            for _ in 0..TURN_MAX {
                match effects.try_recv() {
                    Ok(batch) => self.carry_out(batch, &mut outcomes, &engine).await?,
                    Err(_) => break,
                }
            }
            while answers.len() < TURN_MAX
                && let Ok(request) = requests.0.try_recv()
            {
                answers.push(self.grant(request));
            }
            self.settle(|event| engine.send(event)).await?;
            for event in outcomes {
                engine.send(event);
            }
            for (answer, results) in answers {
                // The client may have disconnected; its request is processed anyway.
                let _ = answer.send(results);
            }
        }
        self.settle(drop).await?;
        self.journal.close().await
    }

    /// Until something is due.
    fn nap(&self) -> Duration {
        let submission = self.waiting.first_key_value().map(|((due, _), _)| *due);
        let due = self.cluster.next_due().into_iter().chain(submission).min();
        let wait = due.map_or(i64::MAX, |due| due.saturating_mul(1000).saturating_sub((self.clock)()));
        Duration::from_millis(u64::try_from(wait).unwrap_or(0)).min(NAP)
    }

    fn grant(&mut self, request: SubmitRequest) -> (oneshot::Sender<Answers>, Answers) {
        let results = request.objects.into_iter().map(|object| self.submit(object, false)).collect();
        (request.answer, results)
    }

    async fn carry_out(
        &mut self,
        effects: Vec<Effect>,
        outcomes: &mut Vec<Event>,
        engine: &EngineHandle,
    ) -> Result<(), JournalError> {
        let now = self.now();
        for effect in effects {
            if self.cluster.changed() >= CHANGES_MAX || self.batch.history.len() >= CHANGES_MAX {
                self.settle(|event| engine.send(event)).await?;
                for event in outcomes.drain(..) {
                    engine.send(event);
                }
            }
            match effect {
                Effect::Bind { pod, node, record } => {
                    let outcome = self.cluster.bind(&pod, &node, &record, now);
                    outcomes.push(Event::Bound { pod: pod.uid, outcome });
                }
                Effect::Resume { object } => {
                    self.cluster.resume(&object);
                    outcomes.push(Event::Resumed { object: object.uid, outcome: BindOutcome::Done });
                }
                Effect::Unscheduled { pod, reason, message } => {
                    self.cluster.unscheduled(&pod, reason, &message, now);
                }
                Effect::Reserved { pod, reservation } => {
                    self.cluster.reserved(&pod, reservation.as_deref(), now);
                }
                Effect::GroupScheduled { group, scheduled, reason, message } => {
                    self.cluster.group_scheduled(&group, scheduled, (reason, &message), now);
                }
                Effect::GroupStatus { group, status } => self.cluster.group_status(&group, &status, now),
                Effect::Note { regarding, warning, reason, note, .. } => {
                    let object = format!("{} {}/{}", regarding.kind, regarding.namespace, regarding.name);
                    // Waiting Pods are normal for a queue.
                    if warning && reason != "FailedScheduling" {
                        tracing::warn!(object, reason, "{note}");
                    } else {
                        tracing::info!(object, reason, "{note}");
                    }
                }
                Effect::Evict { pod, why } => {
                    tracing::info!(pod = %pod.name, namespace = %pod.namespace, why, "evicted");
                    self.cluster.evict(&pod, &why, now);
                }
                Effect::Delete { object, why } => {
                    tracing::info!(object = %object.name, namespace = %object.namespace, why, "deleted");
                    self.cluster.delete(&object.uid, now);
                }
                Effect::Journal(entry) => self.batch.history.push(entry),
                // There are no claims: the volumes of Pods are not checked.
                Effect::SelectNode { .. }
                | Effect::DeselectNode { .. }
                | Effect::ReserveVolume { .. }
                | Effect::FreeVolume { .. } => {}
            }
        }
        Ok(())
    }
}

/// The receiver of submissions.
#[derive(Debug)]
pub struct SubmitRequests(mpsc::Receiver<SubmitRequest>);

/// A handle to submit objects, and its receiver.
pub fn requests() -> (SubmitHandle, SubmitRequests) {
    let (sender, receiver) = mpsc::channel(TURN_MAX);
    (SubmitHandle(sender), SubmitRequests(receiver))
}

/// The node on which a Pod holds resources.
fn node_held(object: &Object) -> Option<String> {
    match object {
        Object::Pod(pod) if super::kubelet::holds_a_node(pod) => pod.spec.as_ref()?.node_name.clone(),
        _ => None,
    }
}

fn row(uid: &str, packed: &Packed) -> ObjectRow {
    let (kind, namespace, name) = packed.called();
    ObjectRow { uid: uid.to_owned(), kind: kind.to_owned(), namespace, name, body: packed.text() }
}

fn parse(what: &str, body: &str) -> Result<Object, BadRow> {
    let bad = |problem: String| BadRow { what: what.to_owned(), problem };
    let value = serde_json::from_str(body).map_err(|error| bad(error.to_string()))?;
    Object::from_value(value).map_err(|error| bad(format!("{error:?}")))
}
