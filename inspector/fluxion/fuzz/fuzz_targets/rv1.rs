//! R: loaded as a graph; taken as what a job holds, and let go of.
#![no_main]

use fluxion::document::Document;
use fluxion::formats::rv1;
use fluxion::formats::writer::{Format, Writer};
use fluxion::matcher::Quirks;
use fluxion_fuzz::{MAX_VERTICES, bounded, empty, engine};
use libfuzzer_sys::fuzz_target;

const MACHINE: &[u8] = include_bytes!("../../../resource-query/tests/cases/data/r.json");

fuzz_target!(|data: &[u8]| {
    let mut machine = empty();
    let document = rv1::parse(MACHINE, MAX_VERTICES).expect("the small machine is R");
    rv1::load(&mut machine, &document).expect("the small machine can be loaded");
    let mut machine = engine(machine, "low", Quirks::default(), false).expect("the small machine is sound");
    bounded(data.len(), MAX_VERTICES, || {
        let Ok(document) = rv1::parse(data, MAX_VERTICES) else { return };
        let mut graph = empty();
        if rv1::load(&mut graph, &document).is_ok() {
            let _ = engine(graph, "low", Quirks::default(), false);
        }
        let mut writer = Writer::new(Format::Rlite, Quirks::default());
        let document = Document::Ranks(document);
        let _ = machine.update(&document, 1, 0, 10, &mut writer);
        let _ = machine.partial_cancel(1, &document);
        assert_eq!(machine.check(), Vec::<String>::new());
    });
});
