use std::sync::Arc;

use super::*;
use crate::inventory::{Allocation, AllocationKind, Inventory};
use crate::request::Request;
use crate::testing::{cluster, gang, hold, shown, sound};

fn jobs(requests: &[Request]) -> Vec<PassJob> {
    requests
        .iter()
        .zip(1..)
        .map(|(request, id)| PassJob { id, priority: 0, request: Arc::new(request.clone()) })
        .collect()
}

fn all(inventory: &mut Inventory, config: &QueueConfig, requests: &[Request], now: i64) -> PassResult {
    let result = pass(inventory, config, &jobs(requests), now, u64::MAX, None);
    assert!(result.carry.is_none());
    sound(inventory);
    result
}

/// Everybody who neither starts nor gets a reservation, those who wait for their turn included.
fn refused(result: &PassResult, jobs: &[PassJob]) -> Vec<(u32, Refusal)> {
    let rest = result
        .rest
        .iter()
        .flat_map(|rest| jobs.iter().enumerate().skip(rest.from).map(|(at, job)| (job.id, rest.refusal(at))));
    result.refused.iter().cloned().chain(rest).collect()
}

fn started(result: &PassResult) -> Vec<u32> {
    result.started.iter().map(|(id, _)| *id).collect()
}

fn policy(policy: QueuePolicy) -> QueueConfig {
    QueueConfig { policy, ..QueueConfig::default() }
}

fn three_busy() -> Inventory {
    let mut inventory = cluster(&[("n1", "cpu=4"), ("n2", "cpu=4"), ("n3", "cpu=4")]);
    inventory.hold("r2".into(), "n2", hold("cpu=4", Some(600)));
    inventory.hold("r3".into(), "n3", hold("cpu=4", Some(600)));
    inventory
}

#[test]
fn easy_reserves_for_the_head_and_lets_the_short_pass() {
    let mut inventory = three_busy();
    let wide = gang(3, "cpu=4").lasting(1000);
    let long = gang(1, "cpu=4").lasting(6000);
    let short = gang(1, "cpu=4").lasting(60);
    let result = all(&mut inventory, &QueueConfig::default(), &[wide, long, short], 0);
    assert_eq!(result.reserved.len(), 1);
    assert_eq!((result.reserved[0].0, result.reserved[0].1.start), (1, 600));
    assert_eq!(result.refused, [(2, Refusal::BehindReservation { jobs: vec![1] })]);
    assert_eq!(started(&result), [3]);
    assert_eq!(shown(&result.started[0].1), "n1:0x1");
    assert_eq!(inventory.reservation(1).unwrap().start, 600);
    assert_eq!(inventory.node("n1").unwrap().free.get("cpu"), 4000, "what starts is held by the caller");
}

#[test]
fn fcfs_lets_nobody_pass() {
    let mut inventory = three_busy();
    let wide = gang(3, "cpu=4").lasting(1000);
    let short = gang(1, "cpu=4").lasting(60);
    let requests = [short.clone(), wide, short];
    let result = all(&mut inventory, &policy(QueuePolicy::Fcfs), &requests, 0);
    assert_eq!(started(&result), [1]);
    assert_eq!(result.refused, [(2, Refusal::Busy)], "only the head is looked at");
    assert_eq!(refused(&result, &jobs(&requests)), [(2, Refusal::Busy), (3, Refusal::Order)]);
    assert_eq!(result.tried, 3);
    assert_eq!(inventory.reservations().count(), 0);
}

#[test]
fn conservative_promises_everybody_and_hybrid_some() {
    let requests = [
        gang(3, "cpu=4").lasting(1000),
        gang(1, "cpu=4").lasting(6000),
        gang(2, "cpu=4").lasting(10),
        gang(1, "cpu=4").lasting(60),
    ];
    let mut inventory = three_busy();
    let result = all(&mut inventory, &policy(QueuePolicy::Conservative), &requests, 0);
    let starts: Vec<_> = result.reserved.iter().map(|(id, planned)| (*id, planned.start)).collect();
    assert_eq!(starts, [(1, 600), (2, 1600), (3, 1600)]);
    assert_eq!(started(&result), [4]);
    let hybrid = QueueConfig { reservation_depth: 2, ..policy(QueuePolicy::Hybrid) };
    let result = all(&mut inventory, &hybrid, &requests, 0);
    assert_eq!(result.reserved.len(), 2);
    assert_eq!(result.refused, [(3, Refusal::Busy)]);
}

