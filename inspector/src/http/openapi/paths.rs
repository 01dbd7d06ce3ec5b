//! The paths and operations of the API, from the same table as discovery.

use fluxion_api::{API_VERSION, GROUP, VERSION};
use serde_json::{Map, Value, json};

use super::schemas::reference;
use crate::http::discovery::{Described, RESOURCES};

/// What may stand in the query of a list or watch: name, type, description.
const LIST_PARAMETERS: &[(&str, &str, &str)] = &[
    ("allowWatchBookmarks", "boolean", "Send bookmark events with the latest resource version."),
    ("continue", "string", "Continue token from the previous page."),
    ("fieldSelector", "string", "Field selector to filter on."),
    ("labelSelector", "string", "Label selector to filter on."),
    ("limit", "integer", "Maximum number of objects per page; 0 for no limit."),
    ("pretty", "boolean", "Pretty-print the response."),
    (
        "resourceVersion",
        "string",
        "Resource version to start a watch from; 0 starts with the current objects.",
    ),
    ("resourceVersionMatch", "string", "Exact or NotOlderThan."),
    ("sendInitialEvents", "boolean", "Start the watch with the current objects, followed by a bookmark."),
    ("timeoutSeconds", "integer", "Timeout of the watch in seconds."),
    ("watch", "boolean", "Watch for changes; returns one event per line."),
];

const GET_PARAMETERS: &[(&str, &str, &str)] = &[("pretty", "boolean", "Pretty-print the response.")];

const CANCEL_PARAMETERS: &[(&str, &str, &str)] = &[
    ("alsoDelete", "boolean", "Cancel the job even if this also deletes Pods of other jobs."),
    ("dryRun", "string", "All: only return what would be deleted."),
];

/// One operation.
struct Operation<'a> {
    id: String,
    description: String,
    /// As Kubernetes calls it: get, list, post.
    action: &'a str,
    kind: &'a str,
    /// Name of the schema of the answer.
    answer: String,
    parameters: &'a [(&'a str, &'a str, &'a str)],
}

impl Operation<'_> {
    fn json(&self) -> Value {
        let parameter = |(name, type_, description): &(&str, &str, &str)| json!({ "name": name, "in": "query", "description": description, "schema": { "type": type_ } });
        let content = json!({ "application/json": { "schema": reference(&self.answer) } });
        json!({
            "operationId": self.id,
            "description": self.description,
            "tags": ["fluxion_v1alpha1"],
            "parameters": self.parameters.iter().map(parameter).collect::<Vec<_>>(),
            "responses": {
                "200": { "description": "OK", "content": content },
                "401": { "description": "Unauthorized" },
            },
            "x-kubernetes-action": self.action,
            "x-kubernetes-group-version-kind": { "group": GROUP, "version": VERSION, "kind": self.kind },
        })
    }
}

/// All paths.
pub(super) fn paths() -> Map<String, Value> {
    RESOURCES.iter().flat_map(of_resource).collect()
}

fn of_resource(resource: &Described) -> Vec<(String, Value)> {
    let base = format!("/apis/{API_VERSION}");
    let namespaced = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let (kind, plural) = (resource.kind, resource.plural);
    let list = |of: &str| Operation {
        id: format!("listFluxion{VERSION}{of}{kind}"),
        description: format!("list or watch objects of kind {kind}"),
        action: "list",
        kind,
        answer: format!("{kind}List"),
        parameters: LIST_PARAMETERS,
    };
    let get = Operation {
        id: format!("readFluxion{VERSION}{kind}"),
        description: format!("read the specified {kind}"),
        action: "get",
        kind,
        answer: kind.to_owned(),
        parameters: GET_PARAMETERS,
    };
    let collection = format!("{base}{namespaced}/{plural}");
    let one = format!("{collection}/{{name}}");
    let mut paths = vec![
        (
            collection,
            path(namespaced, false, "get", &list(if resource.namespaced { "Namespaced" } else { "" })),
        ),
        (one.clone(), path(namespaced, true, "get", &get)),
    ];
    if resource.namespaced {
        paths.push((format!("{base}/{plural}"), path("", false, "get", &list("AllNamespaces"))));
    }
    for (name, answer, verb) in resource.subresources {
        let posted = *verb == "create";
        let operation = Operation {
            id: format!("{verb}Fluxion{VERSION}{kind}{answer}"),
            description: format!("{verb} {name} of the specified {kind}"),
            action: if posted { "post" } else { "get" },
            kind: answer,
            answer: (*answer).to_owned(),
            parameters: if posted { CANCEL_PARAMETERS } else { GET_PARAMETERS },
        };
        let method = if posted { "post" } else { "get" };
        paths.push((format!("{one}/{name}"), path(namespaced, true, method, &operation)));
    }
    paths
}

fn path(namespaced: &str, named: bool, method: &str, operation: &Operation<'_>) -> Value {
    let parameter = |name: &str, description: &str| {
        json!({
            "name": name,
            "in": "path",
            "description": description,
            "required": true,
            "schema": { "type": "string" },
        })
    };
    let mut parameters = Vec::new();
    if named {
        parameters.push(parameter("name", "name of the object"));
    }
    if !namespaced.is_empty() {
        parameters.push(parameter("namespace", "namespace of the object"));
    }
    json!({ method: operation.json(), "parameters": parameters })
}
