//! Nodes, PodGroups of both APIs, priority classes.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use kube::core::DynamicObject;
use serde_json::Value;

use super::placement::EFFECTS;
use super::problems::{Path, Problems, one_of};
use super::quantities::{Quantities, offered, value};
use super::syntax::{dns_subdomain, label_value, qualified_name};

const SPEC: Path<'static> = Path::root("spec");
/// Highest priority of a user-defined class.
const USER_PRIORITY_MAX: i32 = 1_000_000_000;
/// Classes that exist in every cluster.
pub(super) const BUILT_IN: [(&str, i32); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// A Node.
pub(super) fn node(node: &Node, problems: &mut Problems) {
    let status = Path::root("status");
    if let Some(own) = &node.status {
        offered(own.capacity.as_ref(), &status.field("capacity"), problems);
        offered(own.allocatable.as_ref(), &status.field("allocatable"), problems);
    }
    let list = SPEC.field("taints");
    let mut seen = BTreeSet::new();
    for (index, taint) in node.spec.iter().filter_map(|spec| spec.taints.as_ref()).flatten().enumerate() {
        let path = list.item(index);
        problems.names(&path.field("key"), &taint.key, qualified_name(&taint.key));
        let text = taint.value.as_deref().unwrap_or_default();
        problems.names(&path.field("value"), text, label_value(text));
        if taint.effect.is_empty() {
            problems.required(&path.field("effect"), "");
        } else {
            one_of(Some(&taint.effect), &EFFECTS, |text, values| {
                problems.unsupported(&path.field("effect"), text, values);
            });
        }
        if !seen.insert((&taint.key, &taint.effect)) {
            let taint = format!("{}:{}", taint.key, taint.effect);
            problems.clashes(&path, &taint, "taints must be unique by key and effect pair");
        }
    }
}

/// A PodGroup of scheduling.k8s.io.
pub(super) fn native_group(group: &PodGroup, problems: &mut Problems) {
    let spec = &group.spec;
    let path = SPEC.field("schedulingPolicy");
    match (&spec.scheduling_policy.basic, &spec.scheduling_policy.gang) {
        (None, None) => problems.required(&path, "exactly one of `basic`, `gang` is required"),
        (Some(_), Some(_)) => {
            let why = "exactly one of `basic`, `gang` is required, but multiple fields are set";
            problems.invalid(&path, "{`basic`, `gang`}", why);
        }
        (None, Some(gang)) => {
            let path = path.field("gang");
            match gang.min_count {
                0 => problems.required(&path.field("minCount"), ""),
                least if least < 0 => {
                    let why = "must be greater than or equal to 1";
                    problems.invalid(&path.field("minCount"), least, why);
                }
                _ => {}
            }
        }
        (Some(_), None) => {}
    }
    let levels = spec.scheduling_constraints.as_ref().and_then(|constraints| constraints.topology.as_ref());
    let constraints = SPEC.field("schedulingConstraints");
    let list = constraints.field("topology");
    if let Some(levels) = levels.filter(|levels| levels.len() > 1) {
        problems.too_many(&list, levels.len(), 1);
    }
    for (index, level) in levels.into_iter().flatten().enumerate() {
        let path = list.item(index);
        if level.key.is_empty() {
            problems.required(&path.field("key"), "");
        } else {
            problems.names(&path.field("key"), &level.key, qualified_name(&level.key));
        }
    }
    class_name(spec.priority_class_name.as_deref(), problems);
}

fn class_name(name: Option<&str>, problems: &mut Problems) {
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        problems.names(&SPEC.field("priorityClassName"), name, dns_subdomain(name));
    }
}

/// A PodGroup of scheduling.x-k8s.io, according to the schema of its CRD.
pub(super) fn sigs_group(group: &DynamicObject, problems: &mut Problems) {
    let Some(spec) = group.data.get("spec").filter(|spec| !spec.is_null()) else { return };
    if !spec.is_object() {
        return problems.wrong_type(&SPEC, "object", spec);
    }
    for field in ["minMember", "scheduleTimeoutSeconds"] {
        let path = SPEC.field(field);
        match spec.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::Number(number)) if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => {
                let number = number.as_i64().unwrap_or_default();
                if field == "minMember" && number < 1 {
                    let why = format!("{path} in body should be greater than or equal to 1");
                    problems.invalid(&path, number, &why);
                }
            }
            Some(other) => problems.wrong_type(&path, "integer", other),
        }
    }
    let resources = spec.get("minResources").map(|list| serde_json::from_value::<Quantities>(list.clone()));
    let path = SPEC.field("minResources");
    match resources {
        Some(Ok(resources)) => {
            for (name, quantity) in &resources {
                value(name, quantity, &path.key(name), problems);
            }
        }
        Some(Err(_)) => problems.wrong_type(&path, "object", &spec["minResources"]),
        None => {}
    }
}

/// A priority class.
pub(super) fn priority_class(class: &PriorityClass, problems: &mut Problems) {
    let name = class.metadata.name.as_deref().unwrap_or_default();
    let value = class.value.unwrap_or(0);
    if name.starts_with("system-") {
        if !BUILT_IN.contains(&(name, value)) {
            let why = "priority class names with 'system-' prefix are reserved for system use only";
            problems.forbidden(&Path::root("metadata").field("name"), why);
        }
    } else if value > USER_PRIORITY_MAX {
        let why = format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}");
        problems.forbidden(&Path::root("value"), &why);
    }
    one_of(class.preemption_policy.as_deref(), &["PreemptLowerPriority", "Never"], |text, values| {
        problems.unsupported(&Path::root("preemptionPolicy"), text, values);
    });
}
