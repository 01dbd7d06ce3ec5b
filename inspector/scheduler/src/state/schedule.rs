//! Scheduling: members of started jobs first, then a pass over each queue; and results of bindings.

use std::collections::BTreeSet;
use std::sync::Arc;

use fluxion_api::reason::Fact;
use fluxion_text::natural_order;

use crate::inventory::{Allocation, Promise};
use crate::job::{Job, JobId, JobState, Reason, ReasonClass, Reservation};
use crate::model::SharedStr;
use crate::placement;
use crate::queue::{self, Carry, PassJob, PassResult, PassTally};
use crate::request::{Placement, Planned, Request, Shape, Slot};
use crate::state::State;
use crate::state::pass_state::{OpenPass, PassReport, PassedOver};
use crate::state::pod::avoiding;

/// The nodes of a placement without duplicates, in order.
fn nodes_of(placement: &Placement) -> Vec<SharedStr> {
    let mut nodes: Vec<SharedStr> = placement.slots.iter().map(|slot| slot.node.clone()).collect();
    nodes.sort_by(|a, b| natural_order(a, b));
    nodes.dedup();
    nodes
}

/// Without duplicates, and limited in number.
fn named(mut jobs: Vec<JobId>) -> Vec<JobId> {
    jobs.sort_unstable();
    jobs.dedup();
    jobs.truncate(64);
    jobs
}

/// Seconds between passes triggered only by the passing of time.
const IDLE_PASS: i64 = 5;

impl State {
    /// A pass was interrupted: send `Tick` immediately.
    pub fn unfinished(&self) -> bool {
        self.ready && (self.pass.cut.is_some() || self.pass_wanted())
    }

    /// Something changed that may allow a job to start.
    fn pass_wanted(&self) -> bool {
        self.pass.wanted || self.pass.arrived || self.pass.seen != self.generations()
    }

    /// Number of waiting jobs that [`State::decide`] considers, unless it stops earlier; counted up to `most`.
    pub fn pass_ahead(&self, most: usize) -> usize {
        let ahead = self.unfinished() || (self.ready && self.pass_due());
        if !ahead {
            return 0;
        }
        let open = self.pass.open.as_ref().filter(|_| !self.pass_due() && self.may_reopen());
        self.waiting.behind(open.and_then(|open| open.last.as_ref())).take(most).count()
    }

    fn pass_due(&self) -> bool {
        self.pass.due.is_some_and(|due| due <= self.now)
    }

    fn generations(&self) -> (u64, u64) {
        (self.inventory.freed_generation(), self.inventory.graph_generation())
    }

