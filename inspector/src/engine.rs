//! The loop that owns the engine's state: events in, effects out, snapshots for readers.
//!
//! It knows nothing about Kubernetes or HTTP: watches send [`Event`]s through the [`EngineHandle`], the writer
//! receives batches of [`Effect`]s, and readers use [`Published`] snapshots, which never wait for the loop.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fluxion_scheduler::event::{Effect, Event};
use fluxion_scheduler::state::{PassReport, State};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::failpoint;
use crate::metrics::Metrics;
use crate::supervise::{Failure, Pulse, message_of};
use crate::telemetry::Tracer;

mod handle;
mod inbox;
mod phases;
mod publish;
mod sharing;
mod trace;

use handle::End;
pub use handle::{EngineHandle, Stopped};
pub use publish::{Published, Role};

use inbox::Inbox;
use phases::Phases;
use publish::Publisher;
use trace::PassTrace;

/// Minimum time between snapshots (20 per second), unless a reader waits for one.
const PUBLISH_EVERY: Duration = Duration::from_millis(50);
/// A pass over so many jobs, or after one that took so long, is preceded by a snapshot.
const MANY_JOBS: usize = 1000;
const LONG_PASS: Duration = Duration::from_millis(25);
/// How often an idle loop confirms that its snapshot is current.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Minimum wait, so that an overdue alarm does not cause a busy loop.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);
/// Maximum number of effect batches queued for the writer before the loop blocks.
const EFFECT_BATCHES: usize = 256;

/// Name of the loop in errors.
const LOOP: &str = "the engine";

/// A source of time: epoch milliseconds.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The system clock.
pub fn system_clock() -> Clock {
    Arc::new(|| jiff::Timestamp::now().as_millisecond())
}

/// Initial values of an engine loop.
pub struct Engine {
    pub state: State,
    pub role: Role,
    pub clock: Clock,
    pub metrics: Arc<Metrics>,
}

impl Engine {
    /// Starts the loop on its own thread (a step computes, and may take a while) inside the current tokio runtime.
    /// Effects are sent in order, batch by batch; the loop ends when the handle is stopped or their receiver is
    /// dropped.
    ///
    /// # Errors
    /// The system can't start another thread.
    pub fn start(self) -> std::io::Result<(EngineHandle, mpsc::Receiver<Vec<Effect>>)> {
        self.start_traced(Tracer::default())
    }

    /// The same, with spans of passes and of the jobs that they start.
    ///
    /// # Errors
    /// The system can't start another thread.
    pub fn start_traced(
        self,
        tracer: Tracer,
    ) -> std::io::Result<(EngineHandle, mpsc::Receiver<Vec<Effect>>)> {
        let (run, end, handle, receiver) = self.prepare(tracer);
        let runtime = tokio::runtime::Handle::current();
        std::thread::Builder::new().name("engine".to_owned()).spawn(move || {
            // The state is dropped with the loop; only published snapshots are read afterwards.
            let ran = std::panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(run.run())));
            end.send_replace(Some(ran.map_err(|panic| Failure::Panicked {
                what: LOOP.to_owned(),
                message: message_of(&*panic).to_owned(),
            })));
        })?;
        Ok((handle, receiver))
    }

    /// The loop, where its end is told, a handle to it, and its effects.
    fn prepare(
        self,
        tracer: Tracer,
    ) -> (Loop, watch::Sender<Option<End>>, EngineHandle, mpsc::Receiver<Vec<Effect>>) {
        let (effects, receiver) = mpsc::channel(EFFECT_BATCHES);
        let now = (self.clock)();
        let inbox = Arc::new(Inbox::default());
        let publisher = Publisher::new(self.state.clone(), self.role, now);
        let asked = Arc::new(AtomicU64::new(0));
        let (answered, answers) = watch::channel(0);
        let (pulse, (end, ended)) = (Pulse::new(LOOP), watch::channel(None));
        let handle = EngineHandle::new(
            Arc::clone(&inbox),
            &publisher,
            Arc::clone(&asked),
            answers,
            pulse.clone(),
            ended,
        )
        .with_tracer(tracer.clone());
        let run = Loop {
            state: self.state,
            clock: self.clock,
            metrics: self.metrics,
            inbox,
            publisher,
            effects,
            asked,
            answered,
            last_now: now.div_euclid(1000),
            passing: Duration::ZERO,
            phases: Phases::default(),
            trace: PassTrace::new(tracer),
            pulse,
        };
        (run, end, handle, receiver)
    }
}

