//! Formats times and quantities.

use fluxion_api::Quantities;
use fluxion_scheduler::resources::ResourceList;
use fluxion_text::quantity;

/// Formats seconds since the epoch as RFC 3339 in UTC, in whole seconds.
pub use fluxion_api::instant::write as time;

/// Converts resources to Kubernetes quantities.
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
