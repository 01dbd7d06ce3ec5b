use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn read<T: DeserializeOwned>(
    translate: fn(&T) -> Result<StorageObject, Unreadable>,
    object: Value,
) -> StorageObject {
    translate(&serde_json::from_value(object).unwrap()).unwrap()
}

#[test]
fn a_claim_says_what_it_wants_and_how_far_it_is() {
    let object = json!({
        "metadata": {"name": "c", "namespace": "a", "uid": "u",
            "annotations": {OLD_CLASS: "old", SELECTED_NODE: "n1", SELECTED_AT: "17"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "pod", "controller": true}]},
        "spec": {"storageClassName": "new", "accessModes": ["ReadWriteOncePod"], "volumeMode": "Block",
            "resources": {"requests": {"storage": "1500m"}},
            "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "x", "operator": "Odd"}]}}});
    let StorageObject::Claim(found) = read(claim, object) else { panic!() };
    assert_eq!((&*found.class, found.size, found.block, found.exclusive()), ("old", Some(2), true, true));
    assert_eq!((found.selected.as_deref(), found.selected_at), (Some("n1"), Some(17)));
    assert_eq!((found.controller.as_deref(), found.bound()), (Some("pod"), None));
    let selector = found.selector.unwrap();
    assert_eq!((selector.len(), &*selector[0].values[0], selector[1].values.len()), (2, "b", 0));
    let bound = json!({"metadata": {"name": "c", "namespace": "a", "uid": "u", "annotations": {BIND_COMPLETED: "yes"}},
        "spec": {"volumeName": "v", "resources": {"requests": {"storage": "much"}}}, "status": {"phase": "Lost"}});
    let StorageObject::Claim(found) = read(claim, bound) else { panic!() };
    assert_eq!((found.bound().map(AsRef::as_ref), found.lost, found.size), (Some("v"), true, Some(u64::MAX)));
}

#[test]
fn a_volume_says_whose_it_is_and_from_where_it_can_be_used() {
    let affinity = json!({"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}});
    let mut object = json!({
        "metadata": {"name": "v", "uid": "u", "resourceVersion": "5", "labels": {"l": "1"}},
        "spec": {"capacity": {"storage": "1500m"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "c",
            "csi": {"driver": "d", "volumeHandle": "h"}, "nodeAffinity": affinity},
        "status": {"phase": "Available"}});
    let StorageObject::Volume(found) = read(volume, object.clone()) else { panic!() };
    assert_eq!((found.size, &*found.version, found.available, found.block), (1, "5", true, false));
    assert_eq!(found.csi, Some(("d".into(), "h".into())));
    assert_eq!(found.affinity.unwrap()[0].labels[0].key, "zone".into());
    object["spec"]["claimRef"] = json!({"namespace": "a", "name": "c"});
    let StorageObject::Volume(found) = read(volume, object) else { panic!() };
    assert_eq!((&*found.version, &*found.claimant.unwrap().name), ("", "c"));
}

#[test]
fn classes_drivers_and_capacities() {
    let object = json!({"metadata": {"name": "s", "uid": "u"}, "provisioner": "d",
        "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": [
            {"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}, {}]});
    let StorageObject::Class(class) = read(storage_class, object) else { panic!() };
    assert!(
        class.waits
            && class.topologies[0].labels[0].values.len() == 2
            && class.topologies[1].labels.is_empty()
    );
    let object = json!({"metadata": {"name": "d", "uid": "u"}, "spec": {"storageCapacity": true}});
    let StorageObject::Driver(found) = read(driver, object) else { panic!() };
    assert_eq!((&*found.name, found.tracks_capacity, found.must_be_installed), ("d", true, false));
    let object =
        json!({"metadata": {"name": "d", "uid": "u"}, "spec": {"preventPodSchedulingIfMissing": true}});
    let StorageObject::Driver(found) = read(driver, object) else { panic!() };
    assert!(found.must_be_installed && !found.tracks_capacity);
    let object = json!({"metadata": {"name": "n1", "uid": "u"}, "spec": {"drivers": [
        {"name": "d", "nodeID": "x", "allocatable": {"count": 3}, "topologyKeys": ["zone"]},
        {"name": "e", "nodeID": "x"}]}});
    let StorageObject::Node(found) = read(node, object) else { panic!() };
    assert_eq!(found.installed, ["d".into(), "e".into()].into());
    assert_eq!((found.limits, &*found.topology["d"][0]), ([("d".into(), 3)].into(), "zone"));
    let mut object = json!({"metadata": {"name": "c", "namespace": "k", "uid": "u"}, "storageClassName": "s",
        "capacity": "2Ki", "nodeTopology": {}});
    let StorageObject::Capacity(found) = read(capacity, object.clone()) else { panic!() };
    assert_eq!((found.largest, found.nodes), (Some(2048), Some(Vec::new())));
    object["maximumVolumeSize"] = json!("1Ki");
    object["nodeTopology"] = Value::Null;
    let StorageObject::Capacity(found) = read(capacity, object) else { panic!() };
    assert_eq!((found.largest, found.nodes), (Some(1024), None));
}
