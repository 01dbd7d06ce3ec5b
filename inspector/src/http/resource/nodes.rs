//! The resource `fluxionnodes`.

mod columns;

use fluxion_api::{FluxionNode, ObjectMeta};
use fluxion_scheduler::model::SharedStr;

use super::{Key, Listed, Resource, Stamp};
use crate::http::columns::{Cell, Column};
use crate::http::template::Template;
use crate::view::{Visible, node};

/// The resource.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) struct Nodes;

impl Resource for Nodes {
    type Object = FluxionNode;
    type Id = SharedStr;

    const KIND: &'static str = "FluxionNode";
    const PLURAL: &'static str = "fluxionnodes";
    const FIELDS: &'static [&'static str] = &["metadata.name", "status.eligible"];
    const COLUMNS: &'static [Column] = columns::COLUMNS;
    // Its jobs depend on who asks.
    const ALIKE: bool = false;

    fn rows(visible: &Visible<'_>) -> Vec<Listed<SharedStr>> {
        let inventory = visible.state.inventory();
        let rows = inventory.node_names().filter_map(|name| {
            let uid = inventory.node_spec(&name)?.uid.clone();
            let key = Key { namespace: SharedStr::from(""), name: name.clone() };
            let stamp = inventory.node_revision(&name).map(|own| Stamp { own, seen: Vec::new() });
            Some((key, uid, name, stamp))
        });
        rows.collect()
    }

    fn render(visible: &Visible<'_>, id: &SharedStr) -> Option<FluxionNode> {
        visible.state.inventory().node(id).map(|view| node::node(visible, &view))
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

    fn cells(object: &FluxionNode) -> Vec<Cell> {
        columns::cells(object)
    }

    fn rest(object: &mut FluxionNode, out: &mut Template) -> Result<(), serde_json::Error> {
        out.push("\"status\":");
        out.push_json(&object.status)
    }
}
