//! State of the interactive view.

use std::collections::BTreeMap;

use fluxion_api::client::Error;
use fluxion_api::graph::Finding;
use fluxion_api::{CancelAnswer, FluxionJob, FluxionNode, FluxionQueue, Role};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::cursor::Cursor;
use super::message::{Key, Question};
use super::order::{JobOrder, NodeOrder};
use crate::render::parse;

/// The panes of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pane {
    Nodes,
    #[default]
    Queue,
    Reservations,
}

/// Which jobs to show in the queue pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    #[default]
    Waiting,
    Running,
    All,
}

/// Objects of one kind, and the state of the connection.
#[derive(Debug)]
pub(super) struct Feed<T> {
    pub(super) objects: BTreeMap<Key, T>,
    /// Time of the last contact with the server.
    pub(super) contact: Option<Timestamp>,
    pub(super) lost: Option<Error>,
}

impl<T> Default for Feed<T> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), contact: None, lost: None }
    }
}

impl<T> Feed<T> {
    /// Marks the connection as lost. A connection that was closed was good until then; after a timeout, it was last
    /// good at the last contact.
    pub(super) fn lose(&mut self, error: Error, now: Timestamp) {
        if self.lost.is_none() && self.contact.is_some() && !matches!(error, Error::TimedOut { .. }) {
            self.contact = Some(now);
        }
        self.lost = Some(error);
    }
}

/// Overlays.
#[derive(Debug)]
pub(super) enum Over {
    Help,
    /// Details of a job or node, with the scroll offset in lines.
    Detail {
        pane: Pane,
        key: Key,
        scroll: u16,
    },
    /// Waiting for the preview of a cancel.
    Asking(Question, String),
    Confirm(Box<FluxionJob>, Box<CancelAnswer>),
}

/// A status message.
#[derive(Debug)]
pub(super) struct Notice {
    pub(super) text: String,
    pub(super) good: bool,
    pub(super) since: Timestamp,
}

/// State of the interactive view.
#[derive(Debug)]
pub struct App {
    pub(super) server: String,
    pub(super) role: Role,
    /// Warning of the server, and the time of its data.
    pub(super) warning: Option<(String, Option<Timestamp>)>,
    pub(super) now: Timestamp,
    pub(super) zone: TimeZone,
    /// Whether to use colors.
    pub colours: bool,
    pub(super) jobs: Feed<FluxionJob>,
    pub(super) nodes: Feed<FluxionNode>,
    pub(super) queues: Vec<FluxionQueue>,
    pub(super) findings: Option<Vec<Finding>>,
    /// Number of the last request to the server.
    pub(super) asked: Question,
    /// Number of the pending explain request.
    pub(super) explaining: Question,
    pub(super) explained: Option<(Key, Box<fluxion_api::FluxionExplanation>)>,
    pub(super) focus: Pane,
    pub(super) show: Show,
    pub(super) job_order: JobOrder,
    pub(super) node_order: NodeOrder,
    pub(super) filter: String,
    /// Whether the filter is being edited.
    pub(super) typing: bool,
    pub(super) over: Option<Over>,
    pub(super) notice: Option<Notice>,
    /// Whether the lists below are out of date.
    pub(super) changed: bool,
    pub(super) lists: Lists,
    pub(super) cursors: Cursors,
    /// The error that ended the view, if any.
    pub(super) failure: Option<crate::failure::Failure>,
}

/// The objects shown in each pane, in order.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) nodes: Vec<Key>,
    pub(super) queue: Vec<Key>,
    pub(super) reservations: Vec<Key>,
}

/// The selected line of each pane.
#[derive(Debug, Default)]
pub(super) struct Cursors {
    pub(super) nodes: Cursor,
    pub(super) queue: Cursor,
    pub(super) reservations: Cursor,
}

impl App {
    /// The initial state, without data.
    pub fn new(server: &str, now: Timestamp, zone: TimeZone) -> Self {
        Self {
            server: server.to_owned(),
            role: Role::default(),
            warning: None,
            now,
            zone,
            colours: true,
            jobs: Feed::default(),
            nodes: Feed::default(),
            queues: Vec::new(),
            findings: None,
            asked: 0,
            explaining: 0,
            explained: None,
            focus: Pane::default(),
            show: Show::default(),
            job_order: JobOrder::default(),
            node_order: NodeOrder::default(),
            filter: String::new(),
            typing: false,
            over: None,
            notice: None,
            changed: true,
            lists: Lists::default(),
            cursors: Cursors::default(),
            failure: None,
        }
    }

