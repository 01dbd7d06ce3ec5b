//! Discovery, unaggregated and aggregated, and the server's version.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use fluxion_api::{API_VERSION, GROUP, VERSION};
use serde_json::{Value, json};

use super::accept::Accept;
use super::answer::{self, Tag};
use super::app::App;

/// Media type of aggregated discovery as requested and compared by kube-apiserver, including parameters.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// One resource of the API.
pub(super) struct Described {
    pub plural: &'static str,
    singular: &'static str,
    pub kind: &'static str,
    short: &'static [&'static str],
    pub namespaced: bool,
    verbs: &'static [&'static str],
    /// Whether manifests can be submitted, if the server accepts any.
    created: bool,
    /// Name, kind of the answer, verb.
    pub subresources: &'static [(&'static str, &'static str, &'static str)],
}

impl Described {
    /// The verbs supported by this server.
    fn verbs_of(&self, app: &App) -> Vec<&'static str> {
        let create = (self.created && app.submit.is_some()).then_some("create");
        create.into_iter().chain(self.verbs.iter().copied()).collect()
    }
}

const LISTED: &[&str] = &["get", "list", "watch"];
const READ: &[&str] = &["get", "list"];

// There is no `delete`: with it the cluster's garbage collector and namespace controller would watch these
// objects, and delete them by themselves.
pub(super) const RESOURCES: &[Described] = &[
    Described {
        plural: "fluxionjobs",
        singular: "fluxionjob",
        kind: "FluxionJob",
        short: &["fj"],
        namespaced: true,
        verbs: LISTED,
        created: true,
        subresources: &[("cancel", "CancelAnswer", "create"), ("explain", "FluxionExplanation", "get")],
    },
    Described {
        plural: "fluxionnodes",
        singular: "fluxionnode",
        kind: "FluxionNode",
        short: &["fn"],
        namespaced: false,
        verbs: LISTED,
        created: false,
        subresources: &[],
    },
    Described {
        plural: "fluxionqueues",
        singular: "fluxionqueue",
        kind: "FluxionQueue",
        short: &["fq"],
        namespaced: false,
        verbs: LISTED,
        created: false,
        subresources: &[],
    },
    Described {
        plural: "fluxiongraphs",
        singular: "fluxiongraph",
        kind: "FluxionGraph",
        short: &[],
        namespaced: false,
        verbs: READ,
        created: false,
        subresources: &[],
    },
    Described {
        plural: "fluxiontimelines",
        singular: "fluxiontimeline",
        kind: "FluxionTimeline",
        short: &[],
        namespaced: false,
        verbs: READ,
        created: false,
        subresources: &[],
    },
    Described {
        plural: "fluxionaudits",
        singular: "fluxionaudit",
        kind: "FluxionAudit",
        short: &[],
        namespaced: false,
        verbs: READ,
        created: false,
        subresources: &[],
    },
];

/// `/apis`: the groups, in the form that is asked for.
pub(super) async fn groups(State(app): State<App>, accept: Accept, headers: HeaderMap) -> Response {
    let (body, content_type) = if wants_aggregated(&accept) {
        (aggregated(&app), AGGREGATED)
    } else {
        let groups = json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [api_group()] });
        (groups, "application/json")
    };
    let body = body.to_string();
    answer::tagged(&headers, &Tag::of(body.as_bytes()), body, content_type)
}

/// `/apis/GROUP`.
pub(super) async fn group() -> Json<Value> {
    let mut group = api_group();
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    Json(group)
}

/// `/apis/GROUP/VERSION`: the resources.
pub(super) async fn resources(State(app): State<App>) -> Json<Value> {
    let mut list = Vec::new();
    for resource in RESOURCES {
        list.push(json!({
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": resource.verbs_of(&app),
            "shortNames": resource.short,
            "categories": ["fluxion"],
        }));
        for (name, kind, verb) in resource.subresources {
            list.push(json!({
                "name": format!("{}/{name}", resource.plural),
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": kind,
                "verbs": [verb],
            }));
        }
    }
    Json(
        json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": API_VERSION, "resources": list }),
    )
}

/// `/version`, with the fields that Kubernetes clients read.
pub(super) async fn version() -> Json<Value> {
    let version = env!("CARGO_PKG_VERSION");
    let mut parts = version.split('.');
    Json(json!({
        "major": parts.next(),
        "minor": parts.next(),
        "gitVersion": format!("v{version}"),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
        "name": env!("CARGO_PKG_NAME"),
    }))
}

fn api_group() -> Value {
    let version = json!({ "groupVersion": API_VERSION, "version": VERSION });
    json!({ "name": GROUP, "versions": [version], "preferredVersion": version })
}

fn aggregated(app: &App) -> Value {
    let response_kind = |kind: &str| json!({ "group": GROUP, "version": VERSION, "kind": kind });
    let resources = RESOURCES.iter().map(|resource| {
        let subresources = resource.subresources.iter().map(|(name, kind, verb)| {
            json!({ "subresource": name, "responseKind": response_kind(kind), "verbs": [verb] })
        });
        json!({
            "resource": resource.plural,
            "responseKind": response_kind(resource.kind),
            "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
            "singularResource": resource.singular,
            "verbs": resource.verbs_of(app),
            "shortNames": resource.short,
            "categories": ["fluxion"],
            "subresources": subresources.collect::<Vec<_>>(),
        })
    });
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [{
            "metadata": { "name": GROUP, "creationTimestamp": null },
            "versions": [{ "version": VERSION, "resources": resources.collect::<Vec<_>>(), "freshness": "Current" }],
        }],
    })
}

/// Whether aggregated discovery is more welcome than plain JSON.
fn wants_aggregated(accept: &Accept) -> bool {
    let is_json = accept.ranges().filter(|range| range.names("application/json"));
    let wanted = [("g", "apidiscovery.k8s.io"), ("v", "v2"), ("as", "APIGroupDiscoveryList")];
    let aggregated = |name: &str| wanted.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    is_json
        .map(|range| {
            let is = |name| range.parameter(name) == aggregated(name);
            (range.parameter("as").is_none(), is("g") && is("v") && is("as"))
        })
        .find(|(plain, aggregated)| *plain || *aggregated)
        .is_some_and(|(_, aggregated)| aggregated)
}
