//! Random traces, simulated and played by the textbook: the same starts.
//!
//! The textbook counts free nodes and does not say which they are. FCFS and EASY (Mu'alem and Feitelson 2001) depend on
//! nothing else, and if reservations are kept, they are rearranged, so that a conservative schedule does not either. Planned
//! anew, it is one of nodes: a gap may be wide enough and yet lie on different nodes at its beginning and at its end, so it is
//! compared on a single node with as many cores.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use fluxion_scheduler::queue::{Planning, QueueConfig, QueuePolicy};
use fluxion_scheduler::sim::{Machine, Outcome, TraceJob, simulate};

/// A fixed sequence that looks random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// A trace with many equal times, and half of the time with limits that are not reached.
fn trace(seed: u64, nodes: u32) -> Vec<TraceJob> {
    let mut dice = Dice(seed);
    let grain = [1, 10, 60][usize::try_from(dice.roll(3)).unwrap()];
    let pace = 1 + dice.roll(400);
    let mut submit = 0;
    let jobs = 50 + dice.roll(50);
    let job = |id| {
        if dice.roll(5) > 0 {
            submit += dice.roll(pace) / grain * grain;
        }
        let most = 1 << dice.roll(7);
        let width = 1 + dice.roll(most) % i64::from(nodes);
        let run = 1 + dice.roll(900) / grain * grain;
        let limit = if seed.is_multiple_of(2) { run } else { run + dice.roll(5 * run + 2) / grain * grain };
        let cores = u32::try_from(width).unwrap();
        TraceJob { id, submit, cores, run, limit, ..TraceJob::default() }
    };
    (0..u64::try_from(jobs).unwrap()).map(job).collect()
}

/// Nodes in use by those who start at a time and later.
#[derive(Default)]
struct Profile(BTreeMap<i64, i64>);

impl Profile {
    fn add(&mut self, start: i64, end: i64, width: i64) {
        *self.0.entry(start).or_default() += width;
        *self.0.entry(end).or_default() -= width;
    }

    /// The first start from `now` on at which there are `free` nodes for so long.
    fn earliest(&self, now: i64, free: i64, seconds: i64) -> i64 {
        let times = self.0.keys().copied().filter(|at| *at > now);
        let fits = |start: &i64| {
            let mut used = 0;
            for (at, change) in &self.0 {
                if *at >= start + seconds {
                    break;
                }
                used += change;
                let next = self.0.range(at + 1..).next().map_or(i64::MAX, |(next, _)| *next);
                if used > free && next > *start {
                    return false;
                }
            }
            true
        };
        std::iter::once(now).chain(times).find(fits).unwrap()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Book {
    Fcfs,
    Easy,
    Replan,
    Compress,
}

struct Textbook<'a> {
    nodes: i64,
    trace: &'a [TraceJob],
    queue: Vec<usize>,
    /// What runs, and until when it is planned to.
    running: BTreeMap<usize, i64>,
    planned: BTreeMap<usize, i64>,
}

impl Textbook<'_> {
    fn width(&self, job: usize) -> i64 {
        self.trace[job].cores.into()
    }

    fn free(&self) -> i64 {
        self.nodes - self.running.keys().map(|job| self.width(*job)).sum::<i64>()
    }

    fn profile(&self) -> Profile {
        let mut profile = Profile::default();
        for (job, end) in &self.running {
            profile.add(i64::MIN, *end, self.width(*job));
        }
        profile
    }

    fn fcfs(&self) -> Vec<usize> {
        let mut free = self.free();
        let fits = |job: &&usize| {
            free -= self.width(**job);
            free >= 0
        };
        self.queue.iter().take_while(fits).copied().collect()
    }

