//! The resource `fluxionqueues`.

use fluxion_api::{FluxionQueue, ObjectMeta};
use fluxion_scheduler::model::Text;

use super::{Key, Listed, Resource};
use crate::view::{Lens, queue};

/// The resource.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) struct Queues;

impl Resource for Queues {
    type Object = FluxionQueue;
    type Id = Text;

    const KIND: &'static str = "FluxionQueue";
    const PLURAL: &'static str = "fluxionqueues";
    const FIELDS: &'static [&'static str] = &["metadata.name", "spec.policy"];

    fn rows(lens: &Lens<'_>) -> Vec<Listed<Text>> {
        let row = |name: &Text| {
            let key = Key { namespace: Text::from(""), name: name.clone() };
            (key, Text::from(""), name.clone(), None)
        };
        lens.state.queues().iter().map(|config| row(&config.name)).collect()
    }

    fn render(lens: &Lens<'_>, id: &Text) -> Option<FluxionQueue> {
        let config = lens.state.queues().iter().find(|config| config.name == *id)?;
        Some(queue::queue(lens, config))
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
