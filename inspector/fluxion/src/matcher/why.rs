//! Why a request is not met: which vertices are out, for which reason and until when, and whether waiting
//! helps.
//!
//! It asks the exact walk once more, with notes on; ordinary matches pay nothing for it. It reads the books
//! and changes nothing, so it may be asked at any time.

mod report;

use std::collections::BTreeMap;

use serde::Serialize;

use super::engine::{Engine, Failure, LIFETIME};
use super::exact::{Notes, Purpose, Selection, Walk};
use super::operations::{Asking, Operation, effective_duration};
use super::request::{Request, amount_of};
use super::scratch::Scratch;
use crate::errno::Errno;
use crate::graph::TypeId;
use crate::jobspec::Jobspec;

/// Why a vertex is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is down.
    Down,
    /// It does not satisfy the constraint of the request.
    Constraint,
    /// Jobs hold it.
    Held,
    /// It is asked for alone, and jobs are there or below.
    Exclusive,
    /// There is less of it, or below it, than is asked for, whoever holds it.
    TooSmall,
    /// There is enough below it, but jobs hold too much of that.
    Aggregate,
    /// There is enough below it, but too much of that is out for reasons of its own.
    Below,
    /// The request says that it is shared, and what encloses it that it is not.
    Contradiction,
}

impl Reason {
    /// The error number that it leaves behind, by Fluxion's rules.
    pub(super) fn errno(self) -> Errno {
        if self == Self::Contradiction { Errno::Einval } else { Errno::Ebusy }
    }

    /// In words, after "2 vertices are".
    pub fn text(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Constraint => "ruled out by the constraint",
            Self::Held => "held",
            Self::Exclusive => "not free for exclusive use",
            Self::TooSmall => "too small",
            Self::Aggregate => "too full below",
            Self::Below => "left with too little below",
            Self::Contradiction => "asked for as shared within something exclusive",
        }
    }
}

/// Whether waiting helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It can be met now.
    Fits,
    /// What it finds now is not exclusive, so that there is nothing to book.
    NothingExclusive,
    /// It can be met once jobs have ended.
    Busy,
    /// It can be met only once something comes up that is down.
    Down,
    /// It can't be met on this graph.
    Unsatisfiable,
}

/// What is missing: of a type, how much is asked for at least, and how much was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shortage {
    /// The type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// How much is asked for at least.
    pub wanted: u64,
    /// How much of it can be used.
    pub found: u64,
}

/// Vertices of one type that are out for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The reason.
    pub reason: Reason,
    /// How many there are.
    pub count: u64,
    /// How many vertices of the type the graph has.
    pub of: u64,
    /// The first time, in seconds, at which the reason is gone for one of them; none when that is not
    /// known.
    pub until: Option<i64>,
    /// Paths of some of them, in order of the graph.
    pub examples: Vec<String>,
}

/// Why a request is not met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WhyNot {
    /// Whether waiting helps.
    pub verdict: Verdict,
    /// When it could start as things are booked, in seconds; none when that is not known or never.
    pub earliest: Option<i64>,
    /// What is missing at the topmost choice that failed.
    pub missing: Vec<Shortage>,
    /// Which vertices are out, by type and reason. For an unsatisfiable request: even when all were free
    /// and up.
    pub refused: Vec<Refused>,
}

impl Engine {
    /// Says why a request is not met at `now` (seconds). Nothing is booked, and no later answer changes.
    ///
    /// Of a request with alternatives the last one is explained. Errors: those of
    /// [`Engine::match_job`] for a request that makes no sense.
    pub fn why_not(&self, spec: &Jobspec, now: i64) -> Result<WhyNot, Failure> {
        if spec.resources.is_empty() || self.root().is_none() {
            return Err(Failure::new(Errno::Einval, "the request asks for nothing"));
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
            books: &self.books,
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
        let mut times = self.books.aggregates(self.root()?)?.clone();
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
