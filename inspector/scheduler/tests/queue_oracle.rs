//! Random traces under a virtual clock, played to the scheduler and to a slow, obvious loop: equal decisions.
//!
//! The loop is written from scratch after the definition of a backfill queue: at every moment it forgets all
//! reservations, goes through each queue in order, starts what fits, reserves the earliest start for the
//! first of those that do not, and begins anew when its depth ended it after something had started. It knows
//! whole nodes and lists of what runs, and nothing of the engine's books.
//!
//! By design the scheduler differs in one thing: what can never run on the nodes that there are is not
//! rejected but parked, and looked at again when nodes change. So does the loop here.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::Phase;
use fluxion_scheduler::placement::NodePolicy;
use fluxion_scheduler::queue::{Planning, QueueConfig, QueuePolicy};
use fluxion_scheduler::state::{JobState, Settings};
use proptest::prelude::*;
use world::{World, in_group};

const FOREVER: i64 = i64::MAX;

/// A job as the trace has it.
#[derive(Clone, Debug)]
struct Job {
    name: String,
    queue: usize,
    priority: i32,
    submitted: i64,
    members: u32,
    cpu: u64,
    /// What it asks for; none for no limit of its own.
    limit: Option<i64>,
    /// How long it really runs.
    run: i64,
}

/// Cores of one node from one second up to another.
#[derive(Clone, Copy, Debug)]
struct Span {
    node: usize,
    cores: u64,
    members: u32,
    start: i64,
    end: i64,
}

/// Where slots lie: per node, how many.
type Where = Vec<(usize, u32)>;

/// The obvious scheduler.
struct Oracle {
    nodes: Vec<u64>,
    queues: Vec<QueueConfig>,
    waiting: Vec<Job>,
    /// What runs, with its nodes and its start.
    running: Vec<(Job, Where, i64)>,
    /// What is planned: start and nodes.
    planned: BTreeMap<String, (i64, Vec<usize>)>,
}

impl Oracle {
    fn limit(&self, job: &Job) -> Option<i64> {
        job.limit.or(self.queues[job.queue].default_duration)
    }

    /// When others may plan with its nodes: one without a limit is assumed to take as long as its queue says, and
    /// twice as long each time that it has outlived that.
    fn end(&self, job: &Job, start: i64, now: i64) -> i64 {
        match (self.limit(job), self.queues[job.queue].assumed_duration) {
            (Some(limit), _) => start + limit,
            (None, None) => FOREVER,
            (None, Some(assumed)) => {
                (0..60).map(|times| start + (assumed << times)).find(|end| *end > now).unwrap()
            }
        }
    }

    /// What is booked: jobs that run, those that should have ended for one second more; and reservations.
    fn spans(&self, now: i64, reserved: &[Span]) -> Vec<Span> {
        let mut spans = reserved.to_vec();
        for (job, places, start) in &self.running {
            let end = self.end(job, *start, now).max(now + 1);
            let span = |&(node, count): &(usize, u32)| Span {
                node,
                cores: job.cpu * u64::from(count),
                members: count,
                start: *start,
                end,
            };
            spans.extend(places.iter().map(span));
        }
        spans
    }

    /// Nodes as they are taken: for a start now those whose next reservation comes soonest; for a later one those on
    /// which something was given back last before it, and something is taken soonest after it.
    fn order(&self, job: &Job, reserved: &[Span], start: i64, now: i64) -> Vec<usize> {
        let high = self.queues[job.queue].node_policy == NodePolicy::High;
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        if high {
            order.reverse();
        }
        let planned = |node: usize, after: i64| {
            let starts = reserved.iter().filter(|span| span.node == node).map(|span| span.start);
            starts.filter(|at| *at > after).min().unwrap_or(FOREVER)
        };
        if start == now {
            order.sort_by_key(|node| planned(*node, now));
        } else {
            order.sort_by_key(|node| {
                (Reverse(self.given_back(*node, reserved, start, now)), planned(*node, start))
            });
        }
        order
    }

