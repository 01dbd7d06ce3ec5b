//! The schemas of the API's objects, as Kubernetes' clients read them: names with a prefix, kinds marked, and nothing
//! that `OpenAPI` 3.0 or `kubectl explain` does not know.

use fluxion_api::schema::{self, REFERENCES};
use fluxion_api::{GROUP, VERSION};
use serde_json::{Map, Value, json};

use crate::http::discovery::RESOURCES;

/// Before the names of our types.
const OURS: &str = "org.flux-framework.fluxion.v1alpha1.";
/// Before the names of those that Kubernetes has too.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// A reference to the schema of a type.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{REFERENCES}{}", full(name)) })
}

fn full(name: &str) -> String {
    let prefix = if matches!(name, "ObjectMeta" | "ListMeta") { META } else { OURS };
    format!("{prefix}{name}")
}

/// All schemas.
pub(super) fn schemas() -> Map<String, Value> {
    let mut schemas = Map::new();
    let answers = RESOURCES.iter().flat_map(|resource| resource.subresources).map(|(_, kind, _)| *kind);
    let kinds: Vec<&str> = RESOURCES.iter().map(|resource| resource.kind).chain(answers).collect();
    for (name, mut schema) in schema::schemas() {
        tidy(&mut schema);
        if kinds.contains(&name.as_str()) {
            mark(&mut schema, &name);
        }
        schemas.insert(full(&name), schema);
    }
    for resource in RESOURCES {
        let kind = format!("{}List", resource.kind);
        let mut list = json!({
            "type": "object",
            "description": format!("{kind} is a list of {} objects.", resource.kind),
            "properties": {
                "apiVersion": {},
                "kind": {},
                "metadata": referring(reference("ListMeta"), "List metadata: resource version and continue token."),
                "items": {
                    "type": "array",
                    "description": "The objects.",
                    "items": reference(resource.kind),
                },
            },
            "required": ["items"],
        });
        mark(&mut list, &kind);
        schemas.insert(full(&kind), list);
    }
    schemas
}

/// Says which kind the objects of a schema are.
fn mark(schema: &mut Value, kind: &str) {
    schema["x-kubernetes-group-version-kind"] = json!([{ "group": GROUP, "version": VERSION, "kind": kind }]);
    schema["properties"]["apiVersion"] = json!({
        "type": "string",
        "description": format!("The version of the schema of this object: {GROUP}/{VERSION}."),
    });
    schema["properties"]["kind"] =
        json!({ "type": "string", "description": format!("The kind of this object: {kind}.") });
}

fn referring(reference: Value, description: &str) -> Value {
    json!({ "allOf": [reference], "description": description })
}

/// Makes a schema, and all within it, what Kubernetes' clients expect.
fn tidy(schema: &mut Value) {
    match schema {
        // Anything at all.
        Value::Bool(true) => {
            *schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        }
        Value::Object(members) => tidy_object(members),
        _ => {}
    }
}

fn tidy_object(schema: &mut Map<String, Value>) {
    for noise in ["title", "default", "$schema", "required"] {
        schema.remove(noise);
    }
    if let Some(Value::String(target)) = schema.get_mut("$ref")
        && let Some(name) = target.strip_prefix(REFERENCES)
    {
        *target = format!("{REFERENCES}{}", full(name));
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    for within in ["properties", "patternProperties"] {
        if let Some(Value::Object(members)) = schema.get_mut(within) {
            members.values_mut().for_each(tidy);
        }
    }
    for within in ["items", "additionalProperties"] {
        if let Some(inner @ (Value::Object(_) | Value::Bool(true))) = schema.get_mut(within) {
            tidy(inner);
        }
    }
    for within in ["allOf", "anyOf", "oneOf"] {
        if let Some(Value::Array(schemas)) = schema.get_mut(within) {
            schemas.iter_mut().for_each(tidy);
        }
    }
    optional(schema);
    words(schema);
    if !["type", "$ref", "allOf", "anyOf", "oneOf", "enum"].iter().any(|key| schema.contains_key(*key)) {
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
    }
}

/// A choice between an object and nothing is an object that may be absent.
fn optional(schema: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = schema.get("anyOf") else { return };
    if let [object, nothing] = choices.as_slice()
        && nothing.get("enum") == Some(&json!([null]))
    {
        let object = object.clone();
        schema.remove("anyOf");
        schema.insert("allOf".to_owned(), json!([object]));
        schema.insert("nullable".to_owned(), json!(true));
    }
}

/// A choice of words becomes one list of words, with what each of them means in the description; a choice of objects
/// is an object.
fn words(schema: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = schema.get("oneOf").or(schema.get("anyOf")) else { return };
    let word = |choice: &Value| -> Option<Vec<(String, String)>> {
        let words = choice.get("enum")?.as_array()?;
        let meaning = choice.get("description").and_then(Value::as_str).unwrap_or_default();
        words.iter().map(|word| Some((word.as_str()?.to_owned(), meaning.to_owned()))).collect()
    };
    let Some(words) = choices.iter().map(word).collect::<Option<Vec<_>>>() else {
        schema.insert("type".to_owned(), json!("object"));
        return;
    };
    let words = words.concat();
    let first = schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    let explained = words.iter().filter(|(_, meaning)| !meaning.is_empty());
    let sentences = explained.map(|(word, meaning)| format!(" {word}: {meaning}"));
    let description: String = std::iter::once(first).chain(sentences).collect();
    schema.remove("oneOf");
    schema.remove("anyOf");
    schema.insert("type".to_owned(), json!("string"));
    schema.insert("enum".to_owned(), words.into_iter().map(|(word, _)| word).collect());
    schema.insert("description".to_owned(), json!(description.trim()));
}
