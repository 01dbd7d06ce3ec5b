//! The resource `fluxionqueues`.

use fluxion_api::{FluxionQueue, ObjectMeta};
use fluxion_scheduler::model::SharedStr;

use super::{Key, Listed, Resource};
use crate::view::{Visible, queue};

/// The resource.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) struct Queues;

impl Resource for Queues {
    type Object = FluxionQueue;
    type Id = SharedStr;

    const KIND: &'static str = "FluxionQueue";
    const PLURAL: &'static str = "fluxionqueues";
    const FIELDS: &'static [&'static str] = &["metadata.name", "spec.policy"];

    fn rows(visible: &Visible<'_>) -> Vec<Listed<SharedStr>> {
        let row = |name: &SharedStr| {
            let key = Key { namespace: SharedStr::from(""), name: name.clone() };
            (key, SharedStr::from(""), name.clone(), None)
        };
        visible.state.queues().iter().map(|config| row(&config.name)).collect()
    }

    fn render(visible: &Visible<'_>, id: &SharedStr) -> Option<FluxionQueue> {
        let config = visible.state.queues().iter().find(|config| config.name == *id)?;
        Some(queue::queue(visible, config))
    }

    fn field<'a>(object: &'a FluxionQueue, field: &str) -> Vec<&'a str> {
        match field {
            "metadata.name" => vec![&object.metadata.name],
            "spec.policy" => vec![&object.spec.policy],
            _ => Vec::new(),
        }
    }

    fn meta(object: &FluxionQueue) -> &ObjectMeta {
        &object.metadata
    }

    fn meta_mut(object: &mut FluxionQueue) -> &mut ObjectMeta {
        &mut object.metadata
    }

    fn redact(object: &mut FluxionQueue) {
        object.status.jobs.clear();
    }
}