    /// When a `Tick` is required at the latest (epoch seconds).
    pub fn next_wake(&self) -> Option<i64> {
        let timer = self.waiting.next_look();
        let ended = self.jobs.first_end().map(|at| at.saturating_add(self.settings.keep_ended));
        let due = self.pass.due.filter(|_| self.ready);
        let assumed = self.inventory.next_assumed_end();
        [timer, ended, assumed, due, self.next_refusal_over(), self.next_forgotten_failure()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Results of the queue's last complete pass.
    pub fn last_pass(&self, queue: &str) -> PassReport {
        self.pass.reports.get(queue).copied().unwrap_or_default()
    }

    /// Places members of started jobs before any waiting job.
    pub(super) fn complete_started(&mut self) {
        if !self.pass_wanted() || (self.waiting.incomplete.is_empty() && self.waiting.owed.is_empty()) {
            return;
        }
        // Reservations of waiting jobs must not block them; the next pass recomputes these.
        self.inventory.clear_reservations();
        for id in self.waiting.incomplete.iter().copied().collect::<Vec<_>>() {
            let Some(job) = self.jobs.get(id).cloned() else { continue };
            let summary = self.summary(&job);
            let domain = summary.level.as_ref().and_then(|level| self.domain_of(&job, level));
            let policy = self.node_policy(&job);
            let avoided = self.avoided(&job);
            let request_for = |shapes: Vec<Shape>, now: i64| Request {
                // Any of these may be created.
                minimum: (shapes.iter().map(|shape| shape.count).sum::<u32>() > 1).then_some(1),
                shapes: avoiding(shapes, &avoided),
                level: summary.level.clone(),
                domain: domain.clone(),
                duration: job.planned_end.map(|end| end.saturating_sub(now).max(1)),
            };
            let mut refused = Vec::new();
            let mut failed = BTreeSet::new();
            for pod in &summary.waiting {
                let shapes = self.shapes(std::slice::from_ref(pod));
                let request = request_for(shapes.clone(), self.now);
                if let Some(node) = shapes.first().and_then(|shape| self.take_place(id, shape)) {
                    let slots = vec![Slot { shape: 0, node, count: 1 }];
                    self.send(&job, std::slice::from_ref(pod), &Placement { slots, domain: None });
                    continue;
                }
                // Members only allocate: what did not fit still does not fit, unless it depends on other Pods.
                let mut placement = None;
                if !failed.contains(&request) || request.awaits_others() {
                    placement = placement::place_now(&self.inventory, &request, self.now, policy).ok();
                    // Its requests differ from those of the lost member: the reserved resources are still its own.
                    if placement.is_none() && self.open_places(id) {
                        placement = placement::place_now(&self.inventory, &request, self.now, policy).ok();
                    }
                }
                if let Some(placement) = placement {
                    self.send(&job, std::slice::from_ref(pod), &placement);
                } else {
                    failed.insert(request);
                    refused.push(pod.clone());
                }
            }
            let reason = (!refused.is_empty()).then(|| {
                let reason = self.reason_of(&job, &request_for(self.shapes(&refused), self.now));
                let count = u32::try_from(refused.len()).unwrap_or(u32::MAX);
                let waiting = [Fact::MembersWaiting { count }];
                let facts = waiting.into_iter().chain(reason.facts.iter().cloned()).collect();
                Reason { facts, ..reason }
            });
            if let Some(job) = self.jobs.get_mut(id) {
                job.reason = reason;
            }
            self.work.dirty.insert(id);
        }
        self.evaluate_dirty();
        self.secure_places();
        self.evaluate_dirty();
    }

    /// The domain of a topology level that contains the job's bound members.
    pub(super) fn domain_of(&self, job: &Job, level: &SharedStr) -> Option<SharedStr> {
        let node = job.pods.iter().find_map(|uid| {
            let assumed = self.bindings.assumed(uid).map(|assumed| assumed.node.clone());
            assumed.or_else(|| {
                self.delivered.pod(uid).filter(|pod| !pod.phase.ended()).and_then(|pod| pod.node.clone())
            })
        })?;
        self.inventory.node_spec(&node)?.labels.get(level).cloned()
    }

    /// One pass over every queue, or as much of it as fits in one step.
    pub(super) fn run_pass(&mut self) {
        let due = self.pass_due();
        let wanted = self.pass_wanted();
        if !wanted && !due && self.pass.cut.is_none() {
            return;
        }
        if !due && self.may_reopen() {
            return self.reopen_pass();
        }
        let (first, mut carry) = match self.pass.cut.take() {
            Some((index, carry)) if !wanted => (index, Some(carry)),
            cut => {
                if let Some((index, carry)) = cut {
                    let name = self.settings.queues[index].name.clone();
                    self.pass.memory.insert(name, carry.abandon());
                }
                if !self.keeps_all() || !self.pass.unrestored.is_empty() {
                    self.inventory.clear_reservations();
                }
                self.pass.disturbed |= self.inventory.disturbed(self.now);
                self.inventory.settle();
                self.pass.before_cut = PassReport::default();
                // What an earlier slice planned remains due.
                self.pass.due = None;
                (self.pass.behind, self.pass.outdated) = (false, false);
                (0, None)
            }
        };
        (self.pass.wanted, self.pass.arrived, self.pass.open) = (false, false, None);
        self.pass.seen = self.generations();
        let mut tally = None;
        let mut budget = self.settings.visits_per_step;
        let settings = self.settings.clone();
        for (index, config) in settings.queues.iter().enumerate().skip(first) {
            let mut lineup = self.lineup(index);
            // Reservations of other queues are kept, so the pass must not start from scratch.
            let carry = carry.take().unwrap_or_else(|| {
                let memory = self.pass.memory.remove(&config.name).unwrap_or_default();
                Carry::remembering(memory).changed(self.pass.disturbed)
            });
            let mut result = self.pass_over((index, config), &lineup, carry, budget);
            self.pass.memory.insert(config.name.clone(), std::mem::take(&mut result.memory));
            budget = budget.saturating_sub(result.visited).max(1);
            let before = std::mem::take(&mut self.pass.before_cut);
            let counted = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
            let tried = before.tried.saturating_add(counted(result.tried));
            let report = PassReport {
                at: self.now,
                tried,
                tried_since: tried,
                started: before.started.saturating_add(counted(result.started.len())),
                passes: self.last_pass(&config.name).passes.saturating_add(1),
            };
            self.pass.wanted |= result.look_again;
            self.pass.outdated |= result.outdated || (self.pass.behind && !result.started.is_empty());
            self.pass.behind |= result.behind;
            tally = Some(result.tally).filter(|_| report.started == 0);
            let told = Arc::make_mut(&mut lineup.told);
            let cut = self.take_result(&lineup.jobs, told, result);
            self.pass.lineups.insert(index, lineup);
            if let Some(carry) = cut {
                self.pass.cut = Some((index, carry));
                self.pass.before_cut = report;
                return;
            }
            self.pass.reports.insert(config.name.clone(), report);
        }
        // What has happened since stored reservations were made is not known.
        self.pass.disturbed = std::mem::take(&mut self.pass.restored);
        if self.pass.disturbed {
            self.note_due(self.now);
        }
        let first = self.inventory.promised().next().map(|(start, _)| start);
        if let Some(start) = first.filter(|_| self.keeps_all()) {
            self.note_due(start);
        }
        // Jobs started before are then in the way of all others, as after a restart.
        self.pass.wanted |= self.pass.outdated;
        self.pass.at = self.now;
        self.pass.told_of = self.inventory.graph_generation();
        self.leave_open(tally);
    }

    /// A complete pass in which nothing started can be reopened, if there is only one queue: jobs in a queue come before
    /// all those in the next one.
    fn leave_open(&mut self, tally: Option<PassTally>) {
        let single = self.settings.queues.len() == 1;
        self.pass.open = tally.filter(|_| single).map(|tally| OpenPass {
            last: self.waiting.last().cloned(),
            tally,
            inventory: self.inventory.changes(),
            at: self.now,
        });
    }

    /// Whether all that has happened since the last pass is that jobs have come, behind all others: for these, it would
    /// decide the same again.
    fn may_reopen(&self) -> bool {
        let same = |open: &OpenPass| {
            open.inventory == self.inventory.changes()
                && (open.at == self.now || !self.inventory.overdue(self.now))
        };
        self.pass.arrived
            && !self.pass.wanted
            && self.pass.cut.is_none()
            && self.pass.seen == self.generations()
            && self.pass.open.as_ref().is_some_and(same)
    }

    /// Goes on with the last pass for the jobs that have come since.
    fn reopen_pass(&mut self) {
        self.pass.arrived = false;
        let settings = self.settings.clone();
        let (Some(open), Some(config)) = (self.pass.open.take(), settings.queues.first()) else { return };
        let jobs = self.lineup_behind(0, open.last.as_ref());
        let memory = self.pass.memory.remove(&config.name).unwrap_or_default();
        let carry = Carry::reopened(memory, open.tally);
        let budget = self.settings.visits_per_step;
        let mut result = queue::pass(&mut self.inventory, config, &jobs, self.now, budget, Some(carry));
        self.pass.memory.insert(config.name.clone(), std::mem::take(&mut result.memory));
        let (tally, started) = (result.tally, !result.started.is_empty());
        let before = self.last_pass(&config.name);
        let tried_since = u32::try_from(result.tried).unwrap_or(u32::MAX);
        let report = PassReport {
            at: self.now,
            tried: before.tried.saturating_add(tried_since),
            tried_since,
            started: u32::try_from(result.started.len()).unwrap_or(u32::MAX),
            passes: before.passes.saturating_add(1),
        };
        self.pass.wanted |= result.look_again || result.outdated || (self.pass.behind && started);
        self.pass.behind |= result.behind;
        let mut told = vec![PassedOver::default(); jobs.len()];
        if let Some(carry) = self.take_result(&jobs, &mut told, result) {
            // There are more than fit in a step; what was decided for the first of them stays.
            self.pass.memory.insert(config.name.clone(), carry.abandon());
            self.pass.wanted = true;
            return;
        }
        self.pass.reports.insert(config.name.clone(), report);
        self.pass.at = self.now;
        self.leave_open(Some(tally).filter(|_| !started));
    }

    /// Whether the reservations in the inventory stay there from one pass to the next. With several queues, those of a
    /// queue must not be in the way of the queues before it.
    fn keeps_all(&self) -> bool {
        matches!(self.settings.queues.as_slice(), [queue] if queue.keeps())
    }

    /// Another pass is due when a planned start is reached.
    fn note_due(&mut self, start: i64) {
        let next = self.now.saturating_add(1);
        let due = if start <= next { self.now.saturating_add(IDLE_PASS) } else { start };
        self.pass.due = Some(self.pass.due.map_or(due, |at| at.min(due)));
    }

    /// Carries out what a pass over these jobs has decided. What each of them was told before is updated.
    fn take_result(
        &mut self,
        jobs: &[PassJob],
        told: &mut [PassedOver],
        mut result: PassResult,
    ) -> Option<Carry> {
        for (id, placement) in std::mem::take(&mut result.started) {
            self.start(JobId(id), &placement);
        }
        let untold = |id: &u32| self.job(JobId(*id)).is_some_and(|job| job.reservation.is_none());
        let kept = std::mem::take(&mut result.kept).into_iter().filter(untold).filter_map(|id| {
            let Promise { placement, start, end, start_assumed, .. } =
                self.inventory.reservation(id)?.clone();
            Some((id, Planned { start, end, placement, assumed: start_assumed }))
        });
        let kept: Vec<_> = kept.collect();
        for (id, planned) in std::mem::take(&mut result.reserved).into_iter().chain(kept) {
            let id = JobId(id);
            let Some(job) = self.jobs.get(id).cloned() else { continue };
            let nodes = nodes_of(&planned.placement);
            self.note_due(planned.start);
            let blockers = self.blockers(&job, &nodes, planned.start);
            let promised = self.inventory.reservation(id.0);
            let reservation = Reservation {
                start: planned.start,
                end: promised.and_then(|promised| promised.end),
                start_assumed: promised.is_some_and(|promised| promised.start_assumed),
                end_assumed: promised.is_some_and(|promised| promised.end_assumed),
                nodes,
            };
            let killed = job.killed_at.is_some_and(|at| at <= planned.start);
            let why = job.request.as_ref().map(|request| self.reason_of(&job, request));
            let class = if killed { ReasonClass::DeadlineBeforeStart } else { ReasonClass::Reserved };
            let mut facts = match why {
                _ if killed => Arc::new([Fact::LimitBeforeStart]),
                Some(why) => why.facts,
                None => Arc::new([Fact::PlannedStart]),
            };
            if reservation.start_assumed {
                let assumed = self.why_assumed(&job, &blockers);
                facts = facts.iter().cloned().chain([assumed]).collect();
            }
            if let Some(job) = self.jobs.get_mut(id) {
                job.waits_for = blockers;
            }
            self.settle(id, JobState::Reserved, Some(Reason { class, facts }), false);
            if let Some(job) = self.jobs.get_mut(id) {
                job.reservation = Some(reservation);
            }
            self.note_move(&job, planned.start);
            self.note_start_times(id);
        }
        self.tell_refused(jobs, told, &mut result);
        result.carry
    }

    /// Jobs that hold the nodes on which this one is planned, or have an earlier reservation there.
    fn blockers(&self, job: &Job, nodes: &[SharedStr], start: i64) -> Vec<JobId> {
        let ending = |hold: &Allocation| hold.until.is_some_and(|until| until <= start);
        let mut jobs = Vec::new();
        for node in nodes {
            let views = self.inventory.node(node);
            let holders = views.into_iter().flat_map(|view| view.holders).filter(|(_, hold)| ending(hold));
            jobs.extend(holders.filter_map(|(holder, _)| self.job_of_holder(&holder)).map(|job| job.id));
            let planned = self.inventory.planned_on(node).filter(|(_, end)| *end <= start);
            jobs.extend(planned.map(|(job, _)| JobId(job)));
        }
        jobs.retain(|other| *other != job.id);
        named(jobs)
    }

    pub(super) fn jobs_of<'a>(&self, pods: impl Iterator<Item = &'a SharedStr>) -> Vec<JobId> {
        named(pods.filter_map(|holder| self.job_of_holder(holder)).map(|job| job.id).collect())
    }
}
