//! The objects described as schemas of `OpenAPI` 3.0, taken from the types and what is written about them.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::meta::ListMeta;
use crate::{
    CancelAnswer, FluxionAudit, FluxionExplanation, FluxionGraph, FluxionJob, FluxionNode, FluxionQueue,
    FluxionTimeline,
};

/// Where references to other schemas point.
pub const REFERENCES: &str = "#/components/schemas/";

/// A schema for each type of the API, by its name.
pub fn schemas() -> Map<String, Value> {
    let settings = SchemaSettings::openapi3().for_serialize();
    let mut generator = settings.into_generator();
    with::<FluxionJob>(&mut generator);
    with::<FluxionNode>(&mut generator);
    with::<FluxionQueue>(&mut generator);
    with::<FluxionGraph>(&mut generator);
    with::<FluxionTimeline>(&mut generator);
    with::<FluxionAudit>(&mut generator);
    with::<FluxionExplanation>(&mut generator);
    with::<CancelAnswer>(&mut generator);
    with::<ListMeta>(&mut generator);
    generator.take_definitions(true)
}

fn with<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_to_a_schema() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(members) => {
                    found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
                    members.values().for_each(|member| references(member, found));
                }
                Value::Array(items) => items.iter().for_each(|item| references(item, found)),
                _ => {}
            }
        }
        let schemas = schemas();
        let mut found = Vec::new();
        schemas.values().for_each(|schema| references(schema, &mut found));
        assert!(found.len() > 20, "{found:?}");
        for reference in found {
            let name = reference.strip_prefix(REFERENCES).unwrap();
            assert!(schemas.contains_key(name), "{reference}");
        }
    }
}
