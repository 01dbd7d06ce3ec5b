//! The jobs of a queue that may start, in order, as a pass gets them. They are kept from one pass to the next; as long as
//! the graph is the same, only jobs that came or went are looked at.

use std::sync::Arc;

use fluxion_api::reason::Fact;
use imbl::OrdMap;

use crate::explain::why_never;
use crate::job::{JobId, JobState, Reason, ReasonClass};
use crate::placement;
use crate::queue::PassJob;
use crate::state::State;
use crate::state::pass_state::{Lineup, PassedOver};
use crate::state::waiting::OrderKey;

/// Maximum number of requests of which it is remembered whether they can be satisfied.
const VERDICTS: usize = 100_000;

impl State {
    /// The jobs of one queue that may start on this graph, in order. The lineup is to be put back.
    pub(super) fn lineup(&mut self, queue: usize) -> Lineup {
        let graph = self.inventory.graph_generation();
        let moved = self.waiting.take_moved(queue);
        let known = self.pass.lineups.remove(&queue).filter(|lineup| lineup.graph == graph);
        let Some((known, moved)) = known.zip(moved) else {
            let jobs = self.lineup_behind(queue, None);
            let told = Arc::new(vec![PassedOver::default(); jobs.len()]);
            return Lineup { graph, jobs: Arc::new(jobs), told };
        };
        if moved.is_empty() {
            return known;
        }
        let told = known.told;
        let mut known = Arc::unwrap_or_clone(known.jobs).into_iter().zip(told.iter().copied()).peekable();
        let mut wanted = Vec::with_capacity(told.len() + moved.len());
        for key in self.waiting.of(queue) {
            while known.next_if(|(job, _)| moved.contains(&JobId(job.id))).is_some() {}
            let same = known.next_if(|(job, _)| job.id == key.id.0);
            if same.is_some() || moved.contains(&key.id) {
                wanted.push((key.id, i64::from(key.priority.0), same));
            }
        }
        let entries = wanted.into_iter().filter_map(|(id, priority, same)| {
            same.or_else(|| Some((self.candidate(id, priority)?, PassedOver::default())))
        });
        let (jobs, told): (Vec<_>, Vec<_>) = entries.unzip();
        Lineup { graph, jobs: Arc::new(jobs), told: Arc::new(told) }
    }

    /// Forgets whatever passes have found out about requests, and what jobs were told. The next passes find it out anew, and
    /// decide and tell the same.
    pub fn forget_findings(&mut self) {
        self.pass.lineups = OrdMap::new();
        let memory = self.pass.memory.iter();
        self.pass.memory =
            memory.map(|(queue, known)| (queue.clone(), Arc::new(known.only_reservations()))).collect();
    }

    /// Only those behind one (none: all).
    pub(super) fn lineup_behind(&mut self, queue: usize, behind: Option<&OrderKey>) -> Vec<PassJob> {
        let waiting = self.waiting.behind(behind).filter(|key| key.queue == queue);
        let ids: Vec<(JobId, i64)> = waiting.map(|key| (key.id, key.priority.0.into())).collect();
        ids.into_iter().filter_map(|(id, priority)| self.candidate(id, priority)).collect()
    }

    /// A job, unless it can't be satisfied on this graph, which becomes its state. Jobs with equal requests get the same
    /// one.
    fn candidate(&mut self, id: JobId, priority: i64) -> Option<PassJob> {
        let graph = self.inventory.graph_generation();
        if self.pass.verdicts_of != graph || self.pass.verdicts.len() > VERDICTS {
            self.pass.verdicts = OrdMap::new();
            self.pass.verdicts_of = graph;
        }
        let job = self.jobs.get(id)?;
        let request = job.request.as_ref()?;
        let (request, verdict) = if let Some((request, verdict)) = self.pass.verdicts.get_key_value(request) {
            (request.clone(), verdict.clone())
        } else {
            let never = !placement::satisfiable(&self.inventory, request);
            let why = never.then(|| why_never(&self.inventory, request));
            let verdict = why.map(|why| Arc::new(self.reason_from(job, &why)));
            self.pass.verdicts.insert(request.clone(), verdict.clone());
            (request.clone(), verdict)
        };
        if job.checked != Some(graph) {
            let was = job.state;
            if let Some(job) = self.jobs.get_mut(id) {
                job.checked = Some(graph);
            }
            match &verdict {
                Some(reason) => self.settle(id, JobState::Unsatisfiable, Some((**reason).clone()), false),
                None if was == JobState::Unsatisfiable => {
                    let reason = Reason::new(ReasonClass::QueueOrder, Fact::InQueue);
                    self.settle(id, JobState::Pending, Some(reason), false);
                }
                None => {}
            }
        }
        verdict.is_none().then_some(PassJob { id: id.0, priority, request })
    }
}
