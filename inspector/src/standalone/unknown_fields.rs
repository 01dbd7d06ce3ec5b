//! Finds unknown fields in a manifest: a misspelled `resoures` would silently request nothing.

use serde_json::Value;

/// Maximum number of fields reported per object; further ones are only mentioned.
pub(super) const NAMED_MAX: usize = 10;

/// Paths in `written` that are missing after a round trip through the API type (`understood`); at most one more than
/// are reported. Empty and null values may be missing.
pub(super) fn unknown_fields(written: &Value, understood: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(written, Some(understood), &mut String::new(), &mut found);
    found
}

fn walk(written: &Value, understood: Option<&Value>, path: &mut String, found: &mut Vec<String>) {
    if found.len() > NAMED_MAX {
        return;
    }
    let length = path.len();
    match (written, understood) {
        (Value::Object(fields), Some(Value::Object(known))) => {
            for (key, field) in fields {
                if length > 0 {
                    path.push('.');
                }
                path.push_str(key);
                walk(field, known.get(key), path, found);
                path.truncate(length);
            }
        }
        (Value::Array(items), Some(Value::Array(known))) => {
            for (index, item) in items.iter().enumerate() {
                path.push('[');
                path.push_str(&index.to_string());
                path.push(']');
                walk(item, known.get(index), path, found);
                path.truncate(length);
            }
        }
        (_, None) if !says_nothing(written) => found.push(path.clone()),
        _ => {}
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(says_nothing),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_was_lost_is_named() {
        let written =
            json!({"a": {"b": 1, "typo": 2}, "list": [{"x": 1}, {"y": 2}], "empty": {}, "none": null});
        let understood = json!({"a": {"b": 1}, "list": [{"x": 1}, {}]});
        assert_eq!(unknown_fields(&written, &understood), ["a.typo", "list[1].y"]);
        assert!(unknown_fields(&written, &written).is_empty());
        let many: Value =
            (0..100).map(|n| (format!("f{n:03}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
        assert_eq!(unknown_fields(&many, &json!({})).len(), NAMED_MAX + 1);
    }
}
