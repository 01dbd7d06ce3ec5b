//! Applies messages to the state of the interactive view.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use fluxion_api::client::Error;
use fluxion_api::{FluxionJob, ListMeta};

use super::app::{App, Notice, Over, Pane, Show};
use super::message::{Effect, Key, Message, Source};
use crate::cancel::Outcome;
use crate::failure::Failure;
use crate::render::parse;

/// Maximum length of the filter.
const LONGEST_FILTER: usize = 100;
/// Seconds for which a status message is shown.
const NOTICE: i64 = 8;

/// Applies one message and returns the effect to carry out.
pub fn update(app: &mut App, message: Message) -> Option<Effect> {
    match message {
        Message::Key(key) if key.kind == KeyEventKind::Release => None,
        Message::Key(key) => pressed(app, key),
        Message::Resized => None,
        Message::Tick(now) => {
            app.now = now;
            if app.notice.as_ref().is_some_and(|notice| now.as_second() - notice.since.as_second() > NOTICE) {
                app.notice = None;
            }
            None
        }
        Message::Quit => Some(Effect::Quit),
        Message::Failed(failure) => {
            app.failure = Some(failure);
            Some(Effect::Quit)
        }
        Message::Lost(source, error) => lost(app, source, error),
        Message::Planned(question, job, answer) => {
            // Whoever closed the question, or asks another one by now, does not want its answer.
            if matches!(app.over, Some(Over::Asking(asked, _)) if asked == question) {
                app.over = match answer {
                    Ok(answer) => Some(Over::Confirm(job, answer)),
                    Err(outcome) => {
                        tell(app, &job.reference().to_string(), &outcome);
                        None
                    }
                };
            }
            None
        }
        Message::Cancelled(job, outcome) => {
            tell(app, &job, &outcome);
            None
        }
        Message::Explained(question, key, answer) => {
            if question == app.explaining {
                app.explained = Some((key, answer));
            }
            None
        }
        data => {
            learn(app, data);
            None
        }
    }
}

/// Applies data from the server.
fn learn(app: &mut App, message: Message) {
    let now = app.now;
    let heard = |contact: &mut Option<jiff::Timestamp>, lost: &mut Option<Error>| {
        *contact = Some(now);
        *lost = None;
    };
    match message {
        Message::Server(name) => app.server = name,
        Message::AllJobs(jobs, role) => {
            heard(&mut app.jobs.contact, &mut app.jobs.lost);
            app.role = role;
            app.jobs.objects = jobs.into_iter().map(|job| (key_of(&job.metadata), job)).collect();
        }
        Message::Job(job) => {
            heard(&mut app.jobs.contact, &mut app.jobs.lost);
            app.jobs.objects.insert(key_of(&job.metadata), *job);
        }
        Message::JobGone(key) => {
            heard(&mut app.jobs.contact, &mut app.jobs.lost);
            app.jobs.objects.remove(&key);
        }
        Message::AllNodes(nodes) => {
            heard(&mut app.nodes.contact, &mut app.nodes.lost);
            app.nodes.objects = nodes.into_iter().map(|node| (key_of(&node.metadata), node)).collect();
        }
        Message::Node(node) => {
            heard(&mut app.nodes.contact, &mut app.nodes.lost);
            app.nodes.objects.insert(key_of(&node.metadata), *node);
        }
        Message::NodeGone(key) => {
            heard(&mut app.nodes.contact, &mut app.nodes.lost);
            app.nodes.objects.remove(&key);
        }
        Message::Alive(Source::Jobs) => heard(&mut app.jobs.contact, &mut app.jobs.lost),
        Message::Alive(Source::Nodes) => heard(&mut app.nodes.contact, &mut app.nodes.lost),
        Message::Standing(ListMeta { role, observed_at, warning, .. }) => {
            app.role = role;
            app.warning = warning.map(|text| (text, parse(&observed_at)));
        }
        Message::Overview(queues, findings) => {
            if app.jobs.lost.is_none() && app.jobs.contact.is_some() {
                app.jobs.contact = Some(now);
            }
            app.queues = queues;
            app.findings = findings;
        }
        _ => return,
    }
    app.changed = true;
}

/// Namespace and name of an object.
pub(super) fn key_of(metadata: &fluxion_api::ObjectMeta) -> Key {
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone())
}

/// A lost connection is retried; an error before the first successful request ends the view.
fn lost(app: &mut App, source: Source, error: Error) -> Option<Effect> {
    let never_seen = app.jobs.contact.is_none();
    if source == Source::Jobs && never_seen && !error.is_temporary() {
        let help = if matches!(error, Error::Forbidden { .. }) {
            "; use -n to select a single namespace"
        } else {
            ""
        };
        app.failure = Some(Failure::new(error.exit(), format!("{error}{help}")));
        return Some(Effect::Quit);
    }
    let now = app.now;
    match source {
        Source::Jobs => app.jobs.lose(error, now),
        Source::Nodes => app.nodes.lose(error, now),
    }
    None
}

fn tell(app: &mut App, job: &str, outcome: &Outcome) {
    let good = outcome.exit() == fluxion_api::Exit::Done;
    app.notice = Some(Notice { text: format!("{job} {}", outcome.text()), good, since: app.now });
}

