//! `fluxionnodes`: lists, watches, single nodes.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use fluxion_api::{FluxionNode, ObjectMeta};
use fluxion_scheduler::model::Text;

use super::App;
use super::auth::Asker;
use super::collection;
use super::index::{Key, Served, Table};
use super::path::Names;
use super::query::ListQuery;
use super::refusal::Refusal;
use super::resource::{Resource, Row};
use crate::view::{Lens, node};

/// The resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nodes;

impl Resource for Nodes {
    type Object = FluxionNode;
    type Id = Text;

    const KIND: &'static str = "FluxionNode";
    const PLURAL: &'static str = "fluxionnodes";
    const FIELDS: &'static [&'static str] = &["metadata.name", "status.eligible"];

    fn rows(lens: &Lens<'_>) -> Vec<Row<Text>> {
        let inventory = lens.state.inventory();
        let rows = inventory.node_names().filter_map(|name| {
            let uid = inventory.node_spec(&name)?.uid.clone();
            let key = Key { namespace: Text::from(""), name: name.clone() };
            let stamp = inventory.node_revision(&name).map(|revision| vec![revision]);
            Some((key, uid, name, stamp))
        });
        rows.collect()
    }

    fn render(lens: &Lens<'_>, id: &Text) -> Option<FluxionNode> {
        lens.state.inventory().node(id).map(|view| node::node(lens, &view))
    }

    fn field<'a>(object: &'a FluxionNode, field: &str) -> Vec<&'a str> {
        match field {
            "metadata.name" => vec![&object.metadata.name],
            "status.eligible" => vec![if object.status.eligible { "true" } else { "false" }],
            _ => Vec::new(),
        }
    }

    fn meta(object: &FluxionNode) -> &ObjectMeta {
        &object.metadata
    }

    fn meta_mut(object: &mut FluxionNode) -> &mut ObjectMeta {
        &mut object.metadata
    }

    fn redact(object: &mut FluxionNode) {
        object.status.jobs.clear();
    }

    fn table(served: &Served) -> &Table<Self> {
        &served.nodes
    }
}

/// All nodes.
pub(super) async fn list(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    query: ListQuery,
) -> Result<Response, Refusal> {
    collection::list::<Nodes>(app, asker, None, query).await
}

/// One node.
pub(super) async fn get(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    Names(name): Names<String>,
) -> Result<Response, Refusal> {
    collection::get::<Nodes>(app, asker, Text::from(""), &name).await
}
