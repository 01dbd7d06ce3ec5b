//! What all targets share: the bounds that every input has to keep, and a small machine to try inputs on.

use std::sync::Once;
use std::time::{Duration, Instant};

use fluxion::formats::jgf;
use fluxion::graph::Graph;
use fluxion::matcher::{Engine, Options, Policy, Quirks};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Vertices that a graph may have here: small inputs may legally ask for millions.
pub const MAX_VERTICES: usize = 2_000;

/// The longest that any input may take. Sanitizers make everything several times slower.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes that may be needed for each byte of an input.
const PER_BYTE: usize = 64;

/// Bytes that may be needed for each vertex that an input asks for, with its allocations.
const PER_VERTEX: usize = 2_000;

/// Bytes that may be needed whatever comes: tables, buffers, texts of errors.
const FIXED: usize = 256 * 1024;

/// Runs something on an input of some bytes, and sees that it keeps the bounds on time and memory. `vertices`
/// tells how many of them the input may ask for.
pub fn bounded<T>(bytes: usize, vertices: usize, work: impl FnOnce() -> T) -> T {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let begun = Instant::now();
    let result = work();
    let took = begun.elapsed();
    let used = MEMORY.peak_usage().saturating_sub(before);
    let most = PER_BYTE * bytes + PER_VERTEX * vertices + FIXED;
    assert!(took < PATIENCE, "{bytes} bytes took {took:?}");
    assert!(used <= most, "{bytes} bytes took {used} bytes of memory, more than {most}");
    result
}

/// An empty graph with the limit on vertices.
pub fn empty() -> Graph {
    let mut graph = Graph::new();
    graph.set_limit(MAX_VERTICES);
    graph
}

/// A matcher of the simplest kind over a graph.
pub fn engine(graph: Graph, policy: &str, quirks: Quirks, flexible: bool) -> Option<Engine> {
    let options = Options {
        policy: Policy::parse(policy)?,
        subsystems: vec!["containment".to_owned()],
        flexible,
        filters: String::new(),
        quirks,
    };
    Engine::new(graph, &options).ok()
}

/// A cluster of two nodes with two cores and memory each.
pub fn pair() -> Graph {
    const PAIR: &[u8] = include_bytes!("../../../resource-query/tests/cases/data/pair.json");
    let mut graph = empty();
    jgf::load(&mut graph, PAIR).expect("the small machine can be loaded");
    graph
}

/// What the first byte of an input chooses, and the rest of it.
pub fn choice(data: &[u8]) -> Option<(u8, &[u8])> {
    data.split_first().map(|(first, rest)| (*first, rest))
}

/// Goes to the folder of the documents of test cases, once.
pub fn enter_cases() {
    static ENTER: Once = Once::new();
    ENTER.call_once(|| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../resource-query/tests/cases/data");
        std::env::set_current_dir(folder).expect("the folder of the test cases is there");
    });
}

/// Whether an input may name files that never end, which are nobody's business here.
pub fn names_system_files(text: &[u8]) -> bool {
    ["/dev", "/proc", "/sys"]
        .iter()
        .any(|part| text.windows(part.len()).any(|window| window == part.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::panic::catch_unwind;

    use super::*;

    const INPUT: usize = 100;
    const MOST: usize = PER_BYTE * INPUT + PER_VERTEX + FIXED;

    /// What is said of a piece of work on an input of so many bytes that asks for one vertex.
    fn complaint(work: fn()) -> Option<String> {
        catch_unwind(|| bounded(INPUT, 1, work)).err().map(|panic| *panic.downcast().expect("a text"))
    }

    fn hold(bytes: usize) -> Vec<u8> {
        black_box(vec![1; bytes])
    }

    // One test, because memory is counted for all threads together.
    #[test]
    fn what_goes_beyond_the_bounds_is_seen() {
        let before = hold(2 * MOST);
        assert_eq!(complaint(|| drop(hold(MOST))), None);
        let too_much: [fn(); 4] = [
            || drop(hold(MOST + 1)),
            // What was let go of again counts.
            || {
                drop(hold(MOST + 1));
                drop(hold(1));
            },
            // Pieces count together.
            || drop(black_box((0..=MOST / 100).map(|_| Box::new([1_u8; 100])).collect::<Vec<_>>())),
            // So does what grows step by step.
            || {
                let mut all = Vec::new();
                (0..=MOST).for_each(|_| all.push(black_box(1_u8)));
            },
        ];
        for work in too_much {
            let complaint = complaint(work).expect("too much memory is seen");
            assert!(complaint.contains("bytes of memory, more than"), "{complaint}");
        }
        let complaint = complaint(|| std::thread::sleep(PATIENCE)).expect("too much time is seen");
        assert!(complaint.contains("100 bytes took 1"), "{complaint}");
        drop(before);
    }
}
