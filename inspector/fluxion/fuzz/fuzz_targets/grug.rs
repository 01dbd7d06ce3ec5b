//! A recipe in GraphML: expanded and primed.
#![no_main]

use fluxion::formats::grug;
use fluxion::matcher::Quirks;
use fluxion_fuzz::{MAX_VERTICES, bounded, empty, engine};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    bounded(data.len(), MAX_VERTICES, || {
        let mut graph = empty();
        if grug::load(&mut graph, data).is_ok() {
            let _ = engine(graph, "low", Quirks::default(), false);
        }
    });
});
