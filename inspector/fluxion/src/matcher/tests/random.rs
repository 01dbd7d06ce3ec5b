//! Random jobs and changes, with the checker after every step.

use proptest::prelude::*;

use super::support::*;
use crate::document::{Document, RankDocument, RankRecord};
use crate::graph::{Status, Subsystem, VertexSpec};
use crate::matcher::{Engine, Failure, JobId, Operation, Quirks};

#[derive(Clone, Debug)]
enum Step {
    Match(Operation, usize, u32),
    Cancel(prop::sample::Index),
    PartialCancel(prop::sample::Index, i32),
    Status(i32, bool),
    Remove(i32),
    Grow,
}

const JOBS: [&str; 16] = [
    "[{type: slot, count: 1, label: a, with: [{type: node, count: 1}]}]",
    "[{type: node, count: 2, with: [{type: slot, count: 1, label: a, with: [{type: core, count: 2}]}]}]",
    "[{type: slot, count: 3, label: a, with: [{type: core, count: 1}, {type: memory, count: 3}]}]",
    "[{type: rack, count: 1, with: [{type: node, count: {min: 1}, with: [{type: slot, count: 2, label: a, with: [{type: core, count: 1}]}]}]}]",
    "[{type: node, count: 1, exclusive: true, with: [{type: slot, count: 1, label: a, with: [{type: gpu, count: 1}]}]}]",
    "[{type: slot, count: {min: 1, max: 4, operator: '*', operand: 2}, label: a, with: [{type: gpu, count: 1}]}]",
    "[{type: rack, count: 1, with: [{type: slot, count: 2, label: a, with: [{type: core, count: 2}]}]}]",
    "[{type: cluster, count: 1, with: [{type: rack, count: 2, with: [{type: slot, count: 1, label: a, with: [{type: node, count: 1, with: [{type: core, count: 3}]}]}]}]}]",
    "[{type: node, count: 1, with: [{type: core, count: 1}]}]",
    "[{type: slot, count: 20, label: a, with: [{type: core, count: 1}]}]",
    "[{type: node, count: {min: 1, max: 5, operator: '+', operand: 1}, with: [{type: slot, count: 1, label: a, with: [{type: core, count: {min: 1}}]}]}]",
    "[{type: slot, count: 2, label: a, with: [{type: ssd, count: 2}]}]",
    "[{type: rack, count: 1, with: [{type: ssd, count: 1}, {type: node, count: 2, with: [{type: slot, count: 1, label: a, with: [{type: core, count: 1}]}]}]}]",
    "[{type: slot, count: {min: 1}, label: a, with: [{type: memory, count: 6}]}]",
    "[{type: rack, count: 2, with: [{type: slot, count: 1, label: a, with: [{type: node, count: 1}]}]}]",
    "[{type: slot, count: 1, label: a, with: [{type: node, count: 2, with: [{type: core, count: 1}]}]}]",
];

fn step() -> impl Strategy<Value = Step> {
    let operation = prop_oneof![
        Just(Operation::Allocate),
        Just(Operation::AllocateWithSatisfiability),
        Just(Operation::AllocateOrElseReserve),
        Just(Operation::AllocateOrElseReserve),
        Just(Operation::Satisfiability),
        Just(Operation::WithoutAllocatingFuture),
    ];
    prop_oneof![
        8 => (operation, 0..JOBS.len(), 1..100_u32).prop_map(|(o, j, d)| Step::Match(o, j, d)),
        3 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        2 => (any::<prop::sample::Index>(), 0..6_i32).prop_map(|(i, r)| Step::PartialCancel(i, r)),
        1 => (0..6_i32, any::<bool>()).prop_map(|(r, up)| Step::Status(r, up)),
        1 => (0..6_i32).prop_map(Step::Remove),
        1 => Just(Step::Grow),
    ]
}

fn path_of(engine: &Engine, rank: i32) -> Option<String> {
    let graph = engine.graph();
    let node = graph.of_rank(rank).first()?;
    graph.vertex(*node).path(Subsystem::CONTAINMENT).map(|path| graph.path_text(path))
}

fn grow(engine: &mut Engine, rank: i32) -> Result<(), Failure> {
    engine.attach(|graph| {
        let mut parent = graph.at_path_text("/cluster0/rack0")[0];
        let path = format!("/cluster0/rack0/node{rank}");
        let name = format!("node{rank}");
        for (kind, name, path) in
            [("node", name, path.clone()), ("core", "core0".to_owned(), format!("{path}/core0"))]
        {
            let paths = [(Subsystem::CONTAINMENT, path.as_str())];
            let spec = VertexSpec {
                type_name: kind,
                basename: kind,
                name: &name,
                id: if kind == "node" { i64::from(rank) } else { 0 },
                rank,
                paths: &paths,
                ..VertexSpec::default()
            };
            let id = graph.add_vertex(&spec).unwrap();
            graph.add_edge(parent, id, Subsystem::CONTAINMENT).unwrap();
            parent = id;
        }
        Ok(())
    })
}