struct Loop {
    state: State,
    clock: Clock,
    metrics: Arc<Metrics>,
    inbox: Arc<Inbox>,
    publisher: Publisher,
    effects: mpsc::Sender<Vec<Effect>>,
    /// Number of snapshots requested, and the latest request that has been answered.
    asked: Arc<AtomicU64>,
    answered: watch::Sender<u64>,
    last_now: i64,
    /// Time spent on the current, unfinished pass.
    passing: Duration,
    phases: Phases,
    trace: PassTrace,
    pulse: Pulse,
}

impl Loop {
    async fn run(mut self) {
        let mut dirty = false;
        loop {
            self.pulse.beat();
            let asked = self.asked.load(Ordering::Acquire);
            let (batch, waited) = self.inbox.take();
            let now = self.now();
            let due = self.state.next_wake().is_some_and(|wake| wake <= now);
            if !batch.is_empty() || due || self.state.unfinished() {
                let news = std::mem::replace(&mut dirty, true) || !batch.is_empty();
                self.metrics.inbox_wait(waited);
                if !self.step(now, batch, news).await {
                    return;
                }
            }
            dirty |= self.publisher.role_changed();
            let wanted = asked > *self.answered.borrow();
            if (dirty && (wanted || self.publisher.due(PUBLISH_EVERY))) || self.publisher.due(HEARTBEAT) {
                self.publish(dirty);
                dirty = false;
            }
            if wanted {
                self.answered.send_replace(asked);
            }
            if self.inbox.stopped() && self.inbox.len() == 0 {
                self.publish(dirty);
                return;
            }
            if !self.state.unfinished() {
                self.sleep(dirty).await;
            }
        }
    }

    fn publish(&mut self, changed: bool) {
        self.publisher.publish(self.state.snapshot(), (self.clock)(), changed);
    }

    /// One step; false if the receiver of effects is gone. Before a long pass, there is a snapshot if there are `news` since
    /// the last one: whoever waits for these does not have to wait for the pass.
    async fn step(&mut self, now: i64, mut batch: Vec<Event>, news: bool) -> bool {
        if batch.is_empty() {
            batch.push(Event::Tick);
        }
        let passes = |state: &State| -> Vec<PassReport> {
            state.queues().iter().map(|queue| state.last_pass(&queue.name)).collect()
        };
        let before = passes(&self.state);
        let began = Instant::now();
        self.trace.begin();
        failpoint::reached("engine");
        self.state.receive(now, batch);
        if news && self.long_pass_ahead() {
            self.publish(true);
        }
        let effects = self.state.decide();
        let took = began.elapsed();
        self.metrics.step(took);
        self.passing += took;
        for effect in &effects {
            self.phases.observe(&self.state, effect, self.passing, &self.metrics);
            self.trace.observe(&self.state, effect);
        }
        let after = passes(&self.state);
        for ((queue, report), before) in self.state.queues().iter().zip(&after).zip(&before) {
            if report.passes != before.passes {
                self.metrics.attempts(&queue.name, report.started, report.tried_since);
            }
        }
        if !self.state.unfinished() {
            let passing = std::mem::take(&mut self.passing);
            self.trace.end(&self.state, after != before);
            if after != before {
                self.metrics.pass(passing);
                self.publisher.pass_took(passing);
            }
        }
        effects.is_empty() || self.effects.send(effects).await.is_ok()
    }

    fn long_pass_ahead(&self) -> bool {
        let jobs = self.state.pass_ahead(MANY_JOBS);
        jobs >= MANY_JOBS || (jobs > 0 && self.publisher.passes_take(LONG_PASS))
    }

    /// Sleeps until there is an event, an alarm is due, or a deferred snapshot may be published.
    async fn sleep(&self, dirty: bool) {
        let publish = self.publisher.wait(if dirty { PUBLISH_EVERY } else { HEARTBEAT });
        let wake = self.state.next_wake().map_or(HEARTBEAT, |wake| {
            let wait = wake.saturating_mul(1000).saturating_sub((self.clock)());
            Duration::from_millis(u64::try_from(wait).unwrap_or(0)).max(SHORTEST_WAIT)
        });
        // The clock used by `wake` may differ from tokio's: never sleep for longer than a heartbeat.
        let wait = publish.min(wake).min(HEARTBEAT);
        tokio::select! {
            () = self.inbox.filled() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }

    /// Epoch seconds that never decrease, even if the system clock does.
    fn now(&mut self) -> i64 {
        self.last_now = self.last_now.max((self.clock)().div_euclid(1000));
        self.last_now
    }
}

#[cfg(test)]
mod tests;
