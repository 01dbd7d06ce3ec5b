//! What the cluster says of an API that kube-apiserver can't forward to.

use std::time::Duration;

use fluxion_api::{GROUP, VERSION};
use fluxion_text::{clean, shorten};
use serde::Deserialize;

/// How long the question may take: it is only asked to explain a failure.
const LIMIT: Duration = Duration::from_secs(3);
/// Characters of a text that others wrote.
const LONGEST: usize = 300;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Registration {
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<Condition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    reason: String,
    message: String,
}

/// Why the inspector can't be reached through the API server, as far as the user may know.
pub(super) async fn diagnosis(kube: &kube::Client) -> String {
    let name = format!("{VERSION}.{GROUP}");
    let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{name}");
    let asked = async {
        let request = http::Request::get(path).body(Vec::new()).ok()?;
        kube.request::<Registration>(request).await.ok()
    };
    let found = tokio::time::timeout(LIMIT, asked).await.ok().flatten();
    let condition =
        found.and_then(|found| found.status.conditions.into_iter().find(|one| one.type_ == "Available"));
    told(&name, condition.as_ref())
}

fn told(name: &str, condition: Option<&Condition>) -> String {
    let help = format!("see `kubectl describe apiservice {name}` and the inspector's Pods");
    match condition {
        Some(Condition { status, reason, message, .. }) if status != "True" => {
            let (reason, message) = (clean(reason), clean(message));
            format!("APIService {name} is not available ({reason}: {}); {help}", shorten(&message, LONGEST))
        }
        _ => format!("kube-apiserver can't reach it; {help}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_is_told_where_it_explains_anything() {
        let condition = |status: &str| Condition {
            type_: "Available".to_owned(),
            status: status.to_owned(),
            reason: "MissingEndpoints".to_owned(),
            message: "endpoints for service/x have no addresses\u{1b}[31m".to_owned(),
        };
        let text = told("a", Some(&condition("False")));
        assert!(text.starts_with("APIService a is not available (MissingEndpoints: endpoints for"), "{text}");
        assert!(text.ends_with("see `kubectl describe apiservice a` and the inspector's Pods"), "{text}");
        assert!(!text.contains('\u{1b}'));
        for other in [None, Some(&condition("True"))] {
            assert!(told("a", other).starts_with("kube-apiserver can't reach it; see `kubectl describe"));
        }
    }
}
