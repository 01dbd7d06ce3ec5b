//! Random queues against the loop that defines a pass.

use proptest::prelude::*;

use super::super::*;
use super::jobs;
use crate::inventory::{Hold, HoldKind, Inventory};
use crate::matcher::gang::{Placement, Planned, earliest, place_now};
use crate::request::Request;
use crate::testing::{gang, hold, node, shape, sound};

type Decisions = (Vec<(u32, Placement)>, Vec<(u32, Planned)>, Vec<u32>);

/// The definition: in order, from scratch, with nothing remembered.
fn definition(inventory: &Inventory, config: &QueueConfig, jobs: &[PassJob], now: i64) -> Decisions {
    let mut books = inventory.clone();
    books.clear_reservations();
    let (mut started, mut promised, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    let (mut blocked, mut counted) = (false, 0);
    for job in jobs {
        counted += 1;
        if blocked || counted > config.queue_depth {
            refused.push(job.id);
        } else if let Ok(placement) = place_now(&books, &job.request, now, config.node_policy) {
            start(&mut books, job, &placement, now);
            started.push((job.id, placement));
        } else if config.policy == QueuePolicy::Fcfs {
            blocked = true;
            refused.push(job.id);
        } else if promised.len() >= config.reservations() {
            refused.push(job.id);
        } else if let Ok(planned) = earliest(&books, &job.request, now, config.node_policy) {
            books.reserve(job.id, &job.request, planned.placement.clone(), planned.start, planned.end);
            promised.push((job.id, planned));
        } else {
            // One without any planned start does not count.
            counted -= 1;
            refused.push(job.id);
        }
    }
    (started, promised, refused)
}

fn start(books: &mut Inventory, job: &PassJob, placement: &Placement, now: i64) {
    for (at, slot) in placement.slots.iter().enumerate() {
        let shape = &job.request.shapes[slot.shape as usize];
        let taken = Hold {
            needs: shape.needs.checked_mul(slot.count.into()).unwrap().into(),
            ports: shape.ports.clone(),
            kind: HoldKind::Assumed,
            job: Some(job.id),
            ..hold("cpu=0", job.request.end(now))
        };
        books.hold(format!("{}/{at}", job.id).into(), &slot.node, taken);
    }
}

fn request() -> impl Strategy<Value = Request> {
    let shapes = prop::collection::vec((1..4_u32, 1..5_u64, 0..3_u64), 1..3);
    (shapes, prop::option::weighted(0.8, 1_i64..30), prop::bool::weighted(0.2)).prop_map(
        |(shapes, duration, level)| {
            let mut request = gang(0, "");
            request.shapes =
                shapes.iter().map(|(n, cpu, gpu)| shape(*n, &format!("cpu={cpu} gpu={gpu}"))).collect();
            request.duration = duration;
            if level { request.within("rack") } else { request }
        },
    )
}

fn config() -> impl Strategy<Value = QueueConfig> {
    (0..4_usize, 5..40_usize, 1..4_usize, any::<bool>()).prop_map(|(policy, depth, reservations, high)| {
        QueueConfig {
            policy: [QueuePolicy::Fcfs, QueuePolicy::Easy, QueuePolicy::Conservative, QueuePolicy::Hybrid]
                [policy],
            queue_depth: depth,
            reservation_depth: reservations,
            node_policy: if high {
                crate::matcher::gang::NodePolicy::High
            } else {
                crate::matcher::gang::NodePolicy::Low
            },
            ..QueueConfig::default()
        }
    })
}

fn inventory() -> impl Strategy<Value = Inventory> {
    let nodes = prop::collection::vec((1..9_u64, 0..5_u64, 0..3_u8), 1..8);
    let holds = prop::collection::vec(
        (0..8_usize, 0..5_u64, 0..3_u64, prop::option::weighted(0.8, -2_i64..25)),
        0..12,
    );
    (nodes, holds).prop_map(|(nodes, holds)| {
        let mut inventory = Inventory::new();
        for (at, (cpu, gpu, rack)) in nodes.iter().enumerate() {
            inventory.set_node(node(&format!("n{at}"), &format!("cpu={cpu} gpu={gpu} rack:r{rack}")));
        }
        for (at, (on, cpu, gpu, until)) in holds.iter().enumerate() {
            let share = hold(&format!("cpu={cpu} gpu={gpu}"), *until);
            inventory.hold(format!("h{at}").into(), &format!("n{}", on % nodes.len()), share);
        }
        inventory
    })
}

/// Nowhere and at no time is more planned than there is, beyond what already runs.
fn nothing_is_promised_twice(books: &Inventory, now: i64) {
    let times: Vec<i64> =
        books.reservations().map(|(_, reservation)| reservation.start).chain([now]).collect();
    for name in books.node_names() {
        let id = books.id(&name).unwrap();
        let book = books.book(id).unwrap();
        for kind in book.kinds() {
            for time in times.iter().filter(|time| **time > now) {
                let held: u128 = book
                    .holds
                    .iter()
                    .filter(|(_, held)| crate::inventory::planned_end(held.hold.until, now) > *time)
                    .flat_map(|(_, held)| held.needs.iter().filter(|(k, _)| *k == kind))
                    .map(|(_, quantity)| u128::from(*quantity))
                    .sum();
                let promised: u128 = books
                    .reserved_on(id)
                    .iter()
                    .filter(|entry| entry.start <= *time && *time < entry.end)
                    .flat_map(|entry| entry.needs.iter().filter(|(k, _)| *k == kind))
                    .map(|(_, quantity)| u128::from(*quantity))
                    .sum();
                let offered = u128::from(book.offer(kind).allocatable);
                assert!(promised == 0 || held + promised <= offered, "{name} at {time}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_pass_decides_what_its_definition_decides(
        inventory in inventory(),
        config in config(),
        distinct in prop::collection::vec(request(), 1..5),
        picks in prop::collection::vec(0..5_usize, 1..30),
        budget in prop_oneof![Just(u64::MAX), 1..60_u64],
    ) {
        let requests: Vec<Request> = picks.iter().map(|at| distinct[at % distinct.len()].clone()).collect();
        let jobs = jobs(&requests);
        let wanted = definition(&inventory, &config, &jobs, 0);
        let mut books = inventory.clone();
        let (mut started, mut reserved, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        let mut carry = None;
        loop {
            let result = pass(&mut books, &config, &jobs, 0, budget, carry);
            for (id, placement) in &result.started {
                start(&mut books, &jobs[*id as usize - 1], placement, 0);
            }
            sound(&books);
            started.extend(result.started);
            reserved.extend(result.reserved);
            refused.extend(result.refused.into_iter().map(|(id, _)| id));
            carry = result.carry;
            if carry.is_none() {
                break;
            }
        }
        prop_assert_eq!(&started, &wanted.0);
        prop_assert_eq!(&reserved, &wanted.1);
        prop_assert_eq!(&refused, &wanted.2);
        prop_assert_eq!(books.reservations().count(), reserved.len());
        nothing_is_promised_twice(&books, 0);
    }

    #[test]
    fn what_one_pass_knew_changes_nothing_in_the_next(
        inventory in inventory(),
        config in config(),
        distinct in prop::collection::vec(request(), 1..5),
        rounds in prop::collection::vec((prop::collection::vec(0..5_usize, 1..8), 0..4_u8, 0..6_i64), 2..6),
    ) {
        let mut books = inventory;
        let mut memory = std::sync::Arc::default();
        let mut waiting: Vec<PassJob> = Vec::new();
        let (mut next, mut now) = (0, 0);
        for (arriving, change, seconds) in rounds {
            for pick in arriving {
                next += 1;
                let request = std::sync::Arc::new(distinct[pick % distinct.len()].clone());
                // Some come before those that wait.
                let at = if next % 3 == 0 { 0 } else { waiting.len() };
                waiting.insert(at, PassJob { id: next, request });
            }
            let wanted = definition(&books, &config, &waiting, now);
            books.clear_reservations();
            let carry = Carry::remembering(memory);
            let result = pass(&mut books, &config, &waiting, now, u64::MAX, Some(carry));
            prop_assert_eq!(&result.started, &wanted.0);
            prop_assert_eq!(&result.reserved, &wanted.1);
            for (id, placement) in &result.started {
                let at = waiting.iter().position(|job| job.id == *id).unwrap();
                start(&mut books, &waiting.remove(at), placement, now);
            }
            memory = result.memory;
            now += seconds;
            match change {
                0 => {
                    let ended = books.holdings().map(|(holder, ..)| holder.clone()).next();
                    ended.map(|holder| books.release(&holder));
                }
                1 => books.hold(format!("late{next}").into(), "n0", hold("cpu=1", Some(now + 9))),
                2 => books.set_node(node("n1", "cpu=8 gpu=4 rack:r1")),
                _ => {}
            }
            sound(&books);
        }
    }
}
