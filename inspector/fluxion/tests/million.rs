//! Long random lives: the planner against a list of spans, and the matcher with its checker after every step.
//!
//! A test run takes some ten thousand steps of each; `FLUXION_STEPS` sets how many. A million of them:
//! `FLUXION_STEPS=1000000 cargo test --release -p fluxion --test million`. `FLUXION_SEED` sets where the
//! random numbers begin; a failure names the seed of its episode.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod small;

use std::cmp::Ordering;
use std::fmt::Write as _;

use fluxion::document::Document;
use fluxion::errno::Errno;
use fluxion::formats::jgf;
use fluxion::graph::{Status, Subsystem, TypeId};
use fluxion::matcher::why::Verdict;
use fluxion::matcher::{Engine, Failure, Found, Operation, Options, Policy, Quirks, WhyNot};
use fluxion::planner::{MultiPlanner, MultiSpan, Planner, Reduced, SpanId};
use small::*;

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Numbers as they come (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to `count`, exclusive.
    fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }

    fn time(&mut self, count: i64) -> i64 {
        i64::try_from(self.below(count.unsigned_abs())).unwrap()
    }

    fn place(&mut self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).unwrap()
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.place(list.len())]
    }
}

/// Episodes of random steps until there were enough of them; each begins with a seed of its own.
fn episodes(otherwise: u64, mut episode: impl FnMut(&mut Random) -> u64) {
    let (wanted, first) = (setting("FLUXION_STEPS", otherwise), setting("FLUXION_SEED", 1));
    let mut steps = 0;
    for seed in first.. {
        if steps >= wanted {
            break;
        }
        // Printed only when the test fails, or with --nocapture.
        print!("seed {seed}: ");
        steps += episode(&mut Random(seed.wrapping_mul(0x0123_4567_89ab_cdef)));
        println!("{steps} steps so far");
    }
}

/// What a planner means: a total and a list of spans.
#[derive(Clone, Default)]
struct Model {
    total: u64,
    spans: Vec<(u32, i64, i64, u64)>,
}

impl Model {
    fn free_at(&self, time: i64) -> i64 {
        let booked: u64 = self.spans.iter().filter(|s| s.1 <= time && time < s.2).map(|s| s.3).sum();
        i64::try_from(self.total).unwrap() - i64::try_from(booked).unwrap()
    }

    /// The least from `start` on; it changes only where a span starts or ends.
    fn least(&self, start: i64, duration: i64) -> i64 {
        let end = start + duration;
        let changes = self.spans.iter().flat_map(|s| [s.1, s.2]).filter(|t| start < *t && *t < end);
        changes.chain([start]).map(|time| self.free_at(time)).min().unwrap()
    }

    fn fits(&self, start: i64, duration: i64, amount: u64) -> bool {
        amount <= self.total && self.least(start, duration).max(0) >= i64::try_from(amount).unwrap()
    }

    fn times(&self, from: i64, duration: i64, amount: u64) -> Vec<i64> {
        let mut times: Vec<i64> = self.spans.iter().flat_map(|s| [s.1, s.2]).chain([0]).collect();
        times.sort_unstable();
        times.dedup();
        times.retain(|&t| t >= from && self.least(t, duration) >= i64::try_from(amount).unwrap());
        times
    }
}

fn planner_step(random: &mut Random, planner: &mut Planner, model: &mut Model) {
    let most = model.total + 2;
    match random.below(10) {
        0..5 => {
            let (start, duration) = (random.time(200), random.time(60) + 1);
            let amount = if random.below(8) == 0 { 0 } else { random.below(most) };
            let added = planner.add(start, duration, amount);
            assert_eq!(added.is_ok(), model.fits(start, duration, amount));
            if let Ok(id) = added {
                model.spans.push((id, start, start + duration, amount));
            }
        }
        5..7 if !model.spans.is_empty() => {
            let (id, start, end, amount) = model.spans.swap_remove(random.place(model.spans.len()));
            let span = planner.remove(id).unwrap();
            assert_eq!((span.start, span.end, span.amount), (start, end, amount));
            assert_eq!(planner.remove(id), Err(Errno::Einval));
        }
        7 if !model.spans.is_empty() => {
            let at = random.place(model.spans.len());
            let (id, amount) = (model.spans[at].0, random.below(most));
            let outcome = planner.reduce(id, amount);
            match amount.cmp(&model.spans[at].3) {
                Ordering::Equal => {
                    assert_eq!(outcome, Ok(Reduced::Removed));
                    model.spans.swap_remove(at);
                }
                Ordering::Less => {
                    assert_eq!(outcome, Ok(Reduced::Kept));
                    model.spans[at].3 -= amount;
                }
                Ordering::Greater => assert_eq!(outcome, Err(Errno::Einval)),
            }
        }
        8 => {
            let (from, duration, amount) = (random.time(200), random.time(60) + 1, random.below(most));
            let mut next = planner.first_time(from, duration, amount);
            if amount > model.total {
                assert_eq!(next, Err(Errno::Erange));
                return;
            }
            for wanted in model.times(from, duration, amount).into_iter().take(random.place(9)) {
                assert_eq!(next, Ok(wanted));
                next = planner.next_time();
            }
        }
        9 if random.below(20) == 0 => {
            model.total = random.below(24) + 1;
            planner.set_total(model.total, false);
        }
        _ => {}
    }
    for _ in 0..3 {
        let (time, duration) = (random.time(280), random.time(80) + 1);
        assert_eq!(planner.remaining_at(time), u64::try_from(model.free_at(time)).unwrap_or(0));
        let least = u64::try_from(model.least(time, duration)).unwrap_or(0);
        assert_eq!(planner.min_during(time, duration), Ok(least));
    }
    assert_eq!(planner.span_count(), model.spans.len());
    assert!(planner.consistent());
}

