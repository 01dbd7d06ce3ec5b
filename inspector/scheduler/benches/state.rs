//! The whole engine at the size of a large cluster: 5,000 nodes that are full, 10,000 gangs of 500 different
//! requests that wait. A step over all of them, a snapshot, and what one more Pod costs.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cluster;

use std::hint::black_box;

use cluster::{GANGS, NOW, amounts, full, pod, settled, waiting};
use criterion::{BatchSize, Criterion, SamplingMode, criterion_group, criterion_main};
use fluxion_scheduler::event::Event;
use fluxion_scheduler::state::Settings;

fn engine(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("state");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    let empty_queue = full(Settings::default());
    let events = waiting(GANGS);
    group.bench_function("10,000 gangs arrive", |bencher| {
        bencher.iter_batched(
            || (empty_queue.clone(), events.clone()),
            |(mut state, events)| {
                state.step(NOW, events);
                settled(state, NOW)
            },
            BatchSize::PerIteration,
        );
    });
    let mut loaded = empty_queue.clone();
    loaded.step(NOW, events);
    let loaded = settled(loaded, NOW);
    assert!(loaded.pending("default").len() == usize::try_from(GANGS).unwrap());
    group.bench_function("one Pod ends: a pass over 10,000 gangs", |bencher| {
        bencher.iter_batched(
            || loaded.clone(),
            |mut state| {
                state.step(NOW + 1, vec![Event::PodGone("uid-busy-4999".into())]);
                settled(state, NOW + 1)
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function("one more Pod", |bencher| {
        bencher.iter_batched(
            || loaded.clone(),
            |mut state| {
                state.step(NOW + 1, vec![Event::Pod(Box::new(pod("more", amounts(4_000, 0), Some(5000))))]);
                settled(state, NOW + 1)
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function("clone", |bencher| bencher.iter(|| black_box(loaded.clone())));
    group.finish();
}

criterion_group!(benches, engine);
criterion_main!(benches);