fn pressed(app: &mut App, key: KeyEvent) -> Option<Effect> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c' | 'd') => Some(Effect::Quit),
            _ => None,
        };
    }
    // The lists a key acts on are those that are on the screen, or will be.
    app.settle();
    if app.typing {
        type_filter(app, key.code);
        return None;
    }
    if app.over.is_some() {
        return over(app, key.code);
    }
    match key.code {
        KeyCode::Char('q') => return Some(Effect::Quit),
        KeyCode::Char('?' | 'h') => app.over = Some(Over::Help),
        KeyCode::Char('/') => app.typing = true,
        KeyCode::Esc => {
            app.filter.clear();
            app.changed = true;
        }
        KeyCode::Char('s') => {
            match app.focus {
                Pane::Nodes => app.node_order = app.node_order.next(),
                Pane::Queue => app.job_order = app.job_order.next(),
                Pane::Reservations => {}
            }
            app.changed = true;
        }
        KeyCode::Char('a') => {
            app.show = match app.show {
                Show::Waiting => Show::Running,
                Show::Running => Show::All,
                Show::All => Show::Waiting,
            };
            app.focus = Pane::Queue;
            app.changed = true;
        }
        KeyCode::Tab | KeyCode::Right | KeyCode::Char('l') => app.focus = next(app.focus),
        KeyCode::BackTab | KeyCode::Left => app.focus = next(next(app.focus)),
        KeyCode::Enter => return open(app),
        KeyCode::Char('c') => {
            let job = app.chosen_job().cloned();
            return ask_to_cancel(app, job, "select a job first (Tab switches panes)");
        }
        code => {
            if let Some(by) = steps(code) {
                let (cursor, list) = app.cursor(app.focus);
                cursor.step(list, by);
            }
        }
    }
    None
}

fn next(pane: Pane) -> Pane {
    match pane {
        Pane::Nodes => Pane::Queue,
        Pane::Queue => Pane::Reservations,
        Pane::Reservations => Pane::Nodes,
    }
}

/// Number of lines that a key moves by.
fn steps(code: KeyCode) -> Option<isize> {
    Some(match code {
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::PageDown | KeyCode::Char(' ') => 10,
        KeyCode::PageUp => -10,
        KeyCode::Home | KeyCode::Char('g') => isize::MIN,
        KeyCode::End | KeyCode::Char('G') => isize::MAX,
        _ => return None,
    })
}

fn type_filter(app: &mut App, code: KeyCode) {
    match code {
        KeyCode::Esc => {
            app.filter.clear();
            app.typing = false;
        }
        KeyCode::Enter => app.typing = false,
        KeyCode::Backspace => {
            app.filter.pop();
        }
        KeyCode::Char(c) if !fluxion_text::is_unsafe(c) && app.filter.chars().count() < LONGEST_FILTER => {
            app.filter.push(c);
        }
        _ => return,
    }
    app.changed = true;
}

/// Handles keys while an overlay is shown.
fn over(app: &mut App, code: KeyCode) -> Option<Effect> {
    match (app.over.take(), code) {
        (Some(Over::Confirm(job, answer)), KeyCode::Char('y' | 'Y')) => {
            app.notice = Some(Notice {
                text: format!("cancelling {} …", job.reference()),
                good: true,
                since: app.now,
            });
            Some(Effect::Cancel(job, answer))
        }
        (Some(Over::Detail { pane, key, scroll }), code) => {
            if let Some(by) = steps(code) {
                let by = i16::try_from(by.clamp(-30_000, 30_000)).unwrap_or_default();
                app.over = Some(Over::Detail { pane, key, scroll: scroll.saturating_add_signed(by) });
                return None;
            }
            match code {
                // The job that is read about, wherever the cursor has gone meanwhile.
                KeyCode::Char('c') if pane != Pane::Nodes => {
                    let job = app.jobs.objects.get(&key).cloned();
                    ask_to_cancel(app, job, "the job no longer exists")
                }
                KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') => None,
                _ => {
                    app.over = Some(Over::Detail { pane, key, scroll });
                    None
                }
            }
        }
        // A question is answered by "no" or by "yes", not by leaving the program.
        (Some(question @ Over::Confirm(..)), KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc) => {
            drop(question);
            app.notice = Some(Notice { text: "not cancelled".to_owned(), good: true, since: app.now });
            None
        }
        (Some(question @ Over::Confirm(..)), _) => {
            app.over = Some(question);
            None
        }
        // Help closes with any key; a question on its way can be called off.
        _ => None,
    }
}

fn open(app: &mut App) -> Option<Effect> {
    let pane = app.focus;
    let key = app.cursor(pane).0.key().cloned()?;
    app.explained = None;
    app.over = Some(Over::Detail { pane, key: key.clone(), scroll: 0 });
    if pane == Pane::Nodes {
        return None;
    }
    app.explaining = app.ask();
    Some(Effect::Explain(app.explaining, key))
}

fn ask_to_cancel(app: &mut App, job: Option<FluxionJob>, nothing: &str) -> Option<Effect> {
    let Some(job) = job else {
        app.notice = Some(Notice { text: nothing.to_owned(), good: false, since: app.now });
        return None;
    };
    let question = app.ask();
    app.over = Some(Over::Asking(question, job.reference().to_string()));
    Some(Effect::Plan(question, Box::new(job)))
}
