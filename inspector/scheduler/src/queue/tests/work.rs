//! What passes know saves the work of finding it out again: counted in nodes that were looked at.

use std::sync::Arc;

use super::super::*;
use super::{jobs, policy};
use crate::inventory::{Allocation, AllocationKind, Inventory};
use crate::request::Request;
use crate::testing::{cluster, gang, hold};

const NODES: u64 = 50;

fn full(until: Option<i64>) -> Inventory {
    let mut inventory = Inventory::new();
    for at in 0..NODES {
        let name = format!("n{at}");
        inventory.set_node(crate::testing::node(&name, "cpu=4"));
        inventory.hold(format!("h{at}").into(), &name, hold("cpu=3", until));
    }
    inventory
}

/// One that makes no reservations.
fn none_promised() -> QueueConfig {
    QueueConfig { reservation_depth: 0, ..policy(QueuePolicy::Hybrid) }
}

fn visited(inventory: &mut Inventory, config: &QueueConfig, requests: &[Request]) -> u64 {
    pass(inventory, config, &jobs(requests), 0, u64::MAX, None).visited
}

/// Passes one after the other, each after a change: what each looked at.
struct Passes {
    inventory: Inventory,
    config: QueueConfig,
    requests: Vec<Request>,
    memory: Arc<KnownFailures>,
    now: i64,
}

impl Passes {
    fn new(inventory: Inventory, config: QueueConfig, requests: &[Request]) -> Self {
        Self { inventory, config, requests: requests.to_vec(), memory: Arc::default(), now: 0 }
    }

    fn after(&mut self, change: impl FnOnce(&mut Inventory)) -> u64 {
        change(&mut self.inventory);
        self.inventory.clear_reservations();
        let carry = Carry::remembering(self.memory.clone());
        let jobs = jobs(&self.requests);
        let result = pass(&mut self.inventory, &self.config, &jobs, self.now, u64::MAX, Some(carry));
        self.memory = result.memory;
        result.visited
    }
}

#[test]
fn equal_requests_are_looked_for_once_in_a_pass() {
    let wide = gang(2, "cpu=4").lasting(50);
    for config in [none_promised(), QueueConfig::default()] {
        let one = visited(&mut full(Some(100)), &config, std::slice::from_ref(&wide));
        assert!(one >= NODES);
        assert_eq!(visited(&mut full(Some(100)), &config, &vec![wide.clone(); 30]), one);
        let other = gang(1, "cpu=4").lasting(50);
        assert!(visited(&mut full(Some(100)), &config, &[wide.clone(), other]) > one);
    }
    // So are those that only promises stand in the way of.
    let mut inventory = cluster(&[("n1", "cpu=4"), ("n2", "cpu=4")]);
    inventory.hold("h".into(), "n2", hold("cpu=4", Some(100)));
    let head = gang(2, "cpu=4").lasting(50);
    let long = gang(1, "cpu=2").lasting(500);
    let easy = QueueConfig::default();
    let two = visited(&mut inventory, &easy, &[head.clone(), long.clone()]);
    let result =
        pass(&mut inventory, &easy, &jobs(&[head.clone(), long.clone(), long.clone()]), 0, u64::MAX, None);
    assert_eq!((result.visited, result.refused.len()), (two, 2));
    // A promise that came since is looked at.
    let hybrid = QueueConfig { reservation_depth: 2, ..policy(QueuePolicy::Hybrid) };
    let result = pass(&mut inventory, &hybrid, &jobs(&[head, long.clone(), long]), 0, u64::MAX, None);
    assert!(result.visited > two);
}

