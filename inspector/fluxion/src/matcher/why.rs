//! Explains why a request can't be satisfied: which vertices were rejected, for which reason and until when, and
//! whether waiting helps.
//!
//! It repeats the exact traversal and records the reasons, so ordinary matches have no overhead. It does not change
//! any state.

mod report;

use std::collections::BTreeMap;

use super::engine::Engine;
use super::exact::{Purpose, Selection, Walk};
use super::notes::Notes;
use super::operation::{Failure, LIFETIME};
use super::operation::{Operation, effective_duration};
use super::operations::Asking;
use super::request::{Request, amount_of};
use super::scratch::Scratch;
use crate::errno::Errno;
use crate::graph::TypeId;
use crate::jobspec::Jobspec;
pub use report::{Reason, Refused, Shortage, Verdict, WhyNot};

impl Engine {
    /// Explains why a request can't be satisfied at `now` (seconds), without changing any state.
    ///
    /// For a request with alternatives, the last one is explained. Errors: those of
    /// [`Engine::match_job`] for an invalid request.
    pub fn why_not(&self, spec: &Jobspec, now: i64) -> Result<WhyNot, Failure> {
        if spec.resources.is_empty() || self.root().is_none() {
            return Err(Failure::new(Errno::Einval, "the request is empty"));
        }
        let duration = effective_duration(spec.duration)?;
        let request = Request::compile(spec, &self.graph, &self.filters, self.flexible)
            .map_err(|error| Failure::new(Errno::Eoverflow, error.to_string()))?;
        let asking = Asking { request: &request, duration, now };
        let mut scratch = self.scratch.clone();
        let verdict = self.verdict(&asking, &mut scratch);
        let (at, purpose) = if verdict == Verdict::Unsatisfiable {
            (far(duration), Purpose::Satisfiability)
        } else {
            (now, Purpose::Allocate)
        };
        let notes = match verdict {
            Verdict::Fits | Verdict::NothingExclusive => Notes::default(),
            _ => self.notes(&asking, at, purpose, &mut scratch),
        };
        let mut missing = notes.missing_by_name(&self.graph);
        let nodes = amount_of(&request.demand, self.node_type);
        let usable = u64::try_from(self.usable_nodes()).unwrap_or(0);
        if missing.is_empty() && nodes > usable {
            missing.push(Shortage { type_name: "node".to_owned(), wanted: nodes, found: usable });
        }
        let earliest = match verdict {
            Verdict::Fits => Some(now),
            Verdict::Busy => self.earliest(&asking, &mut scratch),
            _ => None,
        };
        Ok(WhyNot { verdict, earliest, missing, refused: self.refused(&notes) })
    }

    fn verdict(&self, asking: &Asking, scratch: &mut Scratch) -> Verdict {
        let far = far(asking.duration);
        if self.finds(asking, asking.now, Purpose::Allocate, scratch) {
            if self.enough_nodes(Operation::Allocate, asking).is_ok() {
                let something = self.marks_something(asking, scratch);
                return if something { Verdict::Fits } else { Verdict::NothingExclusive };
            }
            return Verdict::Busy;
        }
        if !self.finds(asking, far, Purpose::Satisfiability, scratch) {
            Verdict::Unsatisfiable
        } else if self.finds(asking, far, Purpose::Reserve, scratch) {
            Verdict::Busy
        } else {
            Verdict::Down
        }
    }

    /// Whether any way to ask is met at a time, step by step.
    fn finds(&self, asking: &Asking, at: i64, purpose: Purpose, scratch: &mut Scratch) -> bool {
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
        asking.request.variants.iter().any(|variant| {
            if let Some(notes) = &mut scratch.notes {
                **notes = Notes::default();
            }
            Walk::new(ask, scratch, None).run(variant)
        })
    }

    fn notes(&self, asking: &Asking, at: i64, purpose: Purpose, scratch: &mut Scratch) -> Notes {
        scratch.notes = Some(Box::default());
        self.finds(asking, at, purpose, scratch);
        scratch.notes.take().map(|notes| *notes).unwrap_or_default()
    }

    /// Whether anything is exclusive in what was marked last.
    fn marks_something(&self, asking: &Asking, scratch: &mut Scratch) -> bool {
        let Some(root) = self.root() else { return false };
        let whole = |of: &TypeId| {
            asking.request.exclusive_types.contains(of)
                || (self.policy.node_exclusive && *of == self.node_type)
        };
        scratch.start_walk(&self.graph);
        let mut open = vec![(root, scratch.root_mark.exclusive)];
        while let Some((id, exclusive)) = open.pop() {
            if exclusive || whole(&self.graph.vertex(id).type_id) {
                return true;
            }
            scratch.see(id);
            for (edge, child) in self.graph.children(id, self.dominant) {
                if let Some(mark) = scratch.mark_of(edge).filter(|_| !scratch.is_seen(child)) {
                    open.push((child, mark.exclusive));
                }
            }
        }
        false
    }

    /// When a request that waits could start as things are booked.
    fn earliest(&self, asking: &Asking, scratch: &mut Scratch) -> Option<i64> {
        let mut times = self.allocations.aggregates(self.root()?)?.clone();
        let demand = &asking.request.demand;
        let mut next = times.first_time(asking.now + 1, asking.duration, |of| amount_of(demand, of));
        while let Ok(at) = next {
            if at >= LIFETIME {
                return None;
            }
            if self.finds(asking, at, Purpose::Reserve, scratch) {
                return Some(at);
            }
            next = times.next_time();
        }
        None
    }

    fn refused(&self, notes: &Notes) -> Vec<Refused> {
        let mut groups: BTreeMap<(TypeId, Reason), Refused> = BTreeMap::new();
        for (id, note) in notes.judged(&self.graph, self.dominant) {
            let vertex = self.graph.vertex(id);
            let group = groups.entry((vertex.type_id, note.reason)).or_insert_with(|| Refused {
                type_name: self.graph.type_name(vertex.type_id).to_owned(),
                reason: note.reason,
                count: 0,
                of: self.graph.of_type(vertex.type_id).len() as u64,
                until: None,
                examples: Vec::new(),
            });
            group.count += 1;
            group.until = group.until.into_iter().chain(note.until).min();
            if group.examples.len() < report::EXAMPLES
                && let Some(path) = vertex.path(self.dominant)
            {
                group.examples.push(self.graph.path_text(path));
            }
        }
        groups.into_values().collect()
    }
}

/// A time at which nothing is booked.
fn far(duration: i64) -> i64 {
    i64::MAX - duration - 1
}
