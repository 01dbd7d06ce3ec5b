//! Time on the processor where Linux tells it, which other work on the machine does not change, and time on the wall.

use std::hint::black_box;
#[expect(clippy::disallowed_types, reason = "the engine has no clock, its benchmark needs one")]
use std::time::Instant;

/// Nanoseconds that this thread has been on a processor.
fn on_processor() -> Option<u128> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Runs it; returns its result, and the nanoseconds on the processor and on the wall.
#[expect(clippy::disallowed_types, reason = "the engine has no clock, its benchmark needs one")]
fn timed<R>(run: impl FnOnce() -> R) -> (R, (u128, u128)) {
    let (wall, cpu) = (Instant::now(), on_processor());
    let result = black_box(run());
    let spent = on_processor().zip(cpu).map(|(after, before)| after - before);
    let wall = wall.elapsed().as_nanos();
    (result, (spent.unwrap_or(wall), wall))
}

/// Runs it on something made anew each time, and prints the median and the longest time.
pub(crate) fn measure<T, R>(
    name: &str,
    runs: usize,
    mut make: impl FnMut() -> T,
    mut run: impl FnMut(&mut T) -> R,
) {
    let mut times: Vec<(u128, u128)> = (0..runs)
        .map(|_| {
            let mut input = make();
            timed(|| run(&mut input)).1
        })
        .collect();
    times.sort_unstable();
    let ((cpu, wall), (most, _)) = (times[runs / 2], times[runs - 1]);
    println!(
        "{name:<60} {:>12.3} ms on the processor (at most {:.3}) {:>12.3} ms on the wall",
        milli(cpu),
        milli(most),
        milli(wall)
    );
}

fn milli(nanos: u128) -> f64 {
    nanos as f64 / 1e6
}