#[test]
fn nodes_that_were_found_full_are_passed_over() {
    let mut inventory = Inventory::new();
    for at in 0..NODES {
        inventory.set_node(crate::testing::node(&format!("n{at}"), "cpu=1 rack:r1"));
    }
    let one = gang(1, "cpu=1");
    let all = vec![one.clone(); usize::try_from(NODES).unwrap()];
    // Each looks at the node that the one before it took, and at its own.
    assert_eq!(visited(&mut inventory, &none_promised(), &all), 2 * NODES - 1);
    // Within a domain the list is another, and is looked at from its beginning.
    let racked = vec![one.clone().within("rack"); 3];
    assert_eq!(visited(&mut inventory, &none_promised(), &racked), 1 + 2 + 3);
    // A slice begins where the one before it ended.
    let (mut carry, mut sum, jobs) = (None, 0, jobs(&all));
    loop {
        let result = pass(&mut inventory, &none_promised(), &jobs, 0, 1, carry);
        for (id, placement) in &result.started {
            let share = Allocation { kind: AllocationKind::Assumed, ..hold("cpu=1", None) };
            inventory.hold(id.to_string().into(), &placement.slots[0].node, share);
        }
        sum += result.visited;
        carry = result.carry;
        if carry.is_none() {
            break;
        }
    }
    assert_eq!(sum, 2 * NODES - 1);
}

#[test]
fn what_failed_is_not_looked_for_again_until_something_is_freed() {
    let wide = gang(2, "cpu=4").lasting(50);
    let mut passes = Passes::new(full(None), none_promised(), &[wide.clone(), wide.clone()]);
    let whole = passes.after(|_| ());
    assert!(whole >= NODES);
    assert_eq!(passes.after(|_| ()), 0);
    passes.now += 1_000;
    assert_eq!(passes.after(|_| ()), 0, "time frees nothing");
    let assumed = |text: &str| Allocation { kind: AllocationKind::Assumed, ..hold(text, None) };
    assert_eq!(
        passes.after(|books| books.hold("new".into(), "n3", assumed("cpu=1"))),
        0,
        "taking frees nothing"
    );
    assert_eq!(
        passes.after(|books| books.hold("new".into(), "n3", hold("cpu=1", None))),
        0,
        "nor does arriving"
    );
    assert_eq!(
        passes.after(|books| books.hold("more".into(), "n4", hold("cpu=1", None))),
        0,
        "whoever takes"
    );
    type Change = fn(&mut Inventory);
    let frees: [(&str, Change); 7] = [
        ("a release", |books| assert!(books.release("h7"))),
        ("a smaller share in place", |books| books.hold("h8".into(), "n8", hold("cpu=2", None))),
        ("another node", |books| books.hold("h9".into(), "n10", hold("cpu=3", None))),
        ("an end", |books| assert!(books.retime("h11", Some(5)))),
        ("a node", |books| books.set_node(crate::testing::node("n99", "cpu=2"))),
        ("a node that changed", |books| books.set_node(crate::testing::node("n12", "cpu=5"))),
        ("a node that is gone", |books| books.remove_node("n12")),
    ];
    for (what, free) in frees {
        assert!(passes.after(free) > 0, "{what}");
        assert_eq!(passes.after(|_| ()), 0, "{what}");
    }
    // What leaves its slots to the request beside it is known by request.
    passes.requests.push(gang(1, "cpu=4"));
    let new = passes.after(|_| ());
    assert!(new > 0 && new < whole + NODES, "{new}");
}

#[test]
fn a_request_without_any_planned_start_is_not_planned_again() {
    let wide = gang(1, "cpu=4").lasting(50);
    let mut passes = Passes::new(full(None), QueueConfig::default(), &[wide.clone(), wide]);
    assert!(passes.after(|_| ()) >= 2 * NODES);
    assert_eq!(passes.after(|_| ()), 0);
    assert!(passes.after(|books| assert!(books.retime("h1", Some(9)))) > 0);
    // It has a start now, and promises are made anew each time.
    assert!(passes.after(|_| ()) > 0);
}

