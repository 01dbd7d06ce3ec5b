//! `FluxionAudit`: what is off.

use fluxion_api::graph::{Finding, FluxionAudit};
use fluxion_api::{API_VERSION, ObjectMeta};

use super::Lens;

/// The findings about objects that the lens' viewer may see.
pub fn audit(lens: &Lens<'_>) -> FluxionAudit {
    let seen = |object: &str| match object.split('/').collect::<Vec<_>>().as_slice() {
        [namespace, _, _] => lens.viewer.sees(namespace),
        _ => true,
    };
    let findings = lens.state.audit().into_iter().filter(|finding| seen(&finding.object));
    FluxionAudit {
        api_version: API_VERSION.to_owned(),
        kind: "FluxionAudit".to_owned(),
        metadata: ObjectMeta { name: super::LIVE.to_owned(), ..ObjectMeta::default() },
        findings: findings
            .map(|finding| Finding {
                class: finding.class.to_owned(),
                object: finding.object,
                text: finding.text,
            })
            .collect(),
    }
}
