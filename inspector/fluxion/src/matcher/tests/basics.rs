//! What is chosen, when, and what is refused.

use super::support::*;
use crate::document::{Document, RankDocument, RankRecord};
use crate::errno::Errno;
use crate::matcher::{Operation, Quirks};

const NODE: &str = "[{type: slot, count: 1, label: a, with: [{type: node, count: 1}]}]";
const CORES: &str =
    "[{type: node, count: 1, with: [{type: slot, count: 1, label: a, with: [{type: core, count: 2}]}]}]";

#[test]
fn policies_choose_by_number() {
    for (policy, lines) in [
        ("high", "core2[1:x] core3[1:x] node3[1:s] rack1[1:s] cluster0[1:s]"),
        ("low", "core0[1:x] core1[1:x] node0[1:s] rack0[1:s] cluster0[1:s]"),
        ("lonode", "core0[1:x] core1[1:x] node0[1:s] rack0[1:s] cluster0[1:s]"),
        ("first", "core2[1:x] core3[1:x] node3[1:s] rack1[1:s] cluster0[1:s]"),
        ("lonodex", "core0[1:x] core1[1:x] core2[1:x] core3[1:x] node0[1:x] rack0[1:s] cluster0[1:s]"),
    ] {
        let mut engine = engine(machine(2, 2, 4, 0, 0), policy, Quirks::default());
        let (found, written) = run(&mut engine, Operation::Allocate, CORES, 60, 1);
        assert_eq!(found.map(|found| (found.at, found.duration)), Ok((0, 60)), "{policy}");
        assert_eq!(written.written.join(" "), lines, "{policy}");
        assert_eq!((written.edges, written.times), (written.written.len() - 1, Some((0, 60))));
        assert_eq!(engine.check(), Vec::<String>::new());
        engine.cancel(1).unwrap();
        assert!(engine.is_as_new());
    }
}

#[test]
fn what_is_full_is_busy_and_what_is_too_large_never_works() {
    let mut engine = engine(machine(1, 2, 2, 0, 0), "low", Quirks::default());
    for job in 1..=2 {
        assert!(run(&mut engine, Operation::Allocate, CORES, 100, job).0.is_ok());
    }
    let errno = |found: Result<_, crate::matcher::Failure>| found.map(|_| ()).unwrap_err().errno;
    let with = Operation::AllocateWithSatisfiability;
    assert_eq!(errno(run(&mut engine, with, CORES, 100, 3).0), Errno::Ebusy);
    let three =
        "[{type: node, count: 1, with: [{type: slot, count: 1, label: a, with: [{type: core, count: 3}]}]}]";
    assert_eq!(errno(run(&mut engine, with, three, 100, 3).0), Errno::Enodev);
    assert_eq!(errno(run(&mut engine, Operation::Satisfiability, three, 100, 3).0), Errno::Enodev);
    assert!(run(&mut engine, Operation::Satisfiability, CORES, 100, 3).0.is_ok());
    let (later, _) = run(&mut engine, Operation::AllocateOrElseReserve, CORES, 100, 3);
    assert_eq!(later.map(|found| found.at), Ok(100));
    let (shown, lines) = run(&mut engine, Operation::WithoutAllocatingFuture, CORES, 100, 4);
    assert_eq!(shown.map(|found| found.at), Ok(100));
    assert_eq!(lines.written[0], "core0[1:x]");
    assert_eq!(engine.check(), Vec::<String>::new());
    (1..=3).for_each(|job| engine.cancel(job).unwrap());
    assert!(engine.is_as_new());
    assert_eq!(engine.cancel(1).unwrap_err().errno, Errno::Enoent);
}

#[test]
fn an_enormous_pool_is_one_slot_and_not_as_many_as_it_has_pieces() {
    let node = vec![level("core", 2, 1, vec![]), level("memory", 1, u64::from(u32::MAX), vec![])];
    let mut engine = engine(build(&[level("node", 1, 1, node)]), "low", Quirks::flux_sched());
    engine.flexible = true;
    let slots =
        |count| format!("[{{type: slot, count: {count}, label: a, with: [{{type: memory, count: 1}}]}}]");
    let (found, _) = run(&mut engine, Operation::Allocate, &slots("{min: 1}"), 60, 1);
    assert_eq!(found.unwrap_err().errno, Errno::Ebusy);
    assert!(run(&mut engine, Operation::Allocate, &slots("1"), 60, 1).0.is_ok());
}

#[test]
fn a_slot_takes_whole_pools() {
    let mut engine = engine(machine(1, 1, 4, 1, 3), "low", Quirks::default());
    let job = "[{type: slot, count: 1, label: a, with: [{type: core, count: 1}, {type: memory, count: 5}]}]";
    let (_, written) = run(&mut engine, Operation::Allocate, job, 0, 1);
    let lines = "core0[1:x] memory0[4:x] memory1[4:x] node0[1:s] rack0[1:s] cluster0[1:s]";
    assert_eq!(written.written.join(" "), lines);
    assert_eq!(written.times, Some((0, crate::matcher::LIFETIME)));
}

