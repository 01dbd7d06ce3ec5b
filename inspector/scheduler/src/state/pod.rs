//! What Pods hold, and what they ask for together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::constraint::NodeConstraint;
use crate::model::{PodSpec, SharedStr};
use crate::request::Shape;
use crate::resources::ResourceList;

/// What a Pod holds, where it can be said; one whose needs can't be said holds a place all the same.
pub(super) fn needs(pod: &PodSpec) -> Arc<ResourceList> {
    match &pod.needs {
        Ok(needs) => needs.clone(),
        Err(_) => Arc::new([("pods".into(), 1)].into_iter().collect()),
    }
}

/// The same shapes, but on none of these nodes.
pub(super) fn avoiding(mut shapes: Vec<Shape>, nodes: &BTreeSet<SharedStr>) -> Vec<Shape> {
    if !nodes.is_empty() {
        for shape in &mut shapes {
            let constraint = NodeConstraint { avoided: nodes.clone(), ..(*shape.constraint).clone() };
            shape.constraint = Arc::new(constraint);
        }
    }
    shapes
}

/// Members that ask for the same become one shape; shapes and their members keep the order of names.
pub(super) fn shapes(members: &[Arc<PodSpec>]) -> Vec<Shape> {
    let mut shapes: Vec<Shape> = Vec::new();
    let mut known = BTreeMap::new();
    for pod in members {
        let needs = needs(pod);
        let key = (needs.clone(), pod.constraint.clone(), pod.ports.clone());
        let index = *known.entry(key).or_insert(shapes.len());
        match shapes.get_mut(index) {
            Some(shape) => shape.count += 1,
            None => shapes.push(Shape {
                count: 1,
                needs,
                constraint: pod.constraint.clone(),
                ports: pod.ports.clone(),
            }),
        }
    }
    shapes
}

/// When a bound Pod is planned to give back what it holds: what was written into it at the binding, else its
/// own time limit; and no later than the end of its grace period once the Pod is being deleted.
pub(super) fn planned_release(pod: &PodSpec) -> Option<i64> {
    let planned = match &pod.record {
        Some(record) => record.planned_end,
        None => pod.active_deadline.and_then(|limit| pod.scheduled_at.map(|at| at.saturating_add(limit))),
    };
    [planned, pod.deletes_at].into_iter().flatten().min()
}