    /// When something of a node was last given back by a later start; 0 for never.
    fn given_back(&self, node: usize, reserved: &[Span], start: i64, now: i64) -> i64 {
        // What runs is there from the beginning, until its planned end.
        let running = self.running.iter().flat_map(|(job, places, since)| {
            let end = self.end(job, *since, now);
            let here = places.iter().filter(|(at, _)| *at == node);
            here.map(move |(_, count)| (0, end, job.cpu * u64::from(*count), *count))
        });
        let reserved = reserved.iter().filter(|span| span.node == node);
        let reserved = reserved.map(|span| (span.start, span.end, span.cores, span.members));
        let taken: Vec<(i64, i64, u64, u32)> = running.chain(reserved).collect();
        let used = |at: i64| {
            let then = taken.iter().filter(|(from, to, ..)| *from <= at && at < *to);
            then.fold((0, 0), |(cores, members), (_, _, more, count)| (cores + more, members + count))
        };
        let moments: BTreeSet<i64> = taken.iter().flat_map(|(from, to, ..)| [*from, *to]).collect();
        let rises = moments.iter().filter(|at| **at <= start).filter(|at| {
            let ((before, members_before), (cores, members)) = (used(**at - 1), used(**at));
            cores < before || members < members_before
        });
        rises.max().map_or(0, |at| (*at).max(now + 1))
    }

    /// The first nodes, in the order in which they are taken, that take the job from one second on, for as long as it
    /// asks.
    fn place(&self, job: &Job, spans: &[Span], reserved: &[Span], start: i64, now: i64) -> Option<Where> {
        let end = self.limit(job).map_or(FOREVER, |limit| start + limit);
        let mut left = job.members;
        let mut places = Where::new();
        for node in self.order(job, reserved, start, now) {
            let here = || spans.iter().filter(move |span| span.node == node);
            let moments = here().map(|span| span.start).filter(|at| start < *at && *at < end).chain([start]);
            let used = |at: i64| {
                here().filter(|span| span.start <= at && at < span.end).map(|span| span.cores).sum::<u64>()
            };
            let most = moments.map(used).max().unwrap();
            let fits = self.nodes[node].saturating_sub(most) / job.cpu;
            let count = left.min(u32::try_from(fits).unwrap());
            if count > 0 {
                places.push((node, count));
                left -= count;
            }
        }
        places.sort_unstable();
        if self.queues[job.queue].node_policy == NodePolicy::High {
            places.reverse();
        }
        (left == 0).then_some(places)
    }

    fn could_ever(&self, job: &Job) -> bool {
        self.nodes.iter().map(|cores| cores / job.cpu).sum::<u64>() >= u64::from(job.members)
    }

    /// The earliest start: only where something ends can a start become possible.
    fn earliest(&self, job: &Job, spans: &[Span], reserved: &[Span], now: i64) -> Option<(i64, Where)> {
        let mut ends: Vec<i64> = spans.iter().map(|span| span.end).filter(|end| *end < FOREVER).collect();
        ends.sort_unstable();
        ends.into_iter()
            .filter(|end| *end > now)
            .find_map(|at| Some((at, self.place(job, spans, reserved, at, now)?)))
    }

    /// All loops of one moment. Answers what started.
    fn schedule(&mut self, now: i64) -> Vec<(String, Where)> {
        let mut started = Vec::new();
        loop {
            self.planned.clear();
            let mut reserved = Vec::new();
            let mut again = false;
            for queue in 0..self.queues.len() {
                again |= self.one_loop(queue, now, &mut reserved, &mut started);
            }
            if !again {
                return started;
            }
        }
    }

    /// One loop over one queue. Answers whether another one could start more at this moment.
    fn one_loop(
        &mut self,
        queue: usize,
        now: i64,
        reserved: &mut Vec<Span>,
        started: &mut Vec<(String, Where)>,
    ) -> bool {
        let config = self.queues[queue].clone();
        let may_reserve = match config.policy {
            QueuePolicy::Fcfs => 0,
            QueuePolicy::Easy => 1,
            QueuePolicy::Conservative => config.queue_depth.min(config.max_reservation_depth),
            QueuePolicy::Hybrid => config.reservation_depth.min(config.max_reservation_depth),
        };
        let mut jobs: Vec<Job> = self.waiting.iter().filter(|job| job.queue == queue).cloned().collect();
        jobs.sort_by_key(|job| (-job.priority, job.submitted, job.name.clone()));
        let (mut scheduled, mut reservations, mut any) = (0, 0, false);
        for job in jobs {
            if !self.could_ever(&job) {
                continue;
            }
            if scheduled >= config.queue_depth {
                return any;
            }
            let spans = self.spans(now, reserved);
            if let Some(places) = self.place(&job, &spans, reserved, now, now) {
                self.waiting.retain(|other| other.name != job.name);
                started.push((job.name.clone(), places.clone()));
                self.running.push((job, places, now));
                any = true;
            } else if config.policy == QueuePolicy::Fcfs {
                return false;
            } else if reservations < may_reserve {
                // Without a planned start it is out of the way until something changes, and does not count.
                let Some((start, places)) = self.earliest(&job, &spans, reserved, now) else { continue };
                let end = self.end(&job, start, start);
                let span = |&(node, count): &(usize, u32)| Span {
                    node,
                    cores: job.cpu * u64::from(count),
                    members: count,
                    start,
                    end,
                };
                reserved.extend(places.iter().map(span));
                let mut nodes: Vec<usize> = places.iter().map(|(node, _)| *node).collect();
                nodes.sort_unstable();
                self.planned.insert(job.name.clone(), (start, nodes));
                reservations += 1;
            }
            scheduled += 1;
        }
        false
    }
}

