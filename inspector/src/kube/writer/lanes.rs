//! Queued writes: one lane per object, which preserves order, and bindings first.
//!
//! Bounded: an effect replaces an earlier one with the same key, and Events beyond a limit are dropped.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use fluxion_scheduler::event::Effect;
use fluxion_scheduler::model::SharedStr;

/// Maximum number of queued Kubernetes Events; more are dropped.
const NOTES_MAX: usize = 10_000;
/// One in so many writes is not a binding, so that bindings can't starve other writes.
const TURN_OF_OTHERS: u32 = 8;

/// One queued effect.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) lane: SharedStr,
    pub(super) effect: Effect,
    /// The term in which it was requested; none if we had no right to write then.
    pub(super) term: Option<u64>,
    /// When it was first requested.
    pub(super) since: Instant,
}

#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<Work>,
    busy: bool,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: HashMap<SharedStr, Lane>,
    /// Lanes whose first effect may be sent, by priority.
    bindings: VecDeque<SharedStr>,
    others: VecDeque<SharedStr>,
    waiting: usize,
    notes: usize,
    busy: usize,
    picks: u32,
}

impl Lanes {
    /// Queues an effect that was requested in this term; false if it was dropped.
    pub(super) fn push(&mut self, effect: Effect, term: Option<u64>) -> bool {
        let Some(about) = about(&effect) else { return true };
        let is_note = matches!(effect, Effect::Note { .. });
        let key = effect.key();
        let lane = self.lanes.entry(about.clone()).or_default();
        if let Some(earlier) = lane.waiting.iter_mut().find(|work| work.effect.key() == key) {
            (earlier.effect, earlier.term) = (effect, term);
            return true;
        }
        if is_note && self.notes >= NOTES_MAX {
            return false;
        }
        self.notes += usize::from(is_note);
        self.waiting += 1;
        lane.waiting.push_back(Work { lane: about.clone(), effect, term, since: Instant::now() });
        if lane.waiting.len() == 1 && !lane.busy {
            self.line_up(about);
        }
        true
    }

    /// The next effect to send; its lane is blocked until [`Self::done`].
    pub(super) fn pop(&mut self) -> Option<Work> {
        self.picks = self.picks.wrapping_add(1);
        let (first, second) = if self.picks.is_multiple_of(TURN_OF_OTHERS) {
            (&mut self.others, &mut self.bindings)
        } else {
            (&mut self.bindings, &mut self.others)
        };
        let name = first.pop_front().or_else(|| second.pop_front())?;
        let lane = self.lanes.get_mut(&name)?;
        let work = lane.waiting.pop_front()?;
        lane.busy = true;
        self.busy += 1;
        self.waiting -= 1;
        self.notes -= usize::from(matches!(work.effect, Effect::Note { .. }));
        Some(work)
    }

    /// The effect of that lane was sent.
    pub(super) fn done(&mut self, name: &SharedStr) {
        self.busy = self.busy.saturating_sub(1);
        let Some(lane) = self.lanes.get_mut(name) else { return };
        lane.busy = false;
        if lane.waiting.is_empty() {
            self.lanes.remove(name);
        } else {
            self.line_up(name.clone());
        }
    }

    /// Whether [`Self::pop`] would return an effect.
    pub(super) fn ready(&self) -> bool {
        !(self.bindings.is_empty() && self.others.is_empty())
    }

    /// Number of queued effects.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// Number of effects being sent.
    pub(super) fn busy(&self) -> usize {
        self.busy
    }

    fn line_up(&mut self, name: SharedStr) {
        let first = self.lanes.get(&name).and_then(|lane| lane.waiting.front());
        match first.map(|work| &work.effect) {
            Some(Effect::Bind { .. }) => self.bindings.push_back(name),
            Some(_) => self.others.push_back(name),
            None => {}
        }
    }
}

