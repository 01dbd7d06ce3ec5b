//! In which order lines stand.

use std::cmp::{Ordering, Reverse};

use fluxion_api::{FluxionJob, FluxionNode};

use crate::render::Amount;

/// Orders of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum JobOrder {
    /// As the queue takes them.
    #[default]
    Queue,
    Name,
    /// Youngest first.
    Age,
    Priority,
    State,
}

impl JobOrder {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Queue => Self::Name,
            Self::Name => Self::Age,
            Self::Age => Self::Priority,
            Self::Priority => Self::State,
            Self::State => Self::Queue,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue order",
            Self::Name => "name",
            Self::Age => "age",
            Self::Priority => "priority",
            Self::State => "state",
        }
    }

    pub(super) fn compare(self, a: &FluxionJob, b: &FluxionJob) -> Ordering {
        let place = |job: &FluxionJob| job.status.position.unwrap_or(u32::MAX);
        let age = |job: &FluxionJob| job.metadata.creation_timestamp.clone();
        let first = match self {
            Self::Queue => Ordering::Equal,
            Self::Name => natural(&a.spec.group.name, &b.spec.group.name),
            Self::Age => age(b).cmp(&age(a)),
            Self::Priority => b.spec.priority.cmp(&a.spec.priority),
            Self::State => a.status.state.cmp(&b.status.state),
        };
        first
            .then_with(|| a.has_ended().cmp(&b.has_ended()))
            .then_with(|| a.spec.queue.cmp(&b.spec.queue))
            .then_with(|| place(a).cmp(&place(b)))
            .then_with(|| Reverse(a.spec.priority).cmp(&Reverse(b.spec.priority)))
            .then_with(|| age(a).cmp(&age(b)))
            .then_with(|| a.metadata.namespace.cmp(&b.metadata.namespace))
            .then_with(|| natural(&a.metadata.name, &b.metadata.name))
    }
}

/// Orders of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NodeOrder {
    #[default]
    Name,
    /// Fullest first, by cpu.
    Used,
    /// Those that take no work first.
    Closed,
}

impl NodeOrder {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Name => Self::Used,
            Self::Used => Self::Closed,
            Self::Closed => Self::Name,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Used => "use",
            Self::Closed => "closed first",
        }
    }

    pub(super) fn compare(self, a: &FluxionNode, b: &FluxionNode) -> Ordering {
        let used = |node: &FluxionNode| {
            Amount::of(&node.status.allocated, "cpu").ratio(Amount::of(&node.status.allocatable, "cpu"))
        };
        let first = match self {
            Self::Name => Ordering::Equal,
            Self::Used => used(b).total_cmp(&used(a)),
            Self::Closed => a.status.eligible.cmp(&b.status.eligible),
        };
        first.then_with(|| natural(&a.metadata.name, &b.metadata.name))
    }
}

/// Compares names so that `n2` comes before `n10`.
pub(super) fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        match (digits(left), digits(right)) {
            (first, second) if first > 0 && second > 0 => {
                let (x, y) = (left[..first].trim_start_matches('0'), right[..second].trim_start_matches('0'));
                match x.len().cmp(&y.len()).then_with(|| x.cmp(y)) {
                    Ordering::Equal => (left, right) = (&left[first..], &right[second..]),
                    decided => return decided,
                }
            }
            _ => {
                let (mut x, mut y) = (left.chars(), right.chars());
                match (x.next(), y.next()) {
                    (None, None) => return a.cmp(b),
                    (one, other) if one != other => return one.cmp(&other),
                    _ => (left, right) = (x.as_str(), y.as_str()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count() {
        let mut names = ["n10", "n2", "n1", "a-3-x", "a-03-y", "n", "", "n02"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["", "a-3-x", "a-03-y", "n", "n1", "n02", "n2", "n10"]);
    }
}
