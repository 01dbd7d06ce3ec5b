//! The smallest changes to a request that would let it start now, or run at all. Each was tried at the job's position in
//! its queue.

use std::sync::Arc;

use fluxion_scheduler::constraint::words;
use fluxion_scheduler::request::{Request, Shape};
use fluxion_scheduler::state::Trial;
use fluxion_text::quantity;

/// Maximum suggested time limit (100 years in seconds).
const LONGEST: i64 = 100 * 365 * 86_400;

/// Changes that help; for a job that can `never` run, this includes changes that would let it run later.
pub(super) fn suggestions(trial: &Trial, request: &Request, never: bool) -> Vec<String> {
    let suggest = Suggest { trial, request, never };
    if !never && suggest.starts(request) {
        return Vec::new();
    }
    let mut found: Vec<String> = Vec::new();
    found.extend(suggest.shorter());
    found.extend(suggest.fewer());
    found.extend(suggest.smaller());
    found.extend(suggest.elsewhere());
    found.extend(suggest.apart());
    found
}

struct Suggest<'a> {
    trial: &'a Trial,
    request: &'a Request,
    never: bool,
}

impl Suggest<'_> {
    fn starts(&self, request: &Request) -> bool {
        self.trial.start(request).is_some()
    }

    /// The effect of a change, if any.
    fn outcome(&self, request: &Request) -> Option<&'static str> {
        if self.starts(request) {
            Some("it could start now")
        } else if self.never && self.trial.possible(request) {
            Some("it could run")
        } else {
            None
        }
    }

    /// The largest number from 1 to below `limit` whose request has the same outcome as 1.
    fn largest(&self, limit: u64, with: impl Fn(u64) -> Request) -> Option<(u64, &'static str)> {
        if limit <= 1 {
            return None;
        }
        let outcome = self.outcome(&with(1))?;
        let (mut good, mut bad) = (1, limit);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            if self.outcome(&with(middle)) == Some(outcome) {
                good = middle;
            } else {
                bad = middle;
            }
        }
        Some((good, outcome))
    }

    fn shorter(&self) -> Option<String> {
        if self.never {
            return None;
        }
        let limit = self.request.duration.map_or(LONGEST, |seconds| seconds.min(LONGEST));
        let with = |seconds: u64| Request { duration: i64::try_from(seconds).ok(), ..self.request.clone() };
        let (seconds, outcome) = self.largest(u64::try_from(limit).ok()?, with)?;
        Some(format!("with a time limit of {seconds}s, {outcome}"))
    }

    fn fewer(&self) -> Option<String> {
        let needed = self.request.needed();
        let with = |members: u64| Request { minimum: u32::try_from(members).ok(), ..self.request.clone() };
        let (members, outcome) = self.largest(needed, with)?;
        let noun = if members == 1 { "member" } else { "members" };
        Some(format!("with {members} {noun} instead of {needed}, {outcome}"))
    }

    /// Less of one resource per member, if all members request the same.
    fn smaller(&self) -> Vec<String> {
        let [shape] = self.request.shapes.as_slice() else { return Vec::new() };
        let each = if self.request.slots() > 1 { " per member" } else { "" };
        let less = |resource: &Arc<str>, need: u64| {
            let with = |quantity: u64| {
                let mut needs = (*shape.needs).clone();
                needs.set(resource.clone(), quantity);
                Request {
                    shapes: vec![Shape { needs: Arc::new(needs), ..shape.clone() }],
                    ..self.request.clone()
                }
            };
            if let Some((quantity, outcome)) = self.largest(need, with) {
                let (quantity, need) = quantity::compared(resource, quantity, need);
                return Some(format!("with {quantity} {resource} instead of {need}{each}, {outcome}"));
            }
            // That a device is not needed at all is no news to whom it is only taken from for now.
            let outcome = self.outcome(&with(0)).filter(|_| self.never)?;
            Some(format!("without {resource}, {outcome}"))
        };
        let asked = shape.needs.iter().filter(|(resource, need)| *need > 0 && resource.as_ref() != "pods");
        asked.filter_map(|(resource, need)| less(resource, need)).collect()
    }

    /// Without one label of the selector, or else the affinity, or else all of it.
    fn elsewhere(&self) -> Option<String> {
        let keys = self.request.shapes.iter().flat_map(|shape| &shape.constraint.selector);
        let mut pairs: Vec<(Arc<str>, Arc<str>)> = keys.map(|(k, v)| (k.clone(), v.clone())).collect();
        pairs.sort();
        pairs.dedup();
        let bound = self.request.shapes.iter().any(|shape| shape.constraint.affinity.is_some());
        for (key, value) in &pairs {
            let free = self.without(|known, wanted| known == key && wanted == value, false);
            if let Some(outcome) = self.outcome(&free) {
                return Some(format!("without its node selector {}, {outcome}", words::pair(key, value)));
            }
        }
        if bound && let Some(outcome) = self.outcome(&self.without(|_, _| false, true)) {
            return Some(format!("without its node affinity, {outcome}"));
        }
        let several = pairs.len() + usize::from(bound) > 1;
        let outcome = self.outcome(&self.without(|_, _| true, true)).filter(|_| several)?;
        let mut all: Vec<String> = pairs.iter().map(|(key, value)| words::pair(key, value)).collect();
        all.extend(bound.then(|| "affinity".to_owned()));
        Some(format!("without its node selector ({}), {outcome}", all.join(", ")))
    }

    fn without(&self, drop: impl Fn(&Arc<str>, &Arc<str>) -> bool, affinity: bool) -> Request {
        let mut free = self.request.clone();
        for shape in &mut free.shapes {
            let mut constraint = (*shape.constraint).clone();
            constraint.selector.retain(|key, value| !drop(key, value));
            if affinity {
                constraint.affinity = None;
            }
            shape.constraint = Arc::new(constraint);
        }
        free
    }

    fn apart(&self) -> Option<String> {
        let level = self.request.level.as_ref()?;
        let anywhere = Request { level: None, domain: None, ..self.request.clone() };
        let outcome = self.outcome(&anywhere)?;
        Some(format!("without requiring all members in one {level}, {outcome}"))
    }
}