#[test]
fn what_is_planned_for_an_equal_request_is_where_the_next_begins() {
    let mut inventory = cluster(&[("n1", "cpu=1")]);
    for at in 0..200 {
        inventory.hold(format!("h{at}").into(), "n1", hold("cpu=0", Some(100 + at)));
    }
    inventory.hold("last".into(), "n1", hold("cpu=1", Some(400)));
    let conservative = policy(QueuePolicy::Conservative);
    let equal = visited(&mut inventory, &conservative, &vec![gang(1, "cpu=1").lasting(10); 20]);
    let different: Vec<Request> = (0..20).map(|at| gang(1, "cpu=1").lasting(10 + at)).collect();
    let different = visited(&mut inventory, &conservative, &different);
    // The totals tell as much, without looking at the ends before it.
    assert!(equal <= 100 && different <= 100, "{equal} {different}");
}

#[test]
fn a_slice_ends_with_its_budget_and_goes_on_with_what_is_known() {
    let requests: Vec<Request> = (1..=6).map(|cpu| gang(1, &format!("cpu={}", 4 + cpu))).collect();
    let config = none_promised();
    let whole = visited(&mut full(None), &config, &requests);
    assert_eq!(whole, 6 * NODES);
    let mut inventory = full(None);
    let (mut carry, mut looked_at, mut slices) = (None, Vec::new(), 0);
    loop {
        let result = pass(&mut inventory, &config, &jobs(&requests), 0, 2 * NODES, carry);
        looked_at.push((result.tried, result.visited));
        slices += 1;
        carry = result.carry;
        if carry.is_none() {
            break;
        }
    }
    assert_eq!((slices, looked_at), (3, vec![(2, 2 * NODES); 3]));
    // A budget that is used up before the first job lets it in all the same: slices come to an end.
    let result = pass(&mut inventory, &config, &jobs(&requests), 0, 0, None);
    assert_eq!((result.tried, result.carry.is_some()), (1, true));
    // What was freed between two slices is seen by the next one.
    let equal = vec![gang(1, "cpu=4"); 3];
    let first = pass(&mut inventory, &config, &jobs(&equal), 0, 1, None);
    assert_eq!((first.tried, first.refused.len()), (1, 1));
    inventory.release("h5");
    let second = pass(&mut inventory, &config, &jobs(&equal), 0, u64::MAX, first.carry);
    assert_eq!((second.tried, second.started.len()), (2, 1));
}

#[test]
fn one_that_only_promises_without_an_end_keep_out_does_not_count() {
    let mut inventory = cluster(&[("n1", "cpu=4")]);
    inventory.hold("h".into(), "n1", hold("cpu=2", Some(100)));
    let config = QueueConfig {
        queue_depth: 2,
        reservation_depth: 2,
        assumed_duration: None,
        ..policy(QueuePolicy::Hybrid)
    };
    let requests = [gang(1, "cpu=4"), gang(1, "cpu=1"), gang(1, "cpu=2").lasting(50)];
    let result = pass(&mut inventory, &config, &jobs(&requests), 0, u64::MAX, None);
    assert_eq!(result.reserved[0].1.start, 100);
    assert_eq!(result.refused, [(2, Refusal::BehindReservation { jobs: vec![1] })]);
    assert_eq!((result.started[0].0, result.tried), (3, 3));
}

#[test]
fn another_pass_is_wanted_where_the_depth_ended_one_in_which_something_started() {
    let inventory = || cluster(&[("n1", "cpu=8")]);
    let looks_again = |config: QueueConfig, requests: &[Request]| {
        pass(&mut inventory(), &config, &jobs(requests), 0, u64::MAX, None).look_again
    };
    let (one, never) = (gang(1, "cpu=4"), gang(1, "cpu=9").lasting(5));
    let two = |queue| QueueConfig { queue_depth: 2, ..policy(queue) };
    assert!(looks_again(two(QueuePolicy::Easy), &[one.clone(), one.clone(), one.clone()]));
    assert!(!looks_again(two(QueuePolicy::Easy), &[one.clone(), one.clone()]), "nothing lies further down");
    let hybrid = QueueConfig { reservation_depth: 0, ..two(QueuePolicy::Hybrid) };
    assert!(!looks_again(hybrid, &[never.clone(), never.clone(), one.clone()]), "nothing started");
    assert!(!looks_again(two(QueuePolicy::Fcfs), &[one.clone(), never, one]), "nobody may pass");
}
