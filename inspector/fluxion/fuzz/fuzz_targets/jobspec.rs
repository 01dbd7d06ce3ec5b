//! A jobspec: read, asked why not, matched now and later, and cancelled.
#![no_main]

use fluxion::formats::writer::{Format, Writer};
use fluxion::jobspec::Jobspec;
use fluxion::matcher::{Operation, Quirks};
use fluxion_fuzz::{bounded, choice, engine, pair};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = choice(data) else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let quirks = if choice & 1 == 0 { Quirks::default() } else { Quirks::flux_sched() };
    let policy = ["first", "low", "hinodex", "locality", "variation"][usize::from(choice >> 2) % 5];
    let mut engine = engine(pair(), policy, quirks, choice & 2 != 0).expect("the small machine is sound");
    bounded(text.len(), 20, || {
        let graph = engine.graph();
        let Ok(spec) = Jobspec::parse(text, &|name| graph.find_type(name).is_some()) else { return };
        let mut writer = Writer::new(Format::Simple, quirks);
        let _ = engine.why_not(&spec, 0);
        for job in 1..4 {
            let _ = engine.match_job(Operation::AllocateOrElseReserve, &spec, job, 0, &mut writer);
        }
        let _ = engine.match_job(Operation::Satisfiability, &spec, 4, 0, &mut writer);
        if !engine.quirks().stale_errno {
            assert_eq!(engine.check(), Vec::<String>::new());
            for job in 1..4 {
                let _ = engine.cancel(job);
            }
            assert!(engine.is_as_new());
        }
    });
});
