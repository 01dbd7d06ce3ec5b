//! Random queues against the loop that defines a pass.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::*;
use super::{jobs, refused};
use crate::inventory::{Allocation, AllocationKind, Inventory};
use crate::placement::{earliest, place_now};
use crate::request::Request;
use crate::request::{Placement, Planned};
use crate::testing::{gang, hold, node, shape, sound};

/// What a pass decides.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Decisions {
    pub(super) started: Vec<(u32, Placement)>,
    pub(super) reserved: Vec<(u32, Planned)>,
    pub(super) refused: Vec<(u32, Refusal)>,
    pub(super) tried: usize,
    pub(super) look_again: bool,
}

impl Decisions {
    /// Takes the names out of [`Refusal::NoEstimate`]: a holder of one of ours is named by its job.
    fn names(&mut self) -> Vec<BTreeSet<String>> {
        let mut all = Vec::new();
        for (_, refusal) in &mut self.refused {
            let Refusal::NoEstimate { holders, jobs } = refusal else { continue };
            let ours = |holder: &str| holder.split_once('/').map_or(holder, |(job, _)| job).to_owned();
            let mut names: BTreeSet<String> = holders.drain(..).map(|holder| ours(&holder)).collect();
            names.extend(jobs.drain(..).map(|job| job.to_string()));
            all.push(names);
        }
        all
    }

    /// The same, but that equal requests in one pass may be told who stood in the way of the first of them.
    pub(super) fn agrees(mut self, mut definition: Self) -> Result<(), String> {
        let (told, all) = (self.names(), definition.names());
        let known = told.iter().zip(&all).all(|(told, all)| told.is_subset(all) || all.len() >= 16);
        if self == definition && known {
            return Ok(());
        }
        Err(format!("decided: {self:?} {told:?}\nwanted: {definition:?} {all:?}"))
    }
}

/// The definition: in order, from scratch, with nothing remembered. Reservations that there are stand.
pub(super) fn definition(
    books: &mut Inventory,
    config: &QueueConfig,
    jobs: &[PassJob],
    now: i64,
) -> Decisions {
    let mut done = Decisions::default();
    let (mut blocked, mut counted) = (false, 0);
    for job in jobs {
        if counted >= config.queue_depth {
            done.refused.push((job.id, Refusal::DepthReached));
            done.look_again = !done.started.is_empty() && !blocked;
            continue;
        }
        counted += 1;
        done.tried += 1;
        if blocked {
            done.refused.push((job.id, Refusal::Order));
            continue;
        }
        let request = request_of(job, config);
        let failure = match place_now(books, &request, now, config.node_policy) {
            Ok(placement) => {
                start(books, job, config, &placement, now);
                done.started.push((job.id, placement));
                continue;
            }
            Err(failure) => failure,
        };
        let refusal = match failure.behind {
            behind if behind.is_empty() => Refusal::Busy,
            jobs => Refusal::BehindReservation { jobs },
        };
        if done.reserved.len() >= config.reservations() {
            blocked = config.policy == QueuePolicy::Fcfs;
            done.refused.push((job.id, refusal));
            continue;
        }
        match earliest(books, &request, now, config.node_policy) {
            Ok(planned) => {
                books.promise(job.id, &request, &planned, config.assumed_duration);
                done.reserved.push((job.id, planned));
            }
            Err(why) => {
                // One without any planned start does not count.
                counted -= 1;
                let none = Refusal::NoEstimate { holders: why.no_end, jobs: why.no_end_jobs };
                done.refused.push((job.id, if refusal == Refusal::Busy { none } else { refusal }));
            }
        }
    }
    done
}

pub(super) fn request_of(job: &PassJob, config: &QueueConfig) -> Request {
    let duration = job.request.duration.or(config.default_duration);
    Request { duration, ..job.request.as_ref().clone() }
}

/// Holds what a job starts with.
pub(super) fn start(
    books: &mut Inventory,
    job: &PassJob,
    config: &QueueConfig,
    placement: &Placement,
    now: i64,
) {
    let end = request_of(job, config).end(now);
    let length = config.assumed_duration.filter(|_| end.is_none());
    for (at, slot) in placement.slots.iter().enumerate() {
        let shape = &job.request.shapes[slot.shape as usize];
        let taken = Allocation {
            needs: shape.needs.checked_mul(slot.count.into()).unwrap().into(),
            ports: shape.ports.clone(),
            kind: AllocationKind::Assumed,
            job: Some(job.id),
            peer: None,
            from: now,
            end_assumed: length.is_some(),
            ..hold("cpu=0", end.or(length.map(|length| now + length)))
        };
        books.hold(format!("{}/{at}", job.id).into(), &slot.node, taken);
    }
}