#[test]
fn exclusive_nodes_come_with_all_below() {
    let mut engine = engine(machine(1, 2, 1, 1, 0), "low", Quirks::default());
    let shared = "[{type: slot, count: 1, label: a, with: [{type: core, count: 1}]}]";
    assert!(run(&mut engine, Operation::Allocate, shared, 10, 1).0.is_ok());
    let whole = "[{type: node, count: 1, exclusive: true, with: [{type: slot, count: 1, label: a, with: [{type: core, count: 1}]}]}]";
    let (_, written) = run(&mut engine, Operation::Allocate, whole, 10, 2);
    assert_eq!(written.written.join(" "), "core0[1:x] gpu0[1:x] node1[1:x] rack0[1:s] cluster0[1:s]");
    assert_eq!(engine.check(), Vec::<String>::new());
}

#[test]
fn what_is_down_is_only_used_in_thought() {
    let mut engine = engine(machine(1, 2, 1, 0, 0), "low", Quirks::default());
    down(&mut engine, "/cluster0/rack0/node0");
    let (_, written) = run(&mut engine, Operation::Allocate, NODE, 10, 1);
    assert_eq!(written.written[0], "node1[1:x]");
    assert_eq!(run(&mut engine, Operation::Allocate, NODE, 10, 2).0.unwrap_err().errno, Errno::Ebusy);
    assert!(run(&mut engine, Operation::Satisfiability, NODE, 10, 2).0.is_ok());
}

#[test]
fn a_slot_below_an_unasked_level_is_reached_unless_the_quirk_is_on() {
    let job =
        "[{type: rack, count: 1, with: [{type: slot, count: 1, label: a, with: [{type: core, count: 1}]}]}]";
    for (quirks, found) in [(Quirks::default(), true), (Quirks::flux_sched(), false)] {
        let mut engine = engine(machine(1, 2, 1, 0, 0), "low", quirks);
        let (outcome, written) = run(&mut engine, Operation::Allocate, job, 10, 1);
        assert_eq!(outcome.is_ok(), found);
        if found {
            assert_eq!(written.written.join(" "), "core0[1:x] node0[1:s] rack0[1:s] cluster0[1:s]");
            assert_eq!(engine.check(), Vec::<String>::new());
        }
    }
}

#[test]
fn a_rank_can_be_let_go_of() {
    let ranks = |ranks: &[i32]| {
        let record = |&rank: &i32| RankRecord { rank, host: format!("node{rank}"), children: vec![] };
        Document::Ranks(RankDocument { ranks: ranks.iter().map(record).collect(), properties: vec![] })
    };
    let mut engine = engine(machine(2, 2, 2, 0, 0), "low", Quirks::default());
    let three =
        "[{type: node, count: 3, with: [{type: slot, count: 1, label: a, with: [{type: core, count: 2}]}]}]";
    assert!(run(&mut engine, Operation::Allocate, three, 10, 1).0.is_ok());
    assert_eq!(engine.partial_cancel(1, &ranks(&[1])), Ok(false));
    assert_eq!(engine.check(), Vec::<String>::new());
    assert_eq!(engine.partial_cancel(1, &ranks(&[3])).unwrap_err().errno, Errno::Einval);
    let (_, written) = run(&mut engine, Operation::Allocate, CORES, 10, 2);
    assert_eq!(written.written[2], "node1[1:s]");
    assert_eq!(engine.partial_cancel(1, &ranks(&[0, 2])), Ok(true));
    assert_eq!(engine.check(), Vec::<String>::new());
    engine.cancel(2).unwrap();
    assert!(engine.is_as_new());
}

#[test]
fn odd_durations_and_empty_requests_are_refused() {
    let mut engine = engine(machine(1, 1, 1, 0, 0), "low", Quirks::default());
    for duration in ["-1", ".nan", ".inf", "3153600001"] {
        let text = format!(
            "version: 1\nresources: {NODE}\ntasks: []\nattributes: {{system: {{duration: {duration}}}}}"
        );
        let spec = crate::jobspec::Jobspec::parse(&text, &|_| true).unwrap();
        let outcome = engine.match_job(Operation::Allocate, &spec, 1, 0, &mut Lines::default());
        assert_eq!(outcome.unwrap_err().errno, Errno::Einval, "{duration}");
    }
    assert_eq!(run(&mut engine, Operation::Allocate, "[]", 1, 1).0.unwrap_err().errno, Errno::Einval);
}

#[test]
fn what_lost_all_below_it_has_no_sums_left() {
    let mut engine = engine(machine(2, 1, 1, 0, 0), "low", Quirks::default());
    for rank in [0, 1] {
        assert_eq!(engine.remove_ranks(&[rank]), Ok(vec![]));
        assert_eq!(engine.check(), Vec::<String>::new());
        assert!(engine.is_as_new());
    }
}
