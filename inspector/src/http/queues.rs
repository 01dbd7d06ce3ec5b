//! `fluxionqueues`: lists, watches, single queues.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use fluxion_api::{FluxionQueue, ObjectMeta};
use fluxion_scheduler::model::Text;

use super::App;
use super::auth::Asker;
use super::collection;
use super::index::{Key, Served, Table};
use super::path::Names;
use super::query::ListQuery;
use super::refusal::Refusal;
use super::resource::{Resource, Row};
use crate::view::{Lens, queue};

/// The resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queues;

impl Resource for Queues {
    type Object = FluxionQueue;
    type Id = Text;

    const KIND: &'static str = "FluxionQueue";
    const PLURAL: &'static str = "fluxionqueues";
    const FIELDS: &'static [&'static str] = &["metadata.name", "spec.policy"];

    fn rows(lens: &Lens<'_>) -> Vec<Row<Text>> {
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

    fn table(served: &Served) -> &Table<Self> {
        &served.queues
    }
}

/// All queues.
pub(super) async fn list(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    query: ListQuery,
) -> Result<Response, Refusal> {
    collection::list::<Queues>(app, asker, None, query).await
}

/// One queue.
pub(super) async fn get(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    Names(name): Names<String>,
) -> Result<Response, Refusal> {
    collection::get::<Queues>(app, asker, Text::from(""), &name).await
}