/// What happens in a trace.
#[derive(Clone, Debug)]
enum Act {
    Arrive { queue: usize, priority: i32, members: u32, cpu: u64, limit: Option<i64>, run: i64 },
    Wait(i64),
    Cancel(prop::sample::Index),
    Node(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let job = (0..3_usize, -1..3_i32, 1..4_u32, 1..7_u64, prop::option::weighted(0.7, 1..30_i64), 1..30_i64);
    prop_oneof![
        8 => job.prop_map(|(queue, priority, members, cpu, limit, run)| {
            Act::Arrive { queue, priority, members, cpu, limit, run }
        }),
        4 => (1..12_i64).prop_map(Act::Wait),
        1 => any::<prop::sample::Index>().prop_map(Act::Cancel),
        1 => (1..7_u64).prop_map(Act::Node),
    ]
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    let policies =
        [QueuePolicy::Fcfs, QueuePolicy::Easy, QueuePolicy::Conservative, QueuePolicy::Hybrid].to_vec();
    (
        prop::sample::select(policies),
        1..7_usize,
        1..4_usize,
        1..4_usize,
        (prop::option::weighted(0.2, 1..20_i64), prop::option::weighted(0.7, 1..20_i64)),
        any::<bool>(),
    )
        .prop_map(|(policy, queue_depth, reservation_depth, most, (limit, assumed), high)| QueueConfig {
            policy,
            queue_depth,
            reservation_depth,
            max_reservation_depth: most,
            planning: Planning::Replan,
            default_duration: limit,
            assumed_duration: assumed,
            node_policy: if high { NodePolicy::High } else { NodePolicy::Low },
            ..QueueConfig::default()
        })
}

/// Scheduler and loop side by side.
struct Both {
    world: World,
    oracle: Oracle,
    /// Really ends then.
    ends: BTreeMap<String, i64>,
    arrived: usize,
}

impl Both {
    fn new(nodes: &[u64], mut queues: Vec<QueueConfig>) -> Self {
        for (at, queue) in queues.iter_mut().enumerate() {
            queue.name = format!("q{at}").into();
        }
        let mut world = World::new(Settings { queues: queues.clone(), ..Settings::default() });
        for (at, cores) in nodes.iter().enumerate() {
            world.node(&format!("n{at}"), &format!("cpu={cores} pods=1000"));
        }
        let oracle = Oracle {
            nodes: nodes.to_vec(),
            queues,
            waiting: Vec::new(),
            running: Vec::new(),
            planned: BTreeMap::new(),
        };
        Self { world, oracle, ends: BTreeMap::new(), arrived: 0 }
    }

    fn pods_of(&self, job: &str) -> Vec<String> {
        let prefix = format!("{job}-");
        self.world
            .pods
            .values()
            .map(|pod| pod.name.to_string())
            .filter(|name| name.starts_with(&prefix))
            .collect()
    }

    fn play(&mut self, act: Act) {
        match act {
            Act::Arrive { queue, priority, members, cpu, limit, run } => {
                let queue = queue % self.oracle.queues.len();
                let name = format!("j{:03}", self.arrived);
                self.arrived += 1;
                let submitted = self.world.now;
                let job = Job { name, queue, priority, submitted, members, cpu, limit, run };
                self.submit(&job);
                self.oracle.waiting.push(job);
                self.compare();
            }
            Act::Cancel(pick) => {
                let waiting = self.oracle.waiting.iter().map(|job| job.name.clone());
                let running = self.oracle.running.iter().map(|(job, ..)| job.name.clone());
                let all: Vec<String> = waiting.chain(running).collect();
                if all.is_empty() {
                    return;
                }
                let name = all[pick.index(all.len())].clone();
                let gone = self.pods_of(&name).into_iter().map(|pod| {
                    let uid = self.world.pods.values().find(|known| *known.name == *pod).unwrap().uid.clone();
                    self.world.pods.remove(&uid);
                    Event::PodGone(uid)
                });
                let gone: Vec<Event> = gone.collect();
                self.world.step(gone);
                self.oracle.waiting.retain(|job| job.name != name);
                self.oracle.running.retain(|(job, ..)| job.name != name);
                self.ends.remove(&name);
                self.compare();
            }
            Act::Node(cores) => {
                let name = format!("n{}", self.oracle.nodes.len());
                self.world.node(&name, &format!("cpu={cores} pods=1000"));
                self.oracle.nodes.push(cores);
                self.compare();
            }
            Act::Wait(seconds) => {
                let until = self.world.now + seconds;
                loop {
                    let end = self.ends.values().min().copied();
                    let wake = self.world.state.next_wake().map(|wake| wake.max(self.world.now + 1));
                    let next = end.into_iter().chain(wake).min().filter(|next| *next <= until);
                    let Some(next) = next else { break };
                    self.world.now = next;
                    self.end_jobs();
                    self.compare();
                }
                self.world.now = until;
            }
        }
    }

