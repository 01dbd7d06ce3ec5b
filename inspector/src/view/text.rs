//! How times and quantities are written.

use fluxion_api::Quantities;
use fluxion_scheduler::resources::ResourceList;
use fluxion_text::quantity;

/// Epoch seconds as RFC 3339 in UTC, whole seconds: in fields, and as clients find them in texts.
pub use fluxion_api::instant::write as time;

/// Resources as Kubernetes writes them; what there is none of is left out where it says nothing.
pub fn quantities(list: &ResourceList) -> Quantities {
    list.iter().map(|(name, amount)| (name.to_string(), quantity::format(name, amount))).collect()
}

#[cfg(test)]
mod tests {
    use fluxion_scheduler::explain::{Nameless, Names};

    use super::*;

    #[test]
    fn the_engine_writes_times_as_clients_find_them() {
        for seconds in [0, 951_827_696, 1_785_000_061, 4_102_444_799] {
            assert_eq!(Nameless.time(seconds), time(seconds));
        }
    }
}
