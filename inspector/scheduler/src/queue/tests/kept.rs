//! Reservations that are kept from one pass to the next, against the loop that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::super::*;
use super::incremental::{World, round};
use super::random::{Decisions, config, inventory, nothing_is_promised_twice, request, request_of, start};
use crate::inventory::Inventory;
use crate::placement::{earliest, place_now, still_free};
use crate::request::{Planned, Request};
use crate::testing::sound;

/// What is promised: to whom, with what priority and for what request.
type Promises = BTreeMap<u32, (i64, Arc<Request>, Planned)>;

/// The definition, with nothing remembered but what was promised. The reservations of jobs that still wait are in the
/// books. Answers what is decided, and who lost his reservation to others.
fn definition(
    books: &mut Inventory,
    config: &QueueConfig,
    jobs: &[PassJob],
    promises: &mut Promises,
    (now, mut changed): (i64, bool),
) -> (Decisions, BTreeSet<u32>) {
    let (mut done, mut yielded) = (Decisions::default(), BTreeSet::new());
    let waiting: BTreeSet<u32> = jobs.iter().map(|job| job.id).collect();
    promises.retain(|id, _| {
        let waits = waiting.contains(id);
        changed |= !waits;
        if !waits {
            books.clear_reservation(*id);
        }
        waits
    });
    for (at, job) in jobs.iter().enumerate() {
        let request = request_of(job, config);
        let policy = config.node_policy;
        let mut give_way = |books: &mut Inventory, who: &dyn Fn(&PassJob) -> bool| {
            for other in jobs[at + 1..].iter().filter(|other| who(other)) {
                if books.reservation(other.id).is_some() {
                    books.clear_reservation(other.id);
                    yielded.insert(other.id);
                }
            }
        };
        let kept = promises.remove(&job.id).filter(|(priority, asked, _)| {
            let same = job.priority <= *priority && *asked == job.request;
            if !same {
                books.clear_reservation(job.id);
            }
            same
        });
        if let Some((priority, asked, planned)) = kept {
            if books.reservation(job.id).is_some() && !changed && planned.start > now {
                promises.insert(job.id, (priority, asked, planned));
                continue;
            }
            books.clear_reservation(job.id);
            let again = match earliest(books, &request, now, policy) {
                Ok(first) if first.start < planned.start.max(now + 1) => Some(first),
                _ => {
                    let until = request.end(planned.start).unwrap_or(i64::MAX);
                    still_free(books, &request, (&planned, until), now, policy)
                }
            };
            match again {
                Some(first) if first.start <= now => {
                    start(books, job, config, &first.placement, now);
                    done.started.push((job.id, first.placement));
                    continue;
                }
                Some(first) => {
                    books.promise(job.id, &request, &first, config.assumed_duration);
                    promises.insert(job.id, (job.priority, job.request.clone(), first.clone()));
                    done.reserved.push((job.id, first));
                    continue;
                }
                None => give_way(books, &|_| true),
            }
        } else if place_now(books, &request, now, policy).is_err() {
            give_way(books, &|other| other.priority < job.priority);
        }
        match earliest(books, &request, now, policy) {
            Ok(first) if first.start <= now => {
                start(books, job, config, &first.placement, now);
                done.started.push((job.id, first.placement));
            }
            Ok(first) => {
                books.promise(job.id, &request, &first, config.assumed_duration);
                promises.insert(job.id, (job.priority, job.request.clone(), first.clone()));
                done.reserved.push((job.id, first));
            }
            Err(_) => {}
        }
    }
    (done, yielded)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn reservations_are_kept_as_defined_and_move_later_only_for_a_reason(
        books in inventory(),
        config in config(),
        distinct in prop::collection::vec(request(), 1..6),
        rounds in prop::collection::vec(round(), 2..10),
    ) {
        let config = QueueConfig {
            policy: QueuePolicy::Conservative,
            planning: Planning::Compress,
            queue_depth: 1_000,
            ..config
        };
        let mut world = World {
            books, now: 0, queues: vec![config.clone()], waiting: vec![vec![]], memory: vec![Arc::default()], next: 0,
        };
        let mut promises = Promises::new();
        for (arriving, changes, seconds, budget) in rounds {
            world.now += seconds;
            world.books.prolong(world.now);
            for change in &changes {
                world.apply(change);
            }
            for (pick, priority, first) in arriving {
                world.next += 1;
                let request: Arc<Request> = Arc::new(distinct[pick % distinct.len()].clone());
                let priority = i64::try_from(priority).unwrap();
                // Those that come late may have been created early.
                let before = |other: &PassJob| if first { other.priority > priority } else { other.priority >= priority };
                let at = world.waiting[0].partition_point(before);
                world.waiting[0].insert(at, PassJob { id: world.next, priority, request });
            }
            let changed = world.books.disturbed(world.now);
            world.books.settle();
            let before = promises.clone();
            let mut wanted_books = world.books.clone();
            let jobs = world.waiting[0].clone();
            let (wanted, yielded) =
                definition(&mut wanted_books, &config, &jobs, &mut promises, (world.now, changed));
            let decided = world.pass_on(budget, changed).remove(0);
            sound(&world.books);
            world.waiting[0].retain(|job| decided.started.iter().all(|(id, _)| *id != job.id));
            prop_assert_eq!(&decided.started, &wanted.started);
            prop_assert_eq!(&decided.reserved, &wanted.reserved);
            let planned = |books: &Inventory| -> Vec<_> {
                books.reservations().map(|(id, promise)| (id, promise.start, promise.placement.clone())).collect()
            };
            prop_assert_eq!(planned(&world.books), planned(&wanted_books));
            prop_assert_eq!(world.books.reservations().count(), promises.len());
            for (id, (.., now)) in &promises {
                let Some((.., then)) = before.get(id) else { continue };
                // Something happened, a planned start was missed, or it gave way.
                let reason = changed || then.start <= world.now || yielded.contains(id);
                prop_assert!(now.start <= then.start || reason, "{} from {} to {}", id, then.start, now.start);
            }
            if !changed {
                nothing_is_promised_twice(&world.books, world.now);
            }
        }
    }
}