#[test]
fn what_cannot_be_planned_says_so_and_the_next_gets_the_reservation() {
    let mut inventory = cluster(&[("n1", "cpu=8"), ("n2", "cpu=4")]);
    inventory.hold("none".into(), "n1", hold("cpu=1", None));
    inventory.hold("p-100".into(), "n2", hold("cpu=4", Some(100)));
    let a = gang(1, "cpu=8");
    let b = gang(2, "cpu=4");
    let result = all(&mut inventory, &QueueConfig::default(), &[a.clone(), a, b], 0);
    let refusal = Refusal::NoEstimate { holders: vec!["none".into()], jobs: vec![] };
    assert_eq!(result.refused, [(1, refusal.clone()), (2, refusal)]);
    assert_eq!((result.reserved[0].0, result.reserved[0].1.start), (3, 100));
}

#[test]
fn an_equal_request_is_told_what_keeps_it_out_since_others_started() {
    let mut inventory = cluster(&[("n1", "cpu=4"), ("n2", "cpu=4")]);
    inventory.hold("h".into(), "n2", hold("cpu=4", Some(100)));
    let wide = gang(2, "cpu=4").lasting(50);
    let long = gang(1, "cpu=2").lasting(500);
    let short = gang(1, "cpu=4").lasting(60);
    let result = all(&mut inventory, &QueueConfig::default(), &[wide, long.clone(), short, long], 0);
    assert_eq!((result.reserved[0].0, started(&result)), (1, vec![3]));
    assert_eq!(result.refused, [(2, Refusal::BehindReservation { jobs: vec![1] }), (4, Refusal::Busy)]);
}

#[test]
fn depth_ends_the_pass_and_defaults_apply() {
    let mut inventory = cluster(&[("n1", "cpu=8")]);
    let config = QueueConfig { queue_depth: 2, default_duration: Some(5), ..QueueConfig::default() };
    let one = gang(1, "cpu=4");
    let mut result = all(&mut inventory, &config, &[one.clone(), gang(2, "cpu=4"), one.clone()], 10);
    assert_eq!(started(&result), [1]);
    assert_eq!(result.reserved[0].1.start, 15);
    assert_eq!(result.refused, [(3, Refusal::DepthReached)]);
    assert_eq!(result.tried, 2);
    result = all(&mut inventory, &QueueConfig::default(), &[one.clone(), one.clone(), one], 10);
    assert_eq!(started(&result), [1, 2]);
}

#[test]
fn slices_decide_what_one_pass_decides() {
    let requests: Vec<Request> = (1..40)
        .map(|i| gang(1 + i % 3, ["cpu=1", "cpu=2", "cpu=3"][i as usize % 3]).lasting(i64::from(10 * i % 70)))
        .collect();
    let nodes = [("n1", "cpu=8"), ("n2", "cpu=4"), ("n3", "cpu=6"), ("n4", "cpu=4")];
    for queue in [QueuePolicy::Easy, QueuePolicy::Conservative, QueuePolicy::Fcfs] {
        let mut inventory = cluster(&nodes);
        inventory.hold("x".into(), "n1", hold("cpu=5", Some(30)));
        let whole = all(&mut inventory.clone(), &policy(queue), &requests, 0);
        let mut in_parts = PassResult::default();
        let mut carry = None;
        let mut rounds = 0;
        loop {
            let part = pass(&mut inventory, &policy(queue), &jobs(&requests), 0, 1, carry);
            for (id, placement) in &part.started {
                let request = &requests[*id as usize - 1];
                for (index, slot) in placement.slots.iter().enumerate() {
                    let needs =
                        request.shapes[slot.shape as usize].needs.checked_mul(slot.count.into()).unwrap();
                    let hold = Allocation {
                        needs: Arc::new(needs),
                        kind: AllocationKind::Assumed,
                        ..hold("cpu=0", request.end(0))
                    };
                    inventory.hold(format!("{id}/{index}").into(), &slot.node, hold);
                }
            }
            in_parts.started.extend(part.started);
            in_parts.reserved.extend(part.reserved);
            in_parts.refused.extend(part.refused);
            rounds += 1;
            carry = part.carry;
            if carry.is_none() {
                break;
            }
        }
        assert!(rounds > 2);
        assert_eq!((in_parts.started, in_parts.reserved), (whole.started, whole.reserved));
        assert_eq!(in_parts.refused, whole.refused);
        sound(&inventory);
    }
}

mod incremental;
mod kept;
mod random;
mod work;