#[test]
fn a_planner_is_a_list_of_spans() {
    episodes(60_000, |random| {
        let total = random.below(24) + 1;
        let (mut planner, mut model) = (Planner::new(total), Model { total, spans: Vec::new() });
        for _ in 0..500 {
            planner_step(random, &mut planner, &mut model);
        }
        let ids: Vec<SpanId> = model.spans.iter().map(|span| span.0).collect();
        assert!(ids.into_iter().all(|id| planner.remove(id).is_ok()));
        assert_eq!(planner.min_during(0, i64::MAX), Ok(model.total));
        500
    });
}

#[test]
fn several_quantities_are_as_many_lists_of_spans() {
    const KINDS: [TypeId; 3] = [TypeId(1), TypeId(2), TypeId(7)];
    let at = |of: TypeId| KINDS.iter().position(|kind| *kind == of).unwrap();
    episodes(30_000, |random| {
        let totals = KINDS.map(|_| random.below(9) + 1);
        let mut multi = MultiPlanner::new(KINDS.into_iter().zip(totals));
        let mut models = totals.map(|total| Model { total, spans: Vec::new() });
        let mut ids: Vec<MultiSpan> = Vec::new();
        for _ in 0..300 {
            let amounts = totals.map(|total| random.below(total + 1));
            let (start, duration) = (random.time(100), random.time(40) + 1);
            match random.below(8) {
                0..4 => {
                    let fits = models.iter().zip(amounts).all(|(model, n)| model.fits(start, duration, n));
                    let added = multi.add(start, duration, |of| amounts[at(of)]);
                    assert_eq!(added.is_ok(), fits);
                    if let Ok(id) = added {
                        ids.push(id);
                        for (model, amount) in models.iter_mut().zip(amounts) {
                            model.spans.push((id.get(), start, start + duration, amount));
                        }
                    }
                }
                4..6 if !ids.is_empty() => {
                    let id = ids.swap_remove(random.place(ids.len()));
                    assert_eq!(multi.remove(id), Ok(()));
                    for model in &mut models {
                        model.spans.retain(|span| span.0 != id.get());
                    }
                }
                6 => {
                    let fits = |time: &i64| {
                        models.iter().zip(amounts).all(|(model, n)| model.fits(*time, duration, n))
                    };
                    let wanted: Vec<i64> =
                        models[0].times(start, duration, amounts[0]).into_iter().filter(fits).collect();
                    let mut next = multi.first_time(start, duration, |of| amounts[at(of)]);
                    for time in wanted {
                        assert_eq!(next, Ok(time));
                        next = multi.next_time();
                    }
                    assert_eq!(next, Err(Errno::Enoent));
                }
                _ => {
                    let available = multi.available_during(start, duration, |of| amounts[at(of)]);
                    let fits = models.iter().zip(amounts).all(|(model, n)| model.fits(start, duration, n));
                    assert_eq!(available.is_ok(), fits);
                }
            }
            for &id in &ids {
                for (model, of) in models.iter().zip(KINDS) {
                    let span = model.spans.iter().find(|span| span.0 == id.get()).unwrap();
                    assert_eq!(multi.amount(id, of), span.3);
                }
            }
            assert!(multi.planners().all(|(_, planner)| planner.consistent()));
        }
        300
    });
}

