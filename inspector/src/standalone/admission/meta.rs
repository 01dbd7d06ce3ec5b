//! `metadata`: names, labels, annotations, owners; and label selectors, which are about other objects' metadata.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::problems::{Path, Problems};
use super::syntax::{self, Rule, dns_label, label_value, qualified_name};

/// Maximum total size of an object's annotations (keys and values).
const ANNOTATIONS_MAX: usize = 256 << 10;

/// Metadata of an object whose names follow `rule`; its name and namespace have been set.
pub(super) fn object(meta: &ObjectMeta, rule: Rule, path: &Path<'_>, problems: &mut Problems) {
    if let Some(start) = meta.generate_name.as_deref().filter(|start| !start.is_empty()) {
        // A suffix is appended: a trailing hyphen is not the last character.
        let sample = start.strip_suffix('-').map(|start| format!("{start}a"));
        problems.names(&path.field("generateName"), start, rule(sample.as_deref().unwrap_or(start)));
    }
    match meta.name.as_deref().unwrap_or_default() {
        "" => problems.required(&path.field("name"), "name or generateName is required"),
        name => problems.names(&path.field("name"), name, rule(name)),
    }
    if let Some(namespace) = &meta.namespace {
        problems.names(&path.field("namespace"), namespace, dns_label(namespace));
    }
    described(meta, path, problems);
    for finalizer in meta.finalizers.iter().flatten() {
        problems.names(&path.field("finalizers"), finalizer, qualified_name(finalizer));
    }
    owners(meta, path, problems);
}

/// Labels and annotations, i.e. the metadata of a template.
pub(super) fn described(meta: &ObjectMeta, path: &Path<'_>, problems: &mut Problems) {
    labels(meta.labels.as_ref(), &path.field("labels"), problems);
    let path = path.field("annotations");
    let mut size = 0;
    for (key, value) in meta.annotations.iter().flatten() {
        problems.names(&path, key, qualified_name(&key.to_ascii_lowercase()));
        size += key.len() + value.len();
    }
    if size > ANNOTATIONS_MAX {
        problems.too_long(&path, ANNOTATIONS_MAX);
    }
}

/// Labels, or a selector in the same form.
pub(super) fn labels(map: Option<&BTreeMap<String, String>>, path: &Path<'_>, problems: &mut Problems) {
    for (key, value) in map.into_iter().flatten() {
        problems.names(path, key, qualified_name(key));
        problems.names(&path.key(key), value, label_value(value));
    }
}

fn owners(meta: &ObjectMeta, path: &Path<'_>, problems: &mut Problems) {
    let path = path.field("ownerReferences");
    let mut controller: Option<&str> = None;
    for (index, owner) in meta.owner_references.iter().flatten().enumerate() {
        let path = path.item(index);
        let fields = [
            ("apiVersion", &owner.api_version),
            ("kind", &owner.kind),
            ("name", &owner.name),
            ("uid", &owner.uid),
        ];
        for (field, value) in fields.into_iter().filter(|(_, value)| value.is_empty()) {
            problems.invalid(&path.field(field), value, "must not be empty");
        }
        if owner.controller == Some(true) {
            if let Some(first) = controller {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {}",
                    owner.kind
                );
                problems.invalid(&path.field("controller"), "true", &why);
            }
            controller.get_or_insert(&owner.kind);
        }
    }
}

/// A selector of labels.
pub(super) fn selector(selector: &LabelSelector, path: &Path<'_>, problems: &mut Problems) {
    labels(selector.match_labels.as_ref(), &path.field("matchLabels"), problems);
    let list = path.field("matchExpressions");
    for (index, expression) in selector.match_expressions.iter().flatten().enumerate() {
        let path = list.item(index);
        let values = expression.values.as_deref().unwrap_or_default();
        let values_path = path.field("values");
        match expression.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => {
                problems.required(&values_path, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                problems.forbidden(
                    &values_path,
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                );
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => problems.invalid(&path.field("operator"), other, "not a valid selector operator"),
        }
        problems.names(&path.field("key"), &expression.key, qualified_name(&expression.key));
        for (index, value) in values.iter().enumerate() {
            problems.names(&values_path.item(index), value, label_value(value));
        }
    }
}

/// Whether a valid selector matches an object with these labels.
pub(super) fn selects(selector: &LabelSelector, labels: Option<&BTreeMap<String, String>>) -> bool {
    let value = |key: &str| labels.and_then(|labels| labels.get(key));
    let equal = selector.match_labels.iter().flatten().all(|(key, wanted)| value(key) == Some(wanted));
    equal
        && selector.match_expressions.iter().flatten().all(|expression| {
            let listed =
                |value: &String| expression.values.as_ref().is_some_and(|values| values.contains(value));
            let value = value(&expression.key);
            match expression.operator.as_str() {
                "In" => value.is_some_and(listed),
                "NotIn" => !value.is_some_and(listed),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

/// The rule for names of this kind of object.
pub(super) fn rule_of(kind: &str) -> Rule {
    // The Pods of a StatefulSet use its name in their host name.
    if kind == "StatefulSet" { syntax::dns_label } else { syntax::dns_subdomain }
}
