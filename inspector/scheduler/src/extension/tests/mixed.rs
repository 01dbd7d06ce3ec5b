//! Gangs among jobs of Fluxion's own, while nodes go down, leave and shrink: the allocations add up after every step.

use fluxion::document::{Document, RankDocument, RankRecord};
use fluxion::graph::{Status, Subsystem};
use fluxion::matcher::{Engine, JobId, Operation};
use proptest::prelude::*;

use super::support::{engine, machine, run};

#[derive(Clone, Debug)]
enum Step {
    Match(Operation, usize, u32),
    Cancel(prop::sample::Index),
    PartialCancel(prop::sample::Index, i32),
    Status(i32, bool),
    Remove(i32),
}

const JOBS: [&str; 6] = [
    "[{type: slot, count: 1, label: a, with: [{type: node, count: 1}]}]",
    "[{type: slot, count: 3, label: a, with: [{type: core, count: 1}, {type: memory, count: 3}]}]",
    "[{type: rack, count: 1, with: [{type: slot, count: 2, label: a, with: [{type: core, count: 2}]}]}]",
    "[{type: slot, count: 3, label: a, within: node, with: [{type: core, count: 1}, {type: memory, count: 3}]}]",
    "[{type: slot, count: 1, label: a, within: node, with: [{type: memory, count: 1}]}]",
    "[{type: gang, count: 1, level: rack, with: [
        {type: slot, count: 2, label: a, within: node, with: [{type: core, count: 2}, {type: memory, count: 5}]},
        {type: slot, count: 1, label: b, within: node, hostPorts: [{port: 80}], with: [{type: core, count: 1}]}]}]",
];

fn step() -> impl Strategy<Value = Step> {
    let operation = prop::sample::select(vec![
        Operation::Allocate,
        Operation::AllocateWithSatisfiability,
        Operation::AllocateOrElseReserve,
        Operation::AllocateOrElseReserve,
        Operation::Satisfiability,
        Operation::WithoutAllocatingFuture,
    ]);
    prop_oneof![
        8 => (operation, 0..JOBS.len(), 1..100_u32).prop_map(|(o, j, d)| Step::Match(o, j, d)),
        3 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        2 => (any::<prop::sample::Index>(), 0..6_i32).prop_map(|(i, r)| Step::PartialCancel(i, r)),
        1 => (0..6_i32, any::<bool>()).prop_map(|(r, up)| Step::Status(r, up)),
        1 => (0..6_i32).prop_map(Step::Remove),
    ]
}

fn play(engine: &mut Engine, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut jobs: Vec<JobId> = Vec::new();
    for (step, job) in steps.into_iter().zip(1..) {
        match step {
            Step::Match(operation, which, duration) => {
                let (found, _) = run(engine, operation, JOBS[which], duration, job);
                if found.is_ok() && operation.allocates() {
                    jobs.push(job);
                }
            }
            Step::Cancel(pick) if !jobs.is_empty() => {
                // What was on nodes that left is gone already.
                let _ = engine.cancel(jobs.remove(pick.index(jobs.len())));
            }
            Step::PartialCancel(pick, rank) if !jobs.is_empty() => {
                let job = jobs[pick.index(jobs.len())];
                let record = RankRecord { rank, ..RankRecord::default() };
                let document = Document::Ranks(RankDocument { ranks: vec![record], properties: vec![] });
                let _ = engine.partial_cancel(job, &document);
            }
            Step::Status(rank, up) => {
                let graph = engine.graph();
                let node = graph.of_rank(rank).first().map(|node| graph.vertex(*node));
                let path = node.and_then(|node| node.path(Subsystem::CONTAINMENT));
                if let Some(path) = path.map(|path| graph.path_text(path)) {
                    engine.set_status(&path, if up { Status::Up } else { Status::Down });
                }
            }
            Step::Remove(rank) => {
                let _ = engine.remove_ranks(&[rank]);
            }
            Step::Cancel(_) | Step::PartialCancel(..) => {}
        }
        prop_assert_eq!(engine.check(), [""; 0]);
    }
    for job in jobs {
        let _ = engine.cancel(job);
    }
    prop_assert!(engine.is_as_new());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_books_add_up(
        high in any::<bool>(),
        steps in prop::collection::vec(step(), 1..30),
        (racks, nodes, cores, memory) in (1..3_i64, 1..4_i64, 1..5_i64, 0..3_i64),
    ) {
        play(&mut engine(machine(racks, nodes, cores, memory), if high { "high" } else { "low" }), steps)?;
    }
}