pub(super) fn request() -> impl Strategy<Value = Request> {
    let shapes = prop::collection::vec((1..4_u32, 1..5_u64, 0..3_u64), 1..3);
    let minimum = prop::option::weighted(0.2, 1..4_u32);
    (shapes, minimum, prop::option::weighted(0.8, 1_i64..30), prop::bool::weighted(0.2)).prop_map(
        |(shapes, minimum, duration, level)| {
            let mut request = gang(0, "");
            request.shapes =
                shapes.iter().map(|(n, cpu, gpu)| shape(*n, &format!("cpu={cpu} gpu={gpu}"))).collect();
            request.duration = duration;
            request.minimum = minimum;
            if level { request.within("rack") } else { request }
        },
    )
}

pub(super) fn config() -> impl Strategy<Value = QueueConfig> {
    let depth = prop_oneof![1..6_usize, 5..40_usize];
    let lengths = (prop::option::weighted(0.3, 1_i64..30), prop::option::of(1_i64..12));
    (0..4_usize, depth, 0..4_usize, any::<bool>(), lengths).prop_map(
        |(policy, depth, reservations, high, (default, assumed))| QueueConfig {
            assumed_duration: assumed,
            policy: [QueuePolicy::Fcfs, QueuePolicy::Easy, QueuePolicy::Conservative, QueuePolicy::Hybrid]
                [policy],
            queue_depth: depth,
            reservation_depth: reservations,
            planning: Planning::Replan,
            default_duration: default,
            node_policy: if high {
                crate::placement::NodePolicy::High
            } else {
                crate::placement::NodePolicy::Low
            },
            ..QueueConfig::default()
        },
    )
}

pub(super) fn inventory() -> impl Strategy<Value = Inventory> {
    let nodes = prop::collection::vec((1..9_u64, 0..5_u64, 0..3_u8), 1..8);
    let holds = prop::collection::vec(
        (0..8_usize, 0..5_u64, 0..3_u64, (prop::option::weighted(0.8, -2_i64..25), any::<bool>())),
        0..12,
    );
    (nodes, holds).prop_map(|(nodes, holds)| {
        let mut inventory = Inventory::new();
        for (at, (cpu, gpu, rack)) in nodes.iter().enumerate() {
            inventory.set_node(node(&format!("n{at}"), &format!("cpu={cpu} gpu={gpu} rack:r{rack}")));
        }
        for (at, (on, cpu, gpu, (until, assumed))) in holds.iter().enumerate() {
            // What was assumed of somebody without an end lies ahead.
            let end_assumed = *assumed && until.is_some_and(|until| until > 0);
            let share = Allocation { end_assumed, ..hold(&format!("cpu={cpu} gpu={gpu}"), *until) };
            inventory.hold(format!("h{at}").into(), &format!("n{}", on % nodes.len()), share);
        }
        inventory
    })
}

/// Nowhere and at no time is more planned than there is, beyond what already runs.
pub(super) fn nothing_is_promised_twice(books: &Inventory, now: i64) {
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
        let wanted = definition(&mut inventory.clone(), &config, &jobs, 0);
        let mut books = inventory.clone();
        let mut done = Decisions::default();
        let mut carry = None;
        loop {
            let result = pass(&mut books, &config, &jobs, 0, budget, carry);
            for (id, placement) in &result.started {
                start(&mut books, &jobs[*id as usize - 1], &config, placement, 0);
            }
            sound(&books);
            done.refused.extend(refused(&result, &jobs));
            done.started.extend(result.started);
            done.reserved.extend(result.reserved);
            done.tried += result.tried;
            done.look_again |= result.look_again;
            carry = result.carry;
            if carry.is_none() {
                break;
            }
        }
        prop_assert_eq!(books.reservations().count(), done.reserved.len());
        prop_assert_eq!(done.agrees(wanted), Ok(()));
        nothing_is_promised_twice(&books, 0);
    }
}