const REQUESTS: [&str; 12] = [
    "[{type: slot, count: 1, label: a, with: [{type: node, count: 1}]}]",
    "[{type: slot, count: 2, label: a, with: [{type: node, count: 1}]}]",
    "[{type: node, count: 2, with: [{type: slot, count: 1, label: a, with: [{type: core, count: 2}]}]}]",
    "[{type: slot, count: 3, label: a, with: [{type: core, count: 1}, {type: memory, count: 3}]}]",
    "[{type: slot, count: 1, label: a, with: [{type: core, count: 1}]}]",
    "[{type: rack, count: 1, with: [{type: node, count: {min: 1}, with: [{type: slot, count: 2, label: a, with: [{type: core, count: 1}]}]}]}]",
    "[{type: node, count: 1, exclusive: true, with: [{type: slot, count: 1, label: a, with: [{type: gpu, count: 1}]}]}]",
    "[{type: slot, count: {min: 1, max: 4, operator: '*', operand: 2}, label: a, with: [{type: gpu, count: 1}]}]",
    "[{type: rack, count: 1, with: [{type: slot, count: 2, label: a, with: [{type: core, count: 2}]}]}]",
    "[{type: cluster, count: 1, with: [{type: rack, count: 2, with: [{type: slot, count: 1, label: a, with: [{type: node, count: 1, with: [{type: core, count: 3}]}]}]}]}]",
    "[{type: rack, count: 1, exclusive: true, with: [{type: slot, count: 1, label: a, with: [{type: node, count: 1}]}]}]",
    "[{type: node, count: 1, with: [{type: core, count: 1}]}]",
];

const POLICIES: [&str; 10] =
    ["first", "firstnodex", "high", "low", "hinode", "lonode", "hinodex", "lonodex", "locality", "variation"];

/// The lines of a node of some rank under a rack.
fn node_lines(random: &mut Random, rack: u64, rank: u64, lines: &mut String) {
    let node = format!("/cluster0/rack{rack}/node{rank}");
    writeln!(lines, "{node} rank={rank}").unwrap();
    for (kind, most, size) in [("core", 5, 1), ("gpu", 3, 1), ("memory", 3, 4)] {
        for id in 0..random.below(most) {
            writeln!(lines, "{node}/{kind}{id} rank={rank} size={size}").unwrap();
        }
    }
}

/// A matcher with its jobs: number, and whether it runs now.
struct Life {
    engine: Engine,
    jobs: Vec<(u64, bool)>,
    next_job: u64,
    next_rank: u64,
    racks: u64,
}

/// What was said of a request before is what came of it.
fn agrees(operation: Operation, why: &WhyNot, found: &Result<Found, Failure>) {
    let allowed: &[Verdict] = match found.as_ref().map(|found| found.at).map_err(|failure| failure.errno) {
        Ok(0) => &[Verdict::Fits],
        Ok(_) => &[Verdict::Busy],
        Err(Errno::Ebusy) if operation == Operation::AllocateWithSatisfiability => {
            &[Verdict::Busy, Verdict::Down]
        }
        // More nodes than are up are refused before it is known whether time or more of them would help.
        Err(Errno::Ebusy) => &[Verdict::Busy, Verdict::Down, Verdict::Unsatisfiable],
        Err(Errno::Enodev) => &[Verdict::Unsatisfiable, Verdict::Down],
        Err(Errno::Einval) => &[Verdict::NothingExclusive, Verdict::Busy, Verdict::Down],
        Err(_) => &[],
    };
    assert!(allowed.contains(&why.verdict), "{why:?}, but {found:?}");
}

impl Life {
    fn new(random: &mut Random) -> Self {
        let mut lines = "/cluster0\n".to_owned();
        let racks = random.below(3) + 1;
        let mut rank = 0;
        for rack in 0..racks {
            writeln!(lines, "/cluster0/rack{rack}").unwrap();
            for _ in 0..=random.below(3) {
                node_lines(random, rack, rank, &mut lines);
                rank += 1;
            }
        }
        let options = Options {
            policy: Policy::parse(random.of::<&str>(&POLICIES)).unwrap(),
            subsystems: vec!["containment".to_owned()],
            flexible: random.below(3) == 0,
            filters: (*random.of(&["", "ALL:core", "ALL:core,ALL:gpu,ALL:memory", "cluster:node,rack:core"]))
                .to_owned(),
            quirks: Quirks::default(),
        };
        let engine = Engine::new(graph(&lines), &options).unwrap();
        Self { engine, jobs: Vec::new(), next_job: 1, next_rank: rank, racks }
    }

