//! Faults that tests inject into a running inspector: a panic or a hang where [`reached`] is called.
//!
//! Only available in debug builds; in a release build, the call is empty and the variable is never read.
//! `FLUXION_FAILPOINTS` contains `POINT=panic:FILE` or `POINT=hang:FILE`, several separated by commas: the fault
//! occurs at that point once the file exists. Points: `engine` (in a step), `watch` (a delivered object), `lease`
//! (before the Lease is renewed), `writer` (an effect is received), `pin` and `pinned`
//! (before and after a Pod is pinned to its node), `resume` and `resumed` (before and after a Job is resumed), `keeper` (main loop of standalone mode).

/// A point where a fault can be injected.
#[cfg(debug_assertions)]
pub(crate) fn reached(point: &str) {
    use std::path::PathBuf;
    use std::sync::OnceLock;

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Fault {
        Panic,
        Hang,
    }
    static PLANTED: OnceLock<Vec<(String, Fault, PathBuf)>> = OnceLock::new();

    fn read(text: &str) -> Option<(String, Fault, PathBuf)> {
        let (point, rest) = text.split_once('=')?;
        let (fault, file) = rest.split_once(':')?;
        let fault = match fault {
            "panic" => Fault::Panic,
            "hang" => Fault::Hang,
            _ => return None,
        };
        Some((point.to_owned(), fault, PathBuf::from(file)))
    }

    let planted = PLANTED.get_or_init(|| {
        let text = std::env::var("FLUXION_FAILPOINTS").unwrap_or_default();
        text.split(',').filter_map(read).collect()
    });
    for (_, fault, file) in planted.iter().filter(|(name, _, _)| name == point) {
        if file.exists() {
            assert!(*fault == Fault::Hang, "planted at failpoint {point}");
            loop {
                std::thread::park();
            }
        }
    }
}

/// Release builds have none.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn reached(_point: &str) {}
