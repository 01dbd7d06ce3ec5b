//! The whole engine at the size of a large cluster: 5,000 nodes that are full, 10,000 gangs of 500 different
//! requests that wait. A step over all of them, a snapshot, and what one more Pod costs.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, SamplingMode, criterion_group, criterion_main};
use fluxion_scheduler::constraint::NodeConstraint;
use fluxion_scheduler::event::Event;
use fluxion_scheduler::inventory::NodeSpec;
use fluxion_scheduler::model::{Marks, Phase, PodSpec};
use fluxion_scheduler::resources::ResourceList;
use fluxion_scheduler::state::{Settings, State};

const NODES: u64 = 5_000;
const GANGS: u64 = 10_000;
const REQUESTS: u64 = 500;
const NOW: i64 = 1_000_000;

fn amounts(cpu: u64, gpu: u64) -> ResourceList {
    let list = [("cpu", cpu), ("memory", cpu << 20), ("nvidia.com/gpu", gpu), ("pods", 1)];
    list.into_iter().filter(|(_, amount)| *amount > 0).map(|(name, amount)| (name.into(), amount)).collect()
}

fn node(index: u64) -> Event {
    let mut allocatable = amounts(64_000, if index.is_multiple_of(4) { 8 } else { 0 });
    allocatable.set("pods", 110);
    Event::Node(Box::new(NodeSpec {
        name: format!("node-{index}").into(),
        uid: format!("node-uid-{index}").into(),
        ready: true,
        capacity: allocatable.clone(),
        allocatable,
        ..NodeSpec::default()
    }))
}

fn pod(name: &str, needs: ResourceList, limit: Option<i64>) -> PodSpec {
    PodSpec {
        uid: format!("uid-{name}").into(),
        namespace: "default".into(),
        name: name.into(),
        scheduler_name: "fluxion".into(),
        created: NOW,
        deleting: false,
        deletes_at: None,
        phase: Phase::Pending,
        node: None,
        nominated: None,
        gates: Vec::new(),
        needs: Ok(Arc::new(needs)),
        constraint: Arc::new(NodeConstraint::default()),
        ports: Arc::new([]),
        terms: None,
        preferences: None,
        volumes: None,
        unsupported: Vec::new(),
        priority: 0,
        labels: Marks::new(),
        annotations: Marks::new(),
        scheduling_group: None,
        controller: None,
        active_deadline: limit,
        scheduled_at: None,
        record: None,
        unscheduled: None,
        disruption: None,
        status_reason: None,
        problems: Vec::new(),
        end: None,
    }
}

/// A full cluster: one Pod of another scheduler's on each node, which ends some time.
fn full() -> State {
    let mut state = State::new(Settings::default());
    let mut events: Vec<Event> = (0..NODES).map(node).collect();
    events.extend((0..NODES).map(|index| {
        let mut pod = pod(
            &format!("busy-{index}"),
            amounts(62_000, 0),
            Some(1000 + i64::try_from(index % 997).unwrap()),
        );
        pod.scheduler_name = "default-scheduler".into();
        pod.node = Some(format!("node-{index}").into());
        pod.scheduled_at = Some(NOW);
        Event::Pod(Box::new(pod))
    }));
    events.push(Event::Synced);
    state.step(NOW, events);
    state
}

/// Gangs of one to four members, of which none fits now.
fn waiting() -> Vec<Event> {
    (0..GANGS)
        .flat_map(|gang| {
            let request = gang % REQUESTS;
            let size = 1 + request % 4;
            (0..size).map(move |member| {
                let limit = Some(600 + i64::try_from(request).unwrap());
                let mut pod = pod(&format!("gang-{gang}-{member}"), amounts(3_000 + 10 * request, 0), limit);
                for (key, value) in [("group", format!("gang-{gang}")), ("group-size", size.to_string())] {
                    pod.labels.insert(format!("fluxion.flux-framework.org/{key}").into(), value.into());
                }
                Event::Pod(Box::new(pod))
            })
        })
        .collect()
}

fn settled(mut state: State) -> State {
    while state.unfinished() {
        state.step(NOW, vec![Event::Tick]);
    }
    state
}

fn engine(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("state");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    let empty_queue = full();
    let events = waiting();
    group.bench_function("10,000 gangs arrive", |bencher| {
        bencher.iter_batched(
            || (empty_queue.clone(), events.clone()),
            |(mut state, events)| {
                state.step(NOW, events);
                settled(state)
            },
            BatchSize::PerIteration,
        );
    });
    let mut loaded = empty_queue.clone();
    loaded.step(NOW, events);
    let loaded = settled(loaded);
    assert!(loaded.pending("default").len() == usize::try_from(GANGS).unwrap());
    group.bench_function("one Pod ends: a pass over 10,000 gangs", |bencher| {
        bencher.iter_batched(
            || loaded.clone(),
            |mut state| {
                state.step(NOW + 1, vec![Event::PodGone("uid-busy-4999".into())]);
                settled(state)
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function("one more Pod", |bencher| {
        bencher.iter_batched(
            || loaded.clone(),
            |mut state| {
                state.step(NOW + 1, vec![Event::Pod(Box::new(pod("more", amounts(4_000, 0), Some(5000))))]);
                settled(state)
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function("clone", |bencher| bencher.iter(|| black_box(loaded.clone())));
    group.finish();
}

criterion_group!(benches, engine);
criterion_main!(benches);
