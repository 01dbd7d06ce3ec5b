//! Connects the interactive view to the keyboard, clock, signals and server.

use std::pin::{Pin, pin};
use std::time::Duration;

use crossterm::event::{Event, EventStream};
use fluxion_api::client::{Change, Client, Error, Selection, follow};
use fluxion_api::{Exit, FluxionJob, FluxionNode, FluxionQueue, ListMeta};
use futures::{Stream, StreamExt, future, stream};
use jiff::Timestamp;
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::event_loop::Outside;
use super::message::{Effect, Message, Source};
use super::update::key_of;
use crate::cancel::{self, Deleter};
use crate::failure::Failure;

/// Maximum number of queued messages.
const QUEUED: usize = 1024;
/// Polling interval of queues and audit, which can't be watched together with the other objects.
const OVERVIEW: Duration = Duration::from_secs(2);
/// Time after which an unresponsive server is reported, although requests continue until their timeout.
const SILENCE: Duration = Duration::from_secs(3);

type Messages = Pin<Box<dyn Stream<Item = Message> + Send>>;
type Effects = Box<dyn FnMut(Effect) + Send>;

/// Settings of the interactive view.
#[derive(Clone)]
pub struct Settings {
    /// Show only jobs in this namespace; `None` for all namespaces.
    pub namespace: Option<String>,
    /// Deletes the objects of cancelled jobs.
    pub deleter: Deleter,
}

/// Starts all event sources, which end when the messages are dropped.
pub(super) fn connect(client: Client, settings: Settings) -> Outside<Messages, Effects> {
    let (sender, mut receiver) = channel(QUEUED);
    let jobs = Selection { namespace: settings.namespace.clone(), ..Selection::default() };
    watched(&sender, jobs_into(sender.clone(), client.clone(), jobs));
    watched(&sender, nodes_into(sender.clone(), client.clone()));
    watched(&sender, overview_into(sender.clone(), client.clone()));
    let effect = move |effect| {
        watched(&sender, carry_out(sender.clone(), client.clone(), settings.clone(), effect));
    };
    let server = stream::poll_fn(move |context| receiver.poll_recv(context));
    let messages = stream::select_with_strategy(
        stream::select(keys(), stream::select(clock(), signals())),
        server,
        // Keys come first, however much the server sends.
        |(): &mut ()| stream::PollNext::Left,
    );
    Outside { messages: Box::pin(messages), effect: Box::new(effect) }
}

/// Runs a task, and ends the view if it panics: the terminal has been restored by then, and must not be drawn
/// to.
fn watched(sender: &Sender<Message>, task: impl Future<Output = ()> + Send + 'static) {
    let sender = sender.clone();
    tokio::spawn(async move {
        if tokio::spawn(task).await.is_err_and(|error| error.is_panic()) {
            let failure = Failure { exit: Exit::Other, message: None };
            drop(sender.send(Message::Failed(failure)).await);
        }
    });
}

fn keys() -> impl Stream<Item = Message> + Send {
    EventStream::new().filter_map(|event| async move {
        match event {
            Ok(Event::Key(key)) => Some(Message::Key(key)),
            Ok(Event::Resize(..)) => Some(Message::Resized),
            Ok(_) => None,
            // The terminal is gone.
            Err(_) => Some(Message::Quit),
        }
    })
}

fn clock() -> impl Stream<Item = Message> + Send {
    let mut ticks = interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    stream::unfold(ticks, |mut ticks| async {
        ticks.tick().await;
        Some((Message::Tick(Timestamp::now()), ticks))
    })
}