/// The object of an effect, which determines its lane; none if it is not written to the API server.
fn about(effect: &Effect) -> Option<SharedStr> {
    match effect {
        Effect::Bind { pod, .. }
        | Effect::Unscheduled { pod, .. }
        | Effect::Reserved { pod, .. }
        | Effect::Evict { pod, .. } => Some(pod.uid.clone()),
        Effect::Delete { object, .. }
        | Effect::Resume { object }
        | Effect::SelectNode { claim: object, .. }
        | Effect::DeselectNode { claim: object, .. }
        | Effect::ReserveVolume { volume: object, .. }
        | Effect::FreeVolume { volume: object, .. } => Some(object.uid.clone()),
        Effect::GroupScheduled { group, .. } | Effect::GroupStatus { group, .. } => Some(group.uid.clone()),
        Effect::Note { regarding, .. } => Some(regarding.uid.clone()),
        Effect::Journal(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use fluxion_scheduler::model::{AllocationRecord, ObjectRef};

    use super::*;

    fn object(uid: &str) -> ObjectRef {
        let (namespace, kind, api_version) = ("a".into(), "Pod".into(), "v1".into());
        ObjectRef { namespace, kind, api_version, name: uid.into(), uid: uid.into() }
    }

    fn bind(uid: &str) -> Effect {
        let record =
            AllocationRecord { job: "pod.x".into(), start: 0, planned_end: None, size: 1, pin: None };
        Effect::Bind { pod: object(uid), node: "n1".into(), record }
    }

    fn note(uid: &str, note: &str) -> Effect {
        let (reason, action, note) = ("R", "A", note.to_owned());
        Effect::Note { regarding: object(uid), warning: false, reason, action, note }
    }

    fn unscheduled(uid: &str, message: &str) -> Effect {
        Effect::Unscheduled { pod: object(uid), reason: "R", message: message.to_owned() }
    }

    #[test]
    fn bindings_go_first_and_an_object_keeps_its_order() {
        let mut lanes = Lanes::default();
        for effect in [note("a", "1"), bind("a"), unscheduled("b", "x"), bind("c")] {
            assert!(lanes.push(effect, Some(1)));
        }
        let mut order = Vec::new();
        while let Some(work) = lanes.pop() {
            order.push(work.effect.key());
            lanes.done(&work.lane);
        }
        assert_eq!(order, ["bind/c", "note/a/R/1", "bind/a", "unscheduled/b"]);
        assert!(lanes.lanes.is_empty() && lanes.len() == 0 && lanes.busy() == 0);
    }

    #[test]
    fn one_effect_of_an_object_is_under_way_at_a_time_and_the_latest_wish_replaces() {
        let mut lanes = Lanes::default();
        lanes.push(unscheduled("a", "first"), Some(1));
        let under_way = lanes.pop().unwrap();
        lanes.push(unscheduled("a", "second"), Some(1));
        lanes.push(unscheduled("a", "third"), Some(2));
        assert!(lanes.pop().is_none() && !lanes.ready());
        lanes.done(&under_way.lane);
        let latest = lanes.pop().unwrap();
        assert_eq!((latest.effect, latest.term), (unscheduled("a", "third"), Some(2)));
        assert_eq!(lanes.len(), 0);
    }

    #[test]
    fn others_get_their_turn_in_a_flood_of_bindings() {
        let mut lanes = Lanes::default();
        lanes.push(note("n", "1"), Some(1));
        for number in 0..20 {
            lanes.push(bind(&number.to_string()), Some(1));
        }
        let first: Vec<_> = (0..8).map(|_| lanes.pop().unwrap().effect.key()).collect();
        assert!(first.contains(&"note/n/R/1".to_owned()), "{first:?}");
    }

    #[test]
    fn too_many_events_are_dropped_and_nothing_else_is() {
        let mut lanes = Lanes::default();
        for number in 0..NOTES_MAX {
            assert!(lanes.push(note("a", &number.to_string()), Some(1)) || number > NOTES_MAX);
            if number == 50 {
                break;
            }
        }
        lanes.notes = NOTES_MAX;
        assert!(!lanes.push(note("b", "one too many"), Some(1)));
        assert!(lanes.push(bind("b"), Some(1)));
    }
}
