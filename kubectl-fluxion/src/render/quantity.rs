//! Parses Kubernetes quantities and shows them in a short form.

use fluxion_api::Quantities;
use fluxion_text::quantity::Amount;
pub(super) use fluxion_text::{is_gpu, summary};

/// The amount of `resource` in `quantities`; zero if missing.
pub fn amount_of(quantities: &Quantities, resource: &str) -> Amount {
    quantities.get(resource).and_then(|text| text.parse().ok()).unwrap_or_default()
}
