//! A topology of hwloc in XML: loaded and primed, with and without a list of kinds.
#![no_main]

use fluxion::formats::hwloc::{self, Allowlist};
use fluxion::matcher::Quirks;
use fluxion_fuzz::{MAX_VERTICES, bounded, choice, empty, engine};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = choice(data) else { return };
    bounded(text.len(), MAX_VERTICES.min(text.len()), || {
        let allowed =
            if choice & 1 == 0 { Allowlist::all() } else { Allowlist::parse("node,core,gpu,storage") };
        let mut graph = empty();
        if hwloc::load(&mut graph, text, &allowed).is_ok() {
            let _ = engine(graph, "low", Quirks::default(), false);
        }
    });
});
