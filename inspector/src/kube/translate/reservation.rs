//! The condition of a waiting Pod in which the reservation of its job is stored. Unlike an annotation, it is part of the
//! status, which whoever creates a Pod can't write.

use std::sync::Arc;

use fluxion_scheduler::model::{ReservationRecord, SharedStr};
use k8s_openapi::api::core::v1::PodCondition;

/// The condition's type. Its status is True, and its message is a [`ReservationRecord`] in JSON.
pub const RESERVED: &str = "fluxion.flux-framework.org/reserved";
/// The condition's reason.
pub const REASON: &str = "FluxionReserved";
/// Maximum length of the message in bytes: several thousand nodes.
const MOST: usize = 256 << 10;

/// The condition's message; none for a reservation that is too large to be stored.
pub fn message(reservation: &ReservationRecord) -> Option<String> {
    serde_json::to_string(reservation).ok().filter(|text| text.len() <= MOST)
}

/// The stored reservation; none if there is none that can be read.
pub(super) fn read(
    condition: Option<&PodCondition>,
    problems: &mut Vec<SharedStr>,
) -> Option<Arc<ReservationRecord>> {
    let text =
        condition.filter(|condition| condition.status == "True")?.message.as_deref().unwrap_or_default();
    let read = if text.len() > MOST {
        Err(format!("it is longer than {MOST} bytes"))
    } else {
        serde_json::from_str(text).map_err(|error| error.to_string())
    };
    match read {
        Ok(record) => Some(Arc::new(record)),
        Err(error) => {
            let instead = "the job's start is planned again instead";
            problems
                .push(format!("condition {RESERVED} is not a valid reservation ({error}): {instead}").into());
            None
        }
    }
}
