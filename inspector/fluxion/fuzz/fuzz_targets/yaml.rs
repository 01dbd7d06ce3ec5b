//! YAML: what reads plain documents quickly reads them as the parser of all YAML does.
#![no_main]

use fluxion::jobspec::yaml::{parse, parse_fully};
use fluxion_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // Aliases are bounded by values, not by bytes.
    bounded(text.len(), 200, || assert_eq!(parse(text), parse_fully(text)));
});