    fn easy(&self, now: i64) -> Vec<usize> {
        let mut starts = self.fcfs();
        let Some(head) = self.queue.get(starts.len()) else { return starts };
        let mut ends: Vec<(i64, i64)> =
            self.running.iter().map(|(job, end)| (*end, self.width(*job))).collect();
        ends.extend(starts.iter().map(|job| (now + self.trace[*job].limit, self.width(*job))));
        ends.sort_unstable();
        let mut free = self.free() - starts.iter().map(|job| self.width(*job)).sum::<i64>();
        let mut then = free;
        let shadow = ends.iter().find_map(|(end, width)| {
            then += width;
            (then >= self.width(*head)).then_some(*end)
        });
        let shadow = shadow.unwrap();
        let all: i64 = ends.iter().filter(|(end, _)| *end <= shadow).map(|(_, width)| width).sum();
        let mut extra = free + all - self.width(*head);
        for job in &self.queue[starts.len() + 1..] {
            let width = self.width(*job);
            let short = now + self.trace[*job].limit <= shadow;
            if width <= free && (short || width <= extra) {
                free -= width;
                extra -= if short { 0 } else { width };
                starts.push(*job);
            }
        }
        starts
    }

    /// Takes each job that waited before out of the plan and puts it back at its earliest start, if something ended early
    /// or everything is planned anew; then plans those that came.
    fn conservative(&mut self, now: i64, came: &[usize], early: bool, keeps: bool) -> Vec<usize> {
        let mut profile = self.profile();
        let old: Vec<usize> = self.queue.iter().filter(|job| !came.contains(job)).copied().collect();
        let length = |job: usize| self.trace[job].limit;
        if keeps {
            for job in &old {
                let start = self.planned[job];
                profile.add(start, start + length(*job), self.width(*job));
            }
        }
        for job in self.queue.clone() {
            let width = self.width(job);
            if keeps && old.contains(&job) {
                if !early {
                    continue;
                }
                let before = self.planned[&job];
                profile.add(before, before + length(job), -width);
            }
            let start = profile.earliest(now, self.nodes - width, length(job));
            profile.add(start, start + length(job), width);
            let before = self.planned.insert(job, start);
            assert!(!keeps || before.is_none_or(|before| start <= before), "a promise is kept");
        }
        self.queue.iter().filter(|job| self.planned[job] == now).copied().collect()
    }
}

/// The start of each job.
fn play(trace: &[TraceJob], nodes: u32, book: Book) -> Vec<Option<i64>> {
    let mut world = Textbook {
        nodes: nodes.into(),
        trace,
        queue: Vec::new(),
        running: BTreeMap::new(),
        planned: BTreeMap::new(),
    };
    let mut starts = vec![None; trace.len()];
    let mut ends: Vec<(i64, usize)> = Vec::new();
    let mut next = 0;
    loop {
        let arrival = trace.get(next).map(|job| job.submit);
        let end = ends.iter().min().map(|(end, _)| *end);
        let planned = world.queue.iter().filter_map(|job| world.planned.get(job)).copied().min();
        let planned = planned.filter(|_| book == Book::Compress);
        let Some(now) = arrival.into_iter().chain(end).chain(planned).min() else { return starts };
        let mut early = false;
        ends.retain(|(end, job)| {
            if *end == now {
                early |= world.running.remove(job).unwrap() > now;
            }
            *end > now
        });
        let first = next;
        next += trace[first..].iter().take_while(|job| job.submit == now).count();
        let came: Vec<usize> = (first..next).collect();
        world.queue.extend(&came);
        let started = match book {
            Book::Fcfs => world.fcfs(),
            Book::Easy => world.easy(now),
            Book::Replan => world.conservative(now, &came, early, false),
            Book::Compress => world.conservative(now, &came, early, true),
        };
        for job in started {
            starts[job] = Some(now);
            world.queue.retain(|other| *other != job);
            world.running.insert(job, now + trace[job].limit);
            ends.push((now + trace[job].run, job));
        }
    }
}

fn simulated(
    trace: &[TraceJob],
    (nodes, cores): (u32, u32),
    policy: QueuePolicy,
    planning: Planning,
) -> Outcome {
    let machine = Machine { nodes, cores, whole_nodes: false, enforce_limits: true, each_node: true };
    let queue = [QueueConfig { policy, planning, ..QueueConfig::default() }];
    let outcome = simulate(machine, trace, &queue, &mut |_| ()).unwrap();
    if planning == Planning::Compress {
        let counted = simulate(Machine { each_node: false, ..machine }, trace, &queue, &mut |_| ()).unwrap();
        assert_eq!(starts(&counted), starts(&outcome), "free nodes are counted, {policy:?}");
        assert_eq!(counted.promised, outcome.promised, "free nodes are counted, {policy:?}");
        no_node_is_used_twice(trace, &counted, machine);
    }
    outcome
}

