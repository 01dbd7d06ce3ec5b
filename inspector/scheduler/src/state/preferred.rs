//! Which preferences of a job's members are met where they are, or are planned to be.

use crate::constraint::Peer;
use crate::explain::{Placed, PreferenceMet, preferences};
use crate::job::Job;
use crate::state::State;

/// Maximum number of members looked at.
const MEMBERS: usize = 1_000;

impl State {
    /// The preferences of the members that have a node, or of the job's reservation, as of now. Only the first 1,000
    /// members are looked at.
    pub fn preferences(&self, job: &Job) -> Vec<PreferenceMet> {
        let pods = job.pods.iter().filter_map(|uid| self.pod(uid)).filter(|pod| !pod.phase.ended());
        let placed: Vec<_> = pods.filter_map(|pod| Some((pod, self.node_of(pod)?))).take(MEMBERS).collect();
        let members = placed.iter().map(|(pod, node)| Placed {
            holder: Some(&pod.uid),
            node,
            constraint: &pod.constraint,
            preferences: pod.preferences.as_deref(),
            peer: pod.peer(),
        });
        let mut members: Vec<Placed<'_>> = members.collect();
        if let (true, Some(request), Some(promise)) =
            (members.is_empty(), job.request.as_deref(), self.inventory.reservation(job.id.0))
        {
            for slot in &promise.placement.slots {
                let Some(shape) = request.shapes.get(slot.shape as usize) else { continue };
                let namespace = job.key.namespace.clone();
                let member = Placed {
                    holder: None,
                    node: &slot.node,
                    constraint: &shape.constraint,
                    preferences: shape.preferences.as_deref(),
                    peer: shape.peer.as_deref().cloned().unwrap_or(Peer { namespace, ..Peer::default() }),
                };
                let left = MEMBERS - members.len().min(MEMBERS);
                members.extend(std::iter::repeat_n(member, left.min(slot.count as usize)));
            }
        }
        preferences(&self.inventory, &members)
    }
}
