//! Allocations and reservations of a node as properties of its vertex, so that a written graph has room for the same
//! jobs as the cluster. Holders are anonymous, and those with the same end are merged.

use std::collections::BTreeMap;

use fluxion::graph::{Graph, VertexId};
use serde::{Deserialize, Serialize};

use super::Inventory;
use super::hold::planned_end;
use super::id::NodeId;
use crate::constraint::HostPort;
use crate::resources::ResourceList;

/// `share:N`, with N counting up on each node; label keys contain no colon.
pub(super) const SHARE: &str = "share:";

/// A part of a node that is not free for some time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Share {
    /// Seconds from the time of the graph; 0 if already held.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) from: i64,
    /// Seconds from the time of the graph; none without a planned end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<i64>,
    /// It never leaves the node.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) permanent: bool,
    /// The amounts.
    pub(crate) needs: ResourceList,
    /// Its host ports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ports: Vec<HostPort>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl Inventory {
    /// The properties that describe what is not free on a node, as of `now`.
    pub(super) fn shares(&self, id: NodeId, now: i64) -> Vec<(String, String)> {
        let mut all: BTreeMap<(i64, Option<i64>, bool), Share> = BTreeMap::new();
        let after = |time: i64| time.saturating_sub(now);
        let mut put = |from,
                       until,
                       permanent,
                       needs: &mut dyn Iterator<Item = (&std::sync::Arc<str>, u64)>,
                       ports: &[HostPort]| {
            let new = || Share { from, until, permanent, ..Share::default() };
            let share = all.entry((from, until, permanent)).or_insert_with(new);
            for (name, quantity) in needs {
                share.needs.add(name, quantity);
            }
            share.ports.extend_from_slice(ports);
        };
        for (_, held) in self.book(id).into_iter().flat_map(|book| &book.holds) {
            let hold = &held.hold;
            let until = hold.until.map(|_| after(planned_end(hold.until, now)));
            put(0, until, hold.permanent, &mut hold.needs.iter(), &hold.ports);
        }
        for entry in self.reserved_on(id) {
            let until = Some(entry.end).filter(|end| *end < i64::MAX).map(after);
            let mut needs = entry.needs.iter().map(|(kind, quantity)| (self.columns.name(*kind), *quantity));
            // A planned time that has passed is moved to the next second.
            put(after(entry.start).max(1), until, false, &mut needs, &entry.ports);
        }
        let written = all.values().zip(1..).map(|(share, number)| {
            let text = serde_json::to_string(share).expect("names and numbers have a form in JSON");
            (format!("{SHARE}{number}"), text)
        });
        written.collect()
    }
}

/// The shares described by a vertex, each with its property; malformed ones are ignored.
pub(crate) fn shares_of(graph: &Graph, id: VertexId) -> Vec<(String, Share)> {
    let read = |(key, value): (&str, &str)| {
        key.strip_prefix(SHARE)?;
        Some((key.to_owned(), serde_json::from_str(value).ok()?))
    };
    graph.properties(id).into_iter().filter_map(read).collect()
}