/// Termination signals. In raw mode, Ctrl-C is a key, but other processes can still send signals.
fn signals() -> impl Stream<Item = Message> + Send {
    use tokio::signal::unix::{SignalKind, signal};
    stream::select_all(
        [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
            .into_iter()
            .filter_map(|kind| signal(kind).ok())
            .map(|signal| {
                stream::unfold(signal, |mut signal| async {
                    signal.recv().await;
                    Some((Message::Quit, signal))
                })
                .boxed()
            }),
    )
}

async fn jobs_into(sender: Sender<Message>, client: Client, selection: Selection) {
    let mut changes = Box::pin(follow::<FluxionJob>(client.clone(), selection));
    while let Some(change) = changes.next().await {
        // Whoever is started anew may be found elsewhere.
        if matches!(change, Change::All(..)) && sender.send(Message::Server(client.server())).await.is_err() {
            return;
        }
        let message = match change {
            Change::All(ListMeta { role, .. }, jobs) => Message::AllJobs(jobs, role),
            Change::Set(job) => Message::Job(Box::new(job)),
            Change::Gone(job) => Message::JobGone(key_of(&job.metadata)),
            Change::Alive => Message::Alive(Source::Jobs),
            Change::Lost(error) => Message::Lost(Source::Jobs, error),
        };
        if sender.send(message).await.is_err() {
            return;
        }
    }
}

async fn nodes_into(sender: Sender<Message>, client: Client) {
    let mut changes = Box::pin(follow::<FluxionNode>(client, Selection::default()));
    while let Some(change) = changes.next().await {
        let message = match change {
            Change::All(_, nodes) => Message::AllNodes(nodes),
            Change::Set(node) => Message::Node(Box::new(node)),
            Change::Gone(node) => Message::NodeGone(key_of(&node.metadata)),
            Change::Alive => Message::Alive(Source::Nodes),
            Change::Lost(error) => Message::Lost(Source::Nodes, error),
        };
        if sender.send(message).await.is_err() {
            return;
        }
    }
}

/// Polls queues and audit. Lost connections are reported by the watches; this also detects a server that keeps its
/// connections open but does not respond.
async fn overview_into(sender: Sender<Message>, client: Client) {
    let mut ticks = interval(OVERVIEW);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let all = Selection::default();
    let mut lost = false;
    while !sender.is_closed() {
        ticks.tick().await;
        let mut asked = pin!(future::join(client.list::<FluxionQueue>(&all), client.audit()));
        let (queues, audit) = if let Ok(answers) = timeout(SILENCE, &mut asked).await {
            answers
        } else {
            lost = true;
            let error = Error::TimedOut { server: client.server(), limit: SILENCE };
            if sender.send(Message::Lost(Source::Jobs, error)).await.is_err() {
                return;
            }
            asked.await
        };
        let message = match queues {
            Ok(queues) => {
                if sender.send(Message::Standing(queues.metadata)).await.is_err() {
                    return;
                }
                if std::mem::take(&mut lost) && sender.send(Message::Alive(Source::Jobs)).await.is_err() {
                    return;
                }
                Message::Overview(queues.items, audit.ok().map(|audit| audit.findings))
            }
            Err(error @ Error::TimedOut { .. }) => {
                lost = true;
                Message::Lost(Source::Jobs, error)
            }
            Err(_) => continue,
        };
        if sender.send(message).await.is_err() {
            return;
        }
    }
}

async fn carry_out(sender: Sender<Message>, client: Client, settings: Settings, effect: Effect) {
    let message = match effect {
        Effect::Plan(question, job) => {
            let answer = cancel::plan(&client, &job, false).await;
            Message::Planned(question, job, answer.map(Box::new))
        }
        Effect::Cancel(job, answer) => {
            let namespace = job.metadata.namespace.clone().unwrap_or_default();
            let outcome = match cancel::is_standalone(&client, &namespace).await {
                Ok(standalone) => {
                    cancel::carry_out(&client, &settings.deleter, standalone, &job, &answer).await
                }
                Err(error) => error.into(),
            };
            Message::Cancelled(job.reference().to_string(), outcome)
        }
        Effect::Explain(question, key) => match client.explain(&key.0, &key.1).await {
            Ok(answer) => Message::Explained(question, key, Box::new(answer)),
            // The job itself is on the screen already; the answer only adds to it.
            Err(_) => return,
        },
        Effect::Quit => return,
    };
    // Fails when the screen has been left meanwhile.
    drop(sender.send(message).await);
}
