//! Events of controllers whose Pods the API server rejects.

use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::SharedStr;
use k8s_openapi::api::core::v1::Event as ApiEvent;

use super::{Unreadable, seconds};

/// `reason` of these Events.
pub const REASON: &str = "FailedCreate";
/// Maximum length of a cause, in characters.
const CAUSE: usize = 300;

/// What an Event tells; nothing if it has another reason, or does not say about which object it is.
pub fn translate(event: &ApiEvent) -> Result<Vec<Event>, Unreadable> {
    let owner = event.involved_object.uid.as_deref().filter(|uid| !uid.is_empty());
    let (Some(owner), Some(REASON)) = (owner, event.reason.as_deref()) else { return Ok(Vec::new()) };
    let micro = |time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime| time.0.as_second();
    let times = [
        event.series.as_ref().and_then(|series| series.last_observed_time.as_ref()).map(micro),
        seconds(event.last_timestamp.as_ref()),
        event.event_time.as_ref().map(micro),
        seconds(event.metadata.creation_timestamp.as_ref()),
    ];
    let at = times.into_iter().flatten().max().unwrap_or(0);
    let why = why(event.message.as_deref().unwrap_or_default());
    // That of the Event itself: whoever created it may do so there.
    let namespace = event.metadata.namespace.as_deref().unwrap_or_default().into();
    Ok(vec![Event::CreationFailed { namespace, owner: owner.into(), why, at }])
}

/// The API server's answer, without what the controllers put before it: `Error creating: pods "x" is forbidden: …`. The
/// names of Pods are generated, and differ each time.
pub fn why(message: &str) -> SharedStr {
    let answer = message.trim().strip_prefix("Error creating: ").unwrap_or(message.trim());
    let nameless = match answer.strip_prefix("pods \"") {
        Some(rest) => rest.split_once("\" is ").map_or(answer, |(_, why)| why),
        None => answer,
    };
    fluxion_text::shorten(nameless, CAUSE).as_ref().into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_time_and_the_answer_of_the_api_server_are_read() {
        let read = |event| translate(&serde_json::from_value(event).unwrap()).unwrap();
        let event = json!({"metadata": {"name": "e", "namespace": "a"}, "reason": "FailedCreate",
            "involvedObject": {"kind": "Job", "namespace": "b", "uid": "u"}, "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:01:00Z",
            "message": "Error creating: pods \"x-abc\" is forbidden: exceeded quota: small, limited: pods=2"});
        let why = "forbidden: exceeded quota: small, limited: pods=2";
        let (namespace, owner) = ("a".into(), "u".into());
        let want = Event::CreationFailed { namespace, owner, why: why.into(), at: 1_767_225_660 };
        assert_eq!(read(event.clone()), [want]);
        let with = |key: &str, value| {
            let mut event = event.clone();
            event[key] = value;
            read(event)
        };
        assert_eq!(with("reason", json!("SuccessfulCreate")), []);
        assert_eq!(with("involvedObject", json!({"kind": "Job"})), []);
        let [Event::CreationFailed { why, .. }] = &with("message", json!("x".repeat(5_000)))[..] else {
            panic!()
        };
        assert_eq!(why.chars().count(), 300);
        assert_eq!(
            &*super::why(" admission webhook \"w\" denied the request "),
            "admission webhook \"w\" denied the request"
        );
    }
}