    fn submit(&mut self, job: &Job) {
        let mut events = Vec::new();
        for member in 0..job.members {
            let pod =
                self.world.make_pod(&format!("{}-{member}", job.name), &format!("cpu={}", job.cpu), |pod| {
                    in_group(&job.name, &job.members.to_string())(pod);
                    pod.priority = job.priority;
                    let note = |key: &str| format!("fluxion.flux-framework.org/{key}").into();
                    pod.annotations.insert(note("queue"), format!("q{}", job.queue).into());
                    if let Some(limit) = job.limit {
                        pod.annotations.insert(note("duration"), format!("{limit}s").into());
                    }
                });
            events.push(Event::Pod(Box::new(pod)));
        }
        self.world.step(events);
    }

    fn end_jobs(&mut self) {
        let now = self.world.now;
        let ended: Vec<String> =
            self.ends.iter().filter(|(_, end)| **end <= now).map(|(name, _)| name.clone()).collect();
        let mut events = vec![Event::Tick];
        for name in &ended {
            for pod in self.world.pods.values_mut().filter(|pod| pod.name.starts_with(&format!("{name}-"))) {
                pod.phase = Phase::Succeeded;
                events.push(Event::Pod(Box::new(pod.clone())));
            }
            self.ends.remove(name);
        }
        self.oracle.running.retain(|(job, ..)| !ended.contains(&job.name));
        self.world.step(events);
    }

    /// The same jobs run on the same nodes, and the same starts are planned.
    fn compare(&mut self) {
        let now = self.world.now;
        for (name, _) in self.oracle.schedule(now) {
            let (job, ..) = self.oracle.running.iter().find(|(job, ..)| job.name == name).unwrap();
            self.ends.insert(name, now + job.run);
        }
        for (job, places, _) in &self.oracle.running {
            let mut nodes: Vec<String> = Vec::new();
            for pod in self.pods_of(&job.name) {
                nodes.extend(self.world.node_of(&pod).map(str::to_owned));
            }
            let mut wanted: Vec<String> = Vec::new();
            for (node, count) in places {
                wanted.extend((0..*count).map(|_| format!("n{node}")));
            }
            nodes.sort();
            wanted.sort();
            assert_eq!(nodes, wanted, "{} at {now}: where it runs, and where it should", job.name);
        }
        for job in &self.oracle.waiting {
            let known = self.world.job(&format!("group.{}", job.name));
            assert!(known.state.waiting(), "{} at {now} is {:?}", job.name, known.state);
            let never = !self.oracle.could_ever(job);
            assert_eq!(known.state == JobState::Unsatisfiable, never, "{} at {now}", job.name);
            // Between passes nothing can start; what is planned moves with jobs that overrun, at the next pass.
            if self.world.state.last_pass(&known.queue).at != now {
                continue;
            }
            let planned = known.reservation.as_ref().map(|reservation| {
                let nodes = reservation.nodes.iter().map(|node| node[1..].parse().unwrap());
                (reservation.start, nodes.collect::<Vec<usize>>())
            });
            assert_eq!(planned.as_ref(), self.oracle.planned.get(&job.name), "{} at {now}", job.name);
        }
    }
}

/// More with the environment variable `PROPTEST_CASES`.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(128)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_scheduler_decides_what_the_loop_decides(
        nodes in prop::collection::vec(1..9_u64, 1..5),
        queues in prop::collection::vec(queue(), 1..4),
        acts in prop::collection::vec(act(), 1..40),
    ) {
        let mut both = Both::new(&nodes, queues);
        for act in acts {
            both.play(act);
        }
        // In the end everything that ever can has run.
        both.play(Act::Wait(3000));
        for job in &both.oracle.waiting {
            let alone = both.oracle.could_ever(job);
            prop_assert!(!alone, "{} still waits", job.name);
        }
    }
}