    fn step(&mut self, random: &mut Random) {
        match random.below(20) {
            0..9 => self.ask(random),
            9..13 if !self.jobs.is_empty() => {
                let (job, _) = self.jobs.swap_remove(random.place(self.jobs.len()));
                assert_eq!(self.engine.cancel(job), Ok(()));
            }
            13..15 if !self.jobs.is_empty() => {
                let at = random.place(self.jobs.len());
                let (job, runs) = self.jobs[at];
                let ranks = rank(u32::try_from(random.below(self.next_rank + 1)).unwrap());
                if runs && self.engine.partial_cancel(job, &ranks) == Ok(true) {
                    self.jobs.swap_remove(at);
                }
            }
            15 => {
                let status = if random.below(3) == 0 { Status::Down } else { Status::Up };
                let path = self.any_path(random);
                self.engine.set_status(&path, status);
            }
            16 => {
                let (path, class) = (self.any_path(random), random.below(5).to_string());
                self.engine.set_property(&path, "perf_class", &class);
            }
            17 if random.below(3) == 0 => {
                let rank = i32::try_from(random.below(self.next_rank)).unwrap();
                let ended = if random.below(2) == 0 {
                    self.engine.remove_ranks(&[rank]).unwrap_or_default()
                } else {
                    let path = self.any_path(random);
                    self.engine.remove_path(&path).unwrap_or_default()
                };
                self.jobs.retain(|(job, _)| !ended.contains(job));
            }
            18 if random.below(2) == 0 => self.grow(random),
            19 => self.take_over(random),
            _ => {}
        }
    }

    fn ask(&mut self, random: &mut Random) {
        let operations = [
            Operation::Allocate,
            Operation::AllocateWithSatisfiability,
            Operation::AllocateOrElseReserve,
            Operation::AllocateOrElseReserve,
            Operation::Satisfiability,
            Operation::WithoutAllocatingFuture,
        ];
        let operation = *random.of(&operations);
        let job = self.next_job;
        self.next_job += 1;
        let resources = random.of(&REQUESTS);
        let duration = random.below(200);
        let why = self.engine.why_not(&jobspec(resources, duration), 0).unwrap();
        let (found, _) = ask_for(&mut self.engine, operation, resources, duration, job);
        match operation {
            Operation::AllocateWithSatisfiability => agrees(operation, &why, &found),
            Operation::AllocateOrElseReserve => {
                agrees(operation, &why, &found);
                if let Ok(found) = &found {
                    assert_eq!(why.earliest, Some(found.at), "{why:?}");
                }
            }
            _ => {}
        }
        match found {
            Ok(found) if operation.allocates() => self.jobs.push((job, found.at == 0)),
            _ => {}
        }
    }

    /// The path of any vertex that is there.
    fn any_path(&self, random: &mut Random) -> String {
        let graph = self.engine.graph();
        let there: Vec<_> = graph.vertex_ids().filter(|id| !graph.vertex(*id).removed).collect();
        graph.path_text(graph.vertex(*random.of(&there)).path(Subsystem::CONTAINMENT).unwrap())
    }

    /// A new node under a rack, which comes back when it was removed.
    fn grow(&mut self, random: &mut Random) {
        let rack = random.below(self.racks + 1);
        let mut lines = format!("/cluster0\n/cluster0/rack{rack}\n");
        node_lines(random, rack, self.next_rank, &mut lines);
        self.next_rank += 1;
        // Among siblings the unique ids have to differ, also from those that are there.
        let unique = |(at, line): (u64, &str)| format!("{line} uniq_id={}\n", self.next_rank * 1000 + at);
        let text = document(&(0..).zip(lines.lines()).map(unique).collect::<String>());
        let read = |graph: &mut _| {
            jgf::load(graph, text.as_bytes()).map_err(|error| Failure::new(Errno::Einval, error.to_string()))
        };
        self.engine.attach(read).unwrap();
    }

    /// A job that somebody else placed on one core.
    fn take_over(&mut self, random: &mut Random) {
        let graph = self.engine.graph();
        let cores = graph.of_type(graph.find_type("core").unwrap());
        if cores.is_empty() {
            return;
        }
        let core = *random.of(cores);
        let path = graph.path_text(graph.vertex(core).path(Subsystem::CONTAINMENT).unwrap());
        let rank = graph.vertex(core).rank;
        let parts: Vec<&str> = path.split('/').collect();
        let lines = format!(
            "/cluster0\n/cluster0/{}\n/cluster0/{}/{} rank={rank}\n{path} rank={rank} x",
            parts[2], parts[2], parts[3]
        );
        let document: Document = listed(&lines);
        let job = self.next_job;
        self.next_job += 1;
        if self.engine.update(&document, job, 0, 50, &mut Names::default()).is_ok() {
            self.jobs.push((job, true));
        }
    }
}

#[test]
fn the_books_add_up_whatever_happens() {
    episodes(10_000, |random| {
        let mut life = Life::new(random);
        for _ in 0..200 {
            life.step(random);
            sound(&life.engine);
        }
        for (job, _) in std::mem::take(&mut life.jobs) {
            assert_eq!(life.engine.cancel(job), Ok(()));
        }
        sound(&life.engine);
        assert!(life.engine.is_as_new());
        200
    });
}