/// Plays the same steps on an engine that skips what it knows and on one that does not.
fn play_both(quick: &mut Engine, exact: &mut Engine, steps: &[Step]) {
    exact.set_exact(true);
    let mut jobs: Vec<JobId> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let job = at as JobId + 1;
        match step.clone() {
            Step::Match(operation, which, duration) => {
                let (found, lines) = run(quick, operation, JOBS[which], duration, job);
                let (wanted, wanted_lines) = run(exact, operation, JOBS[which], duration, job);
                assert_eq!(found, wanted, "{step:?}");
                assert_eq!(lines.written, wanted_lines.written, "{step:?}");
                assert_eq!(quick.visits(), exact.visits(), "{step:?}");
                if found.is_ok() && operation.allocates() {
                    jobs.push(job);
                }
            }
            Step::Cancel(pick) if !jobs.is_empty() => {
                let job = jobs.remove(pick.index(jobs.len()));
                assert_eq!(quick.cancel(job), exact.cancel(job));
            }
            Step::PartialCancel(pick, rank) if !jobs.is_empty() => {
                let job = jobs[pick.index(jobs.len())];
                let record = RankRecord { rank, ..RankRecord::default() };
                let document = Document::Ranks(RankDocument { ranks: vec![record], properties: vec![] });
                assert_eq!(quick.partial_cancel(job, &document), exact.partial_cancel(job, &document));
            }
            Step::Status(rank, up) => {
                if let Some(path) = path_of(exact, rank) {
                    for engine in [&mut *quick, &mut *exact] {
                        engine.set_status(&path, if up { Status::Up } else { Status::Down });
                    }
                }
            }
            Step::Grow => {
                grow(quick, 100 + i32::try_from(at).unwrap()).unwrap();
                grow(exact, 100 + i32::try_from(at).unwrap()).unwrap();
            }
            Step::Remove(rank) => {
                assert_eq!(quick.remove_ranks(&[rank]), exact.remove_ranks(&[rank]));
            }
            Step::Cancel(_) | Step::PartialCancel(..) => {}
        }
    }
}

fn play(engine: &mut Engine, steps: &[Step]) {
    let mut jobs: Vec<(JobId, bool)> = Vec::new();
    let mut next_rank = 100;
    for (at, step) in steps.iter().enumerate() {
        let job = at as JobId + 1;
        match step.clone() {
            Step::Match(operation, which, duration) => {
                let (found, _) = run(engine, operation, JOBS[which], duration, job);
                if let Ok(found) = found
                    && operation.allocates()
                {
                    jobs.push((job, found.at == 0));
                }
            }
            Step::Cancel(pick) if !jobs.is_empty() => {
                let (job, _) = jobs.remove(pick.index(jobs.len()));
                engine.cancel(job).unwrap();
            }
            Step::PartialCancel(pick, rank) if !jobs.is_empty() => {
                let (job, allocated) = jobs[pick.index(jobs.len())];
                let record = RankRecord { rank, ..RankRecord::default() };
                let document = Document::Ranks(RankDocument { ranks: vec![record], properties: vec![] });
                if allocated && engine.partial_cancel(job, &document) == Ok(true) {
                    jobs.retain(|(other, _)| *other != job);
                }
            }
            Step::Status(rank, up) => {
                if let Some(path) = path_of(engine, rank) {
                    engine.set_status(&path, if up { Status::Up } else { Status::Down });
                }
            }
            Step::Remove(rank) => {
                let ended = match path_of(engine, rank) {
                    Some(path) if rank % 2 == 0 => engine.remove_path(&path).unwrap(),
                    Some(_) => engine.remove_ranks(&[rank]).unwrap(),
                    None => Vec::new(),
                };
                jobs.retain(|(job, _)| !ended.contains(job));
            }
            Step::Grow => {
                grow(engine, next_rank).unwrap();
                next_rank += 1;
            }
            Step::Cancel(_) | Step::PartialCancel(..) => {}
        }
        assert_eq!(engine.check(), Vec::<String>::new(), "after {step:?}");
    }
    for (job, _) in jobs {
        engine.cancel(job).unwrap();
        assert_eq!(engine.check(), Vec::<String>::new());
    }
    assert!(engine.is_as_new());
}

const POLICIES: [&str; 10] =
    ["first", "firstnodex", "high", "low", "hinode", "lonode", "hinodex", "lonodex", "locality", "variation"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_books_always_add_up(
        policy in prop::sample::select(POLICIES.to_vec()),
        shape in (1..3_usize, 1..4_usize, 1..5_usize, 0..3_usize, 0..3_usize),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let (racks, nodes, cores, gpus, memory) = shape;
        let mut engine = engine(machine(racks, nodes, cores, gpus, memory), policy, Quirks::default());
        play(&mut engine, &steps);
    }

    #[test]
    fn skipping_what_is_known_changes_nothing(
        policy in prop::sample::select(POLICIES[2..].to_vec()),
        shape in (1..4_usize, 1..8_usize, 1..7_usize, 0..3_usize, 0..4_usize),
        steps in prop::collection::vec(step(), 1..50),
        odd in 0..4_usize,
        quirks in prop::sample::select(vec![
            Quirks::default(),
            Quirks::flux_sched(),
            Quirks { introsort_ties: false, ..Quirks::flux_sched() },
        ]),
    ) {
        let (racks, nodes, cores, gpus, memory) = shape;
        let graph = mixed(racks, nodes, cores, gpus, memory, odd);
        let mut quick = engine(graph.clone(), policy, quirks);
        let mut exact = engine(graph, policy, quirks);
        play_both(&mut quick, &mut exact, &steps);
    }
}

#[test]
fn a_removal_that_fails_leaves_a_node_unlike_others() {
    let quirks = Quirks::flux_sched();
    let graph = mixed(1, 6, 1, 0, 1, 0);
    let mut quick = engine(graph.clone(), "lonodex", quirks);
    let mut exact = engine(graph, "lonodex", quirks);
    let steps = [
        Step::Status(0, false),
        Step::Match(Operation::Allocate, 9, 1),
        Step::Match(Operation::Allocate, 10, 1),
        Step::Remove(1),
        Step::Match(Operation::Allocate, 1, 1),
    ];
    play_both(&mut quick, &mut exact, &steps);
}