    /// The cursor and the list of a pane.
    pub(super) fn cursor(&mut self, pane: Pane) -> (&mut Cursor, &[Key]) {
        match pane {
            Pane::Nodes => (&mut self.cursors.nodes, &self.lists.nodes),
            Pane::Queue => (&mut self.cursors.queue, &self.lists.queue),
            Pane::Reservations => (&mut self.cursors.reservations, &self.lists.reservations),
        }
    }

    /// Returns the number of a new request.
    pub(super) fn ask(&mut self) -> Question {
        self.asked += 1;
        self.asked
    }

    /// The selected job in the focused pane.
    pub(super) fn chosen_job(&self) -> Option<&FluxionJob> {
        let key = match self.focus {
            Pane::Nodes => return None,
            Pane::Queue => self.cursors.queue.key(),
            Pane::Reservations => self.cursors.reservations.key(),
        };
        self.jobs.objects.get(key?)
    }

    /// Why the data may be stale, and since when.
    pub(super) fn stale(&self) -> Option<(Option<Timestamp>, &Error)> {
        let jobs = self.jobs.lost.as_ref().map(|error| (self.jobs.contact, error));
        let nodes = self.nodes.lost.as_ref().filter(|error| !matches!(error, Error::Forbidden { .. }));
        jobs.or_else(|| nodes.map(|error| (self.nodes.contact, error)))
    }

    /// Updates the lists and cursors from the objects.
    pub(super) fn settle(&mut self) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        let wanted = self.filter.to_lowercase();
        let has = |text: &str| wanted.is_empty() || text.to_lowercase().contains(&wanted);
        let mut jobs: Vec<(&Key, &FluxionJob)> = self
            .jobs
            .objects
            .iter()
            .filter(|(_, job)| {
                let reason = job.status.reason.as_ref().map_or("", |reason| reason.text.as_str());
                has(&job.reference().to_string())
                    || has(job.status.state.as_str())
                    || has(&job.spec.queue)
                    || has(reason)
            })
            .collect();
        jobs.sort_by(|a, b| self.job_order.compare(a.1, b.1));
        let fits = |job: &FluxionJob| match self.show {
            Show::Waiting => job.is_queued(),
            Show::Running => !job.is_queued() && !job.has_ended(),
            Show::All => true,
        };
        self.lists.queue = jobs.iter().filter(|(_, job)| fits(job)).map(|(key, _)| (*key).clone()).collect();
        let mut planned: Vec<_> = jobs
            .iter()
            .filter(|(_, job)| job.is_queued())
            .filter_map(|(key, job)| Some((planned_start(job)?, (*key).clone())))
            .collect();
        planned.sort();
        self.lists.reservations = planned.into_iter().map(|(_, key)| key).collect();
        let mut nodes: Vec<(&Key, &FluxionNode)> = self
            .nodes
            .objects
            .iter()
            .filter(|(key, node)| has(&key.1) || node.status.reasons.iter().any(|reason| has(reason)))
            .collect();
        nodes.sort_by(|a, b| self.node_order.compare(a.1, b.1));
        self.lists.nodes = nodes.into_iter().map(|(key, _)| key.clone()).collect();
        for pane in [Pane::Nodes, Pane::Queue, Pane::Reservations] {
            let (cursor, list) = match pane {
                Pane::Nodes => (&mut self.cursors.nodes, &self.lists.nodes),
                Pane::Queue => (&mut self.cursors.queue, &self.lists.queue),
                Pane::Reservations => (&mut self.cursors.reservations, &self.lists.reservations),
            };
            cursor.settle(list);
        }
    }
}

/// The planned start of a job.
pub(super) fn planned_start(job: &FluxionJob) -> Option<Timestamp> {
    let status = &job.status;
    let reserved = status.reservation.as_ref().map(|reservation| reservation.start.as_str());
    parse(reserved.or(status.planned_start.as_deref())?)
}
