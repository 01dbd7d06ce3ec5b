//! A graph as JGF: loaded and primed; attached to a machine; taken as what a job holds, and let go of.
#![no_main]

use fluxion::document::Document;
use fluxion::errno::Errno;
use fluxion::formats::jgf;
use fluxion::formats::writer::{Format, Writer};
use fluxion::matcher::{Failure, Quirks};
use fluxion_fuzz::{MAX_VERTICES, bounded, choice, empty, engine, pair};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = choice(data) else { return };
    let quirks = if choice & 1 == 0 { Quirks::default() } else { Quirks::flux_sched() };
    bounded(text.len(), MAX_VERTICES.min(text.len()), || {
        let mut graph = empty();
        if jgf::load(&mut graph, text).is_ok() {
            let _ = engine(graph, "low", quirks, false);
        }
    });
    let mut engine = engine(pair(), "low", quirks, false).expect("the small machine is sound");
    let mut writer = Writer::new(Format::Rv1, quirks);
    bounded(text.len(), MAX_VERTICES.min(text.len()), || {
        if let Ok(document) = jgf::parse(text, choice & 2 != 0) {
            let document = Document::Graph(document);
            let _ = engine.update(&document, 1, 0, 10, &mut writer);
            let _ = engine.update(&document, 2, 5, i64::MAX, &mut writer);
            let _ = engine.partial_cancel(1, &document);
        }
        let _ = engine.attach(|graph| {
            jgf::add(graph, text).map_err(|error| Failure::new(Errno::Einval, error.to_string()))
        });
        if !engine.quirks().stale_errno {
            assert_eq!(engine.check(), Vec::<String>::new());
        }
    });
});
