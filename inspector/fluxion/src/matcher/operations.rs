//! Implementation of the match operations.

use super::book::Booking;
use super::engine::Engine;
use super::exact::{Purpose, Selection, Walk};
use super::job::{AllocationKind, JobId};
use super::operation::{Failure, Found, LIFETIME, Operation, effective_duration};
use super::request::{Request, amount_of};
use super::sink::Sink;
use crate::errno::Errno;
use crate::graph::Status;
use crate::jobspec::Jobspec;
use crate::planner::MultiPlanner;

/// All of one match that does not change while it runs.
pub(super) struct Asking<'a> {
    pub request: &'a Request,
    pub duration: i64,
    pub now: i64,
}

impl Engine {
    /// Matches a request and, depending on the operation, allocates the resources to a job. The result is
    /// reported to the sink.
    ///
    /// Errors: `Ebusy` if it could succeed later, `Enodev` if it can never succeed, `Einval` for an invalid
    /// request; others as defined by Fluxion's rules.
    pub fn match_job(
        &mut self,
        operation: Operation,
        spec: &Jobspec,
        job: JobId,
        now: i64,
        sink: &mut dyn Sink,
    ) -> Result<Found, Failure> {
        self.scratch.preorder = 0;
        self.scratch.postorder = 0;
        self.scratch.errno = Errno::Unset;
        let result = self.try_match(operation, spec, job, now, sink);
        if let Err(failure) = &result {
            self.scratch.errno = failure.errno;
        }
        result
    }

    fn try_match(
        &mut self,
        operation: Operation,
        spec: &Jobspec,
        job: JobId,
        now: i64,
        sink: &mut dyn Sink,
    ) -> Result<Found, Failure> {
        if let Some(request) = &spec.extra {
            let found = self.match_extended(operation, request, job, now, sink)?;
            if let Some(queue) = spec.queue.as_ref().filter(|_| operation != Operation::Satisfiability) {
                sink.queue(queue);
            }
            return Ok(found);
        }
        if spec.resources.is_empty() || self.root().is_none() {
            return Err(Failure::new(Errno::Einval, "the request is empty"));
        }
        let duration = effective_duration(spec.duration)?;
        let request = Request::compile(spec, &self.graph, &self.filters, self.flexible)
            .map_err(|error| Failure::new(Errno::Eoverflow, error.to_string()))?;
        let asking = Asking { request: &request, duration, now };
        if operation == Operation::Satisfiability {
            return match self.could_ever(&asking) {
                Ok(()) => Ok(Found { at: now, duration }),
                Err(Errno::Ebusy | Errno::Erange) => Err(Failure::new(Errno::Enodev, "")),
                Err(errno) => Err(Failure::new(errno, "")),
            };
        }
        self.enough_nodes(operation, &asking)?;
        let at = self.find_time(operation, &asking)?;
        if !(0..LIFETIME).contains(&at) {
            let errno = if at == LIFETIME { Errno::Ebusy } else { Errno::Einval };
            return Err(Failure::new(errno, ""));
        }
        let duration = duration.min(LIFETIME - at);
        let hold = match (operation.allocates(), at == now) {
            (false, _) => None,
            (true, true) => Some(AllocationKind::Allocation),
            (true, false) => Some(AllocationKind::Reservation),
        };
        let mut exclusive_types = request.exclusive_types.clone();
        if self.policy.node_exclusive {
            exclusive_types.push(self.node_type);
        }
        let booking =
            Booking { job, start: at, duration, hold, spans_exist: false, divisible: false, exclusive_types };
        self.book(&booking, sink)?;
        if let Some(queue) = &spec.queue {
            sink.queue(queue);
        }
        Ok(Found { at, duration })
    }

    pub(super) fn select(&mut self, asking: &Asking, at: i64, purpose: Purpose) -> Result<(), Errno> {
        if !self.exact_only && !self.policy.stop_on_first {
            self.memo.catch_up(&mut self.allocations);
        }
        let ask = Selection {
            graph: &self.graph,
            allocations: &self.allocations,
            request: asking.request,
            policy: self.policy,
            quirks: self.quirks,
            flexible: self.flexible,
            dominant: self.dominant,
            auxiliary: !self.auxiliary.is_empty(),
            node_type: self.node_type,
            storage_node_type: self.storage_node_type,
            now: asking.now,
            at,
            duration: asking.duration,
            purpose,
        };
        for variant in &asking.request.variants {
            let memo = (!self.exact_only).then_some(&mut self.memo);
            if Walk::new(ask, &mut self.scratch, memo).run(variant) {
                return Ok(());
            }
        }
        Err(self.scratch.errno)
    }

