//! Allocations and total requests of Pods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::constraint::NodeConstraint;
use crate::inventory::{Allocation, AllocationKind};
use crate::job::JobId;
use crate::model::{PodSpec, SharedStr};
use crate::request::Shape;
use crate::resources::ResourceList;
use crate::state::State;

/// A Pod's allocation, if it can be determined; otherwise, it still counts as one Pod.
pub(super) fn needs(pod: &PodSpec) -> Arc<ResourceList> {
    match &pod.needs {
        Ok(needs) => needs.clone(),
        Err(_) => Arc::new([("pods".into(), 1)].into_iter().collect()),
    }
}

/// The same shapes, excluding these nodes.
pub(super) fn avoiding(mut shapes: Vec<Shape>, nodes: &BTreeSet<SharedStr>) -> Vec<Shape> {
    if !nodes.is_empty() {
        for shape in &mut shapes {
            let constraint = NodeConstraint { avoided: nodes.clone(), ..(*shape.constraint).clone() };
            shape.constraint = Arc::new(constraint);
        }
    }
    shapes
}

/// What a member holds on the node where it was placed, until it is observed there. `release` is its end, if it has one, and
/// whether that is assumed.
pub(super) fn share(pod: &PodSpec, job: JobId, from: i64, release: (Option<i64>, bool)) -> Allocation {
    let (until, end_assumed) = release;
    Allocation {
        needs: needs(pod),
        ports: pod.ports.clone(),
        from,
        until,
        end_assumed,
        kind: AllocationKind::Assumed,
        permanent: false,
        job: Some(job.0),
        peer: Some(Arc::new(pod.peer())),
    }
}

impl State {
    /// Groups members with equal requests into shapes; shapes and their members are ordered by name.
    pub(super) fn shapes(&self, members: &[Arc<PodSpec>]) -> Vec<Shape> {
        let mut shapes: Vec<Shape> = Vec::new();
        let mut known = BTreeMap::new();
        for pod in members {
            let (needs, (constraint, peer)) = (needs(pod), self.placing(pod));
            let key = (needs.clone(), constraint.clone(), pod.ports.clone(), peer.clone(), &pod.preferences);
            let index = *known.entry(key).or_insert(shapes.len());
            match shapes.get_mut(index) {
                Some(shape) => shape.count += 1,
                None => shapes.push(Shape {
                    count: 1,
                    needs,
                    constraint,
                    ports: pod.ports.clone(),
                    peer,
                    preferences: pod.preferences.clone(),
                }),
            }
        }
        shapes
    }
}

/// When a bound Pod is planned to release its resources: according to its allocation record, else its own time limit;
/// at the latest at the end of its grace period if it is being deleted.
pub(super) fn planned_release(pod: &PodSpec) -> Option<i64> {
    let planned = match &pod.record {
        Some(record) => record.planned_end,
        None => pod.active_deadline.and_then(|limit| pod.scheduled_at.map(|at| at.saturating_add(limit))),
    };
    [planned, pod.deletes_at].into_iter().flatten().min()
}
