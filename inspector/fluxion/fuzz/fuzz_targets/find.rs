//! A search expression: read, and searched for in a machine in use.
#![no_main]

use fluxion::formats::writer::{Format, Writer};
use fluxion::jobspec::Jobspec;
use fluxion::matcher::sink::Emit;
use fluxion::matcher::{Operation, Quirks};
use fluxion::search::Expression;
use fluxion_fuzz::{bounded, engine, pair};
use libfuzzer_sys::fuzz_target;

const CORE: &str = include_str!("../../../resource-query/tests/cases/data/core.json");

fuzz_target!(|text: &str| {
    let mut engine = engine(pair(), "low", Quirks::default(), false).expect("the small machine is sound");
    let spec = Jobspec::parse(CORE, &|_| true).expect("a core can be asked for");
    let mut writer = Writer::new(Format::Jgf, Quirks::default());
    for job in 1..4 {
        let _ = engine.match_job(Operation::AllocateOrElseReserve, &spec, job, 0, &mut writer);
    }
    let _ = writer.emit(engine.graph(), &mut String::new());
    bounded(text.len(), 20, || {
        if let Ok(expression) = Expression::parse(text) {
            engine.find(&expression, 1, &mut writer);
            let _ = writer.emit(engine.graph(), &mut String::new());
        }
    });
});