    /// Whether the request could be met on an empty graph.
    fn could_ever(&mut self, asking: &Asking) -> Result<(), Errno> {
        let far = i64::MAX - asking.duration - 1;
        self.select(asking, far, Purpose::Satisfiability)
    }

    /// After a failure at every time looked at: busy, or impossible?
    fn busy_or_never(&mut self, asking: &Asking) -> Failure {
        let errno = match self.could_ever(asking) {
            Ok(()) => Errno::Ebusy,
            Err(Errno::Ebusy | Errno::Erange | Errno::Enodev) => Errno::Enodev,
            Err(errno) => errno,
        };
        Failure::new(errno, "")
    }

    /// Whether there are as many nodes as the request needs, before anything is walked.
    pub(super) fn enough_nodes(&self, operation: Operation, asking: &Asking) -> Result<(), Failure> {
        let wanted = amount_of(&asking.request.demand, self.node_type);
        let with_satisfiability = operation == Operation::AllocateWithSatisfiability;
        let errno = if with_satisfiability { Errno::Enodev } else { Errno::Ebusy };
        let refuse = || Err(Failure::new(errno, ""));
        let enough = i64::try_from(wanted).is_ok_and(|wanted| wanted <= self.usable_nodes());
        let constraint = asking.request.constraint.as_ref();
        if enough && constraint.is_none() {
            return Ok(());
        }
        if !enough {
            return refuse();
        }
        let nodes = self.graph.of_type(self.node_type);
        if nodes.is_empty() {
            return Ok(());
        }
        let now = matches!(operation, Operation::Allocate | Operation::WithoutAllocating);
        let from = if now { asking.now } else { LIFETIME - 1 };
        let fits = |&&id: &&crate::graph::VertexId| {
            constraint.is_none_or(|constraint| constraint.matches(&self.graph, id))
                && (with_satisfiability || self.graph.vertex(id).status == Status::Up)
                && self.allocations.min_free(&self.graph, id, from, asking.duration) == Ok(1)
        };
        let count = nodes.iter().filter(fits).take(usize::try_from(wanted).unwrap_or(usize::MAX)).count();
        if u64::try_from(count).is_ok_and(|count| count < wanted) { refuse() } else { Ok(()) }
    }

    fn find_time(&mut self, operation: Operation, asking: &Asking) -> Result<i64, Failure> {
        let purpose = if operation.allocates() { Purpose::Allocate } else { Purpose::Without };
        if self.select(asking, asking.now, purpose).is_ok() {
            return Ok(asking.now);
        }
        match operation {
            Operation::AllocateWithSatisfiability => {
                self.scratch.errno = Errno::Ebusy;
                Err(self.busy_or_never(asking))
            }
            operation if operation.looks_ahead() => self.find_later(operation, asking),
            _ => Err(Failure::new(Errno::Ebusy, "")),
        }
    }

    fn find_later(&mut self, operation: Operation, asking: &Asking) -> Result<i64, Failure> {
        let purpose = if operation.allocates() { Purpose::Reserve } else { Purpose::Without };
        let demand = asking.request.demand.clone();
        let mut next = self.root_times(|times| {
            times.first_time(asking.now + 1, asking.duration, |of| amount_of(&demand, of))
        });
        while let Ok(at) = next {
            let found = self.select(asking, at, purpose).is_ok();
            next = self.root_times(MultiPlanner::next_time);
            if found {
                if let Err(errno) = next {
                    self.scratch.errno = errno;
                }
                return Ok(at);
            }
        }
        match next {
            Err(errno @ (Errno::Enoent | Errno::Erange)) => {
                self.scratch.errno = errno;
                Err(self.busy_or_never(asking))
            }
            Err(errno) => Err(Failure::new(errno, "")),
            Ok(_) => Err(Failure::new(Errno::Ebusy, "")),
        }
    }

    /// The times at which the sums at the root may suffice; none without sums.
    fn root_times(
        &mut self,
        ask: impl FnOnce(&mut MultiPlanner) -> Result<i64, Errno>,
    ) -> Result<i64, Errno> {
        let root = self.root().ok_or(Errno::Enoent)?;
        let aggregates = self.allocations.get_mut(root).and_then(|account| account.aggregates.as_deref_mut());
        aggregates.map_or(Err(Errno::Enoent), ask)
    }
}