/// Each job has as many cores as it asked for, and no core at a time at which another job has it.
fn no_node_is_used_twice(trace: &[TraceJob], outcome: &Outcome, machine: Machine) {
    let mut changes: BTreeMap<(i64, bool), Vec<usize>> = BTreeMap::new();
    for (job, ran) in outcome.jobs.iter().enumerate() {
        let ran = ran.unwrap();
        changes.entry((ran.start, true)).or_default().push(job);
        changes.entry((ran.end, false)).or_default().push(job);
    }
    let mut used = vec![0; usize::try_from(machine.nodes).unwrap()];
    for ((_, starts), jobs) in changes {
        for job in jobs {
            let mut cores = 0;
            for span in &outcome.nodes[job] {
                for node in &mut used[span.first as usize..=span.last as usize] {
                    *node = if starts { *node + span.cores } else { *node - span.cores };
                    assert!(*node <= machine.cores);
                    cores += span.cores;
                }
            }
            assert_eq!(cores, trace[job].cores);
        }
    }
}

fn starts(outcome: &Outcome) -> Vec<Option<i64>> {
    outcome.jobs.iter().map(|ran| ran.map(|ran| ran.start)).collect()
}

const SIZES: [u32; 6] = [4, 7, 8, 16, 31, 64];

#[test]
fn fcfs_and_easy_start_as_the_textbook_says() {
    for seed in 0..18 {
        let nodes = SIZES[usize::try_from(seed).unwrap() % SIZES.len()];
        let trace = trace(seed, nodes);
        for (policy, book) in [(QueuePolicy::Fcfs, Book::Fcfs), (QueuePolicy::Easy, Book::Easy)] {
            let wanted = play(&trace, nodes, book);
            for machine in [(nodes, 1), (1, nodes)] {
                let outcome = simulated(&trace, machine, policy, Planning::Compress);
                assert_eq!(starts(&outcome), wanted, "seed {seed}, {policy:?} on {machine:?}");
            }
        }
    }
}

#[test]
fn a_conservative_schedule_is_that_of_the_textbook() {
    for seed in 0..18 {
        let nodes = SIZES[usize::try_from(seed).unwrap() % SIZES.len()];
        let trace = trace(seed, nodes);
        for (planning, book) in [(Planning::Replan, Book::Replan), (Planning::Compress, Book::Compress)] {
            let wanted = play(&trace, nodes, book);
            let outcome = simulated(&trace, (1, nodes), QueuePolicy::Conservative, planning);
            assert_eq!(starts(&outcome), wanted, "seed {seed}, {planning:?}");
            if planning == Planning::Compress {
                let outcome = simulated(&trace, (nodes, 1), QueuePolicy::Conservative, planning);
                assert_eq!(starts(&outcome), wanted, "seed {seed}, on {nodes} nodes");
            }
        }
    }
}

#[test]
fn no_job_starts_later_than_it_was_first_promised() {
    let mut late_when_replanned = 0;
    for seed in 0..18 {
        let nodes = SIZES[usize::try_from(seed).unwrap() % SIZES.len()];
        let trace = trace(seed, nodes);
        let late = |planning| {
            let outcome = simulated(&trace, (nodes, 1), QueuePolicy::Conservative, planning);
            let promised = starts(&outcome).into_iter().zip(outcome.promised);
            promised
                .filter(|(start, promised)| promised.is_some_and(|promised| *start > Some(promised)))
                .count()
        };
        assert_eq!(late(Planning::Compress), 0, "seed {seed}");
        late_when_replanned += late(Planning::Replan);
    }
    assert!(late_when_replanned > 0, "planning anew breaks some");
}
