//! The earliest planned start under constraints between Pods.
//!
//! Without them, a start is possible at the latest when everything with a planned end has left; with them, whoever is
//! waited for may have left too. So the times at which anything ends or begins are tried from the first with enough
//! resources on: each of them at first, then fewer and fewer, and the last one. Between a time that failed and one that
//! did not, an earlier one is looked for by halving.

use super::availability::Availability;
use super::filling::Work;
use super::plan::Plan;
use super::search::place;
use super::sweep::Sweep;
use crate::inventory::planned_end;
use crate::request::{Placement, Planned, Request};

/// Number of times that are tried one by one.
const EACH: usize = 32;
/// Maximum number of times tried.
const MOST: usize = 96;

/// The earliest start found at `from` or later; `from` is later than now.
pub(super) fn first_start(
    plan: &Plan<'_>,
    request: &Request,
    now: i64,
    from: i64,
    work: &mut Work,
) -> Option<Planned> {
    let inventory = plan.inventory;
    let loose = Plan::new(inventory, request, plan.policy).unconstrained();
    let mut sweep_work = Work::default();
    let resources = Sweep::new(&loose, request, now, from).run(i64::MAX, &mut sweep_work);
    work.visited += sweep_work.visited;
    let first = resources?.start;
    let mut times = vec![first];
    for id in inventory.order() {
        let holds = inventory.book(*id).into_iter().flat_map(|book| &book.holds);
        times.extend(
            holds
                .filter(|(_, held)| held.hold.until.is_some())
                .map(|(_, held)| planned_end(held.hold.until, now)),
        );
        let promises = inventory.reserved_on(*id).iter();
        times.extend(promises.flat_map(|entry| [entry.start, entry.end]).filter(|time| *time < i64::MAX));
    }
    times.retain(|time| *time >= first);
    times.sort_unstable();
    times.dedup();
    work.visited += times.len() as u64;
    let attempt = |at: usize, work: &mut Work| -> Option<Placement> {
        let start = times[at];
        let end = request.end(start).unwrap_or(i64::MAX);
        let mut own = Work::default();
        let placement = place(plan, &Availability::window(inventory, now, start, end), &mut own);
        work.visited += own.visited;
        placement
    };
    let (mut at, mut step, mut failed) = (0, 1, None);
    let mut tries = 0;
    let mut found = loop {
        tries += 1;
        if let Some(placement) = attempt(at, work) {
            break (at, placement);
        }
        if at + 1 >= times.len() || tries >= MOST {
            return None;
        }
        failed = Some(at);
        step = if tries < EACH { 1 } else { step * 2 };
        at = (at + step).min(times.len() - 1);
    };
    let mut low = failed.map_or(0, |failed| failed + 1);
    while low < found.0 {
        let middle = usize::midpoint(low, found.0);
        match attempt(middle, work) {
            Some(placement) => found = (middle, placement),
            None => low = middle + 1,
        }
    }
    let start = times[found.0];
    Some(Planned { start, end: request.end(start), placement: found.1, assumed: false })
}
