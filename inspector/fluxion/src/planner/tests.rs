//! The planner against a model that keeps a list of spans and adds them up.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;
use crate::graph::TypeId;

#[derive(Default)]
struct Model {
    total: u64,
    spans: Vec<(SpanId, i64, i64, u64)>,
}

impl Model {
    fn free_at(&self, time: i64) -> u64 {
        let booked: u64 = self.spans.iter().filter(|s| s.1 <= time && time < s.2).map(|s| s.3).sum();
        self.total - booked
    }

    fn min(&self, start: i64, duration: i64) -> u64 {
        (start..start + duration).map(|time| self.free_at(time)).min().unwrap()
    }

    fn times(&self, not_before: i64, duration: i64, amount: u64) -> Vec<i64> {
        let mut times: Vec<i64> = self.spans.iter().flat_map(|s| [s.1, s.2]).chain([0]).collect();
        times.sort_unstable();
        times.dedup();
        times.retain(|&t| t >= not_before && self.min(t, duration) >= amount);
        times
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add(i64, i64, u64),
    Remove(prop::sample::Index),
    Reduce(prop::sample::Index, u64),
    Times(i64, i64, u64, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..40_i64, 1..20_i64, 0..9_u64).prop_map(|(s, d, n)| Step::Add(s, d, n)),
        1 => any::<prop::sample::Index>().prop_map(Step::Remove),
        1 => (any::<prop::sample::Index>(), 0..9_u64).prop_map(|(i, n)| Step::Reduce(i, n)),
        1 => (0..40_i64, 1..20_i64, 0..9_u64, 0..5_usize).prop_map(|(t, d, n, k)| Step::Times(t, d, n, k)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn agrees_with_a_list_of_spans(steps in prop::collection::vec(step(), 1..60)) {
        let mut planner = Planner::new(8);
        let mut model = Model { total: 8, spans: Vec::new() };
        for step in steps {
            match step {
                Step::Add(start, duration, amount) => {
                    let fits = amount <= 8 && model.min(start, duration) >= amount;
                    let added = planner.add(start, duration, amount);
                    prop_assert_eq!(added.is_ok(), fits);
                    if let Ok(id) = added {
                        model.spans.push((id, start, start + duration, amount));
                    }
                }
                Step::Remove(pick) if !model.spans.is_empty() => {
                    let at = pick.index(model.spans.len());
                    let (id, ..) = model.spans.remove(at);
                    prop_assert!(planner.remove(id).is_ok());
                    prop_assert!(planner.remove(id).is_err());
                }
                Step::Reduce(pick, amount) if !model.spans.is_empty() => {
                    let at = pick.index(model.spans.len());
                    let (id, _, _, held) = model.spans[at];
                    let outcome = planner.reduce(id, amount);
                    match amount.cmp(&held) {
                        Ordering::Equal => {
                            prop_assert_eq!(outcome, Ok(Reduced::Removed));
                            model.spans.remove(at);
                        }
                        Ordering::Less => {
                            prop_assert_eq!(outcome, Ok(Reduced::Kept));
                            model.spans[at].3 -= amount;
                        }
                        Ordering::Greater => prop_assert_eq!(outcome, Err(Errno::Einval)),
                    }
                }
                Step::Times(not_before, duration, amount, take) => {
                    let wanted = model.times(not_before, duration, amount);
                    let mut got = Vec::new();
                    let mut next = planner.first_time(not_before, duration, amount);
                    while let Ok(time) = next {
                        got.push(time);
                        if got.len() > take { break }
                        next = planner.next_time();
                    }
                    let shown = wanted.len().min(take + 1);
                    prop_assert_eq!(&got, &wanted[..shown]);
                }
                Step::Remove(_) | Step::Reduce(..) => {}
            }
            prop_assert!(planner.consistent());
            for time in 0..70 {
                prop_assert_eq!(planner.remaining_at(time), model.free_at(time));
                prop_assert_eq!(planner.min_during(time, 7).unwrap(), model.min(time, 7));
            }
            for (from, amount) in [(0, 1), (0, 5), (12, 3), (30, 9)] {
                let shorts: Vec<_> = planner.shorts(from, amount).collect();
                prop_assert!(shorts.windows(2).all(|pair| pair[0].1 < pair[1].0));
                // Without a point everything is free at all times, also what there is not.
                for time in (from..70).filter(|_| !planner.points().is_empty()) {
                    let short = shorts.iter().any(|&(start, end)| start <= time && time < end);
                    prop_assert_eq!(short, model.free_at(time) < amount);
                }
            }
        }
        for (id, ..) in model.spans {
            planner.remove(id).unwrap();
        }
        prop_assert!(planner.points().len() <= 1);
    }
}

#[test]
fn the_time_index_lags_behind_a_grown_total_only_when_told_to() {
    for (lag, first) in [(true, 7200), (false, 3600)] {
        let mut planner = Planner::new(36);
        planner.add(0, 3600, 36).unwrap();
        planner.add(3600, 3600, 36).unwrap();
        planner.set_total(72, lag);
        assert_eq!(planner.min_during(3600, 3600), Ok(36));
        assert_eq!(planner.first_time(1, 3600, 36), Ok(first), "lag {lag}");
    }
}

#[test]
fn refuses_what_reaches_beyond_the_end_of_time() {
    let mut planner = Planner::new(1);
    assert_eq!(planner.min_during(i64::MAX, 1), Err(Errno::Erange));
    assert_eq!(planner.add(i64::MAX, 1, 1), Err(Errno::Einval));
    assert_eq!(planner.min_during(0, 0), Err(Errno::Einval));
    assert_eq!(planner.first_time(0, 1, 2), Err(Errno::Erange));
    assert_eq!(planner.first_time(5, 1, 1), Err(Errno::Enoent));
}

#[test]
fn several_quantities_are_booked_together_or_not_at_all() {
    let (core, gpu) = (TypeId(1), TypeId(3));
    let mut multi = MultiPlanner::new([(core, 4), (gpu, 1)]);
    let want = |cores, gpus| move |of| if of == core { cores } else { gpus };
    let first = multi.add(0, 10, want(3, 1)).unwrap();
    assert_eq!(multi.add(5, 10, want(1, 1)), Err(Errno::Einval));
    assert_eq!(multi.planner(core).unwrap().remaining_at(5), 1);
    assert_eq!(multi.first_time(1, 5, want(1, 1)), Ok(10));
    assert_eq!(multi.reduce(first, want(3, 0)), Ok(Reduced::Kept));
    assert_eq!(multi.amount(first, gpu), 1);
    assert_eq!(multi.reduce(first, want(0, 1)), Ok(Reduced::Removed));
    assert_eq!(multi.span_count(), 0);
}
