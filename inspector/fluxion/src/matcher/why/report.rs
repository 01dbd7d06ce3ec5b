//! From notes to a report, and the report in words.

use std::collections::BTreeSet;
use std::fmt;

use super::{Reason, Shortage, Verdict, WhyNot};
use crate::graph::{Graph, Subsystem, VertexId};
use crate::matcher::exact::{Missing, Note, Notes};

/// Paths named per type and reason, at most.
pub(super) const EXAMPLES: usize = 3;

impl Notes {
    /// What is missing, with the names of types.
    pub(super) fn missing_by_name(&self, graph: &Graph) -> Vec<Shortage> {
        let known = |missing: &&Missing| missing.type_id.index() < graph.type_count();
        let named = self.missing.iter().filter(known).map(|missing| Shortage {
            type_name: graph.type_name(missing.type_id).to_owned(),
            wanted: missing.wanted,
            found: missing.found,
        });
        named.collect()
    }

    /// All notes in order of the graph. A vertex with too little below is only too small when nothing
    /// below it is out for another reason.
    pub(super) fn judged(&self, graph: &Graph, subsystem: Subsystem) -> Vec<(VertexId, Note)> {
        let mut above_others: BTreeSet<VertexId> = BTreeSet::new();
        for (&id, note) in &self.turned_back {
            if note.reason == Reason::TooSmall {
                continue;
            }
            let mut open = vec![id];
            while let Some(id) = open.pop() {
                let parents = graph.parents(id, subsystem).map(|(_, parent)| parent);
                open.extend(parents.filter(|&parent| above_others.insert(parent)));
            }
        }
        let judge = |(&id, &note): (&VertexId, &Note)| {
            let small = note.reason == Reason::TooSmall && !note.summed;
            let reason = if small && above_others.contains(&id) { Reason::Below } else { note.reason };
            (id, Note { reason, ..note })
        };
        self.turned_back.iter().map(judge).collect()
    }
}

impl Verdict {
    /// In words, after "the request is".
    pub fn text(self) -> &'static str {
        match self {
            Self::Fits => "met now",
            Self::NothingExclusive => {
                "met now, but nothing in it is exclusive, so there is nothing to book: ask for a slot"
            }
            Self::Busy => "busy: it can be met once jobs have ended",
            Self::Down => "blocked: it can be met once something comes up that is down",
            Self::Unsatisfiable => "unsatisfiable: this graph can't meet it",
        }
    }
}

impl WhyNot {
    /// As one line of JSON.
    ///
    /// # Panics
    /// Never: a report has a form in JSON whatever it says.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("a report has only texts, numbers and lists of them")
    }
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.verdict.text())?;
        match (self.verdict, self.earliest) {
            (Verdict::Busy, Some(at)) => writeln!(f, "it could start at {at}")?,
            (Verdict::Busy, None) => writeln!(f, "no start can be planned")?,
            _ => {}
        }
        for Shortage { type_name, wanted, found } in &self.missing {
            writeln!(f, "{type_name}: {wanted} asked for, {found} found")?;
        }
        for refused in &self.refused {
            let (type_name, count, of) = (&refused.type_name, refused.count, refused.of);
            write!(f, "{type_name}: {count} of {of} {}", refused.reason.text())?;
            if let Some(until) = refused.until {
                write!(f, " until {until}")?;
            }
            let more = if count > refused.examples.len() as u64 { ", ..." } else { "" };
            writeln!(f, " ({}{more})", refused.examples.join(", "))?;
        }
        Ok(())
    }
}
