use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::constraint::{Exclusion, Expression, NodeConstraint, NodeFacts, Operator, Term, eligible};

fn labels(text: &str) -> BTreeMap<Arc<str>, Arc<str>> {
    let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.into(), value.into())).collect()
}

fn node(name: &str, text: &str) -> NodeFacts {
    NodeFacts { name: name.into(), labels: labels(text), ready: true, ..NodeFacts::default() }
}

fn one(key: &str, value: &str) -> Expression {
    Expression { key: key.into(), operator: Operator::In, values: vec![value.into()] }
}

fn term(labels: Vec<Expression>, fields: Vec<Expression>) -> Arc<[Term]> {
    Arc::new([Term { labels, fields }])
}

fn judged(rule: VolumeRule, node: &NodeFacts) -> Result<(), Exclusion> {
    eligible(&NodeConstraint { volumes: vec![rule], ..NodeConstraint::default() }, node)
}

fn claim(size: u64) -> Claim {
    Claim {
        namespace: "a".into(),
        name: "c".into(),
        uid: "u".into(),
        class: "s".into(),
        size: Some(size),
        modes: ["ReadWriteOnce".into()].into(),
        ..Claim::default()
    }
}

fn volume(name: &str, size: u64) -> PersistentVolume {
    PersistentVolume {
        name: name.into(),
        class: "s".into(),
        size,
        modes: ["ReadWriteOnce".into(), "ReadOnlyMany".into()].into(),
        available: true,
        ..PersistentVolume::default()
    }
}

fn class(waits: bool) -> StorageClass {
    let topologies = Arc::default();
    StorageClass { name: "s".into(), provisioner: "kubernetes.io/no-provisioner".into(), waits, topologies }
}

/// The names of the volumes that a claim can get.
fn candidates(claim: &Claim, volumes: &[PersistentVolume]) -> Vec<String> {
    let mut storage = Storage::default();
    for volume in volumes {
        storage.set(StorageObject::Volume(volume.clone()));
    }
    let unbound = storage.unbound(claim);
    unbound.candidates(&storage).iter().map(|volume| volume.name.to_string()).collect()
}

#[test]
fn a_volume_is_reached_by_its_node_affinity_from_labels_alone() {
    let zone = VolumeRule::Affinity(term(vec![one("zone", "a")], Vec::new()));
    assert_eq!(judged(zone.clone(), &node("n", "zone=a")), Ok(()));
    assert_eq!(judged(zone, &node("n", "zone=b")), Err(Exclusion::VolumeAffinity));
    // kube-scheduler does not compare the name.
    let named = |labels| VolumeRule::Affinity(term(labels, vec![one("metadata.name", "other")]));
    assert_eq!(judged(named(Vec::new()), &node("n", "")), Ok(()));
    assert_eq!(judged(named(vec![one("zone", "a")]), &node("n", "")), Err(Exclusion::VolumeAffinity));
    assert_eq!(
        judged(VolumeRule::Affinity(term(Vec::new(), Vec::new())), &node("n", "")),
        Err(Exclusion::VolumeAffinity)
    );
    assert_eq!(judged(VolumeRule::Node("n".into()), &node("n", "")), Ok(()));
    assert_eq!(judged(VolumeRule::Node("n".into()), &node("m", "")), Err(Exclusion::VolumeNode("n".into())));
}

#[test]
fn zones_of_volumes_matter_where_nodes_have_zones() {
    let rule = |key: &str| VolumeRule::Zone { key: key.into(), values: ["a".into(), "b".into()].into() };
    let (old, new) = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone");
    for (key, text, fits) in [
        (new, "", true),
        (new, "topology.kubernetes.io/zone=a", true),
        (new, "topology.kubernetes.io/zone=c", false),
        (new, "topology.kubernetes.io/region=r", false),
        (old, "topology.kubernetes.io/zone=b", true),
        (new, "failure-domain.beta.kubernetes.io/zone=a", false),
    ] {
        assert_eq!(judged(rule(key), &node("n", text)).is_ok(), fits, "{key} {text}");
    }
    let mut storage = Storage::default();
    let labels = labels("topology.kubernetes.io/zone=a__b topology.kubernetes.io/region=r__");
    storage.set(StorageObject::Volume(PersistentVolume { labels: Arc::new(labels), ..volume("v", 1) }));
    storage.set(StorageObject::Claim(Claim { volume: Some("v".into()), complete: true, ..claim(1) }));
    let volumes = PodVolumes { claims: vec![ClaimUse { name: "c".into(), ephemeral: false }], disks: vec![] };
    let pod = Mounted { namespace: &"a".into(), uid: "p", volumes: &volumes };
    assert_eq!(resolve(&storage, pod, &|_| false).unwrap().rules, [rule(new)]);
}

#[test]
fn a_claim_gets_the_smallest_volume_that_has_everything() {
    let claims = claim(10);
    let bad: [fn(&mut PersistentVolume); 7] = [
        |volume| volume.size = 9,
        |volume| volume.available = false,
        |volume| volume.deleting = true,
        |volume| volume.block = true,
        |volume| volume.modes = ["ReadWriteMany".into()].into(),
        |volume| volume.attributes_class = "gold".into(),
        |volume| volume.class = "t".into(),
    ];
    for (index, change) in bad.into_iter().enumerate() {
        let mut other = volume("x", 10);
        change(&mut other);
        assert_eq!(candidates(&claims, &[other]), [""; 0], "{index}");
    }
    let volumes = [volume("c", 30), volume("b", 20), volume("a", 20), volume("d", 5)];
    assert_eq!(candidates(&claims, &volumes), ["a", "b", "c"]);
    let selective = Claim { selector: Some(vec![one("tier", "fast")]), ..claims.clone() };
    let fast = PersistentVolume { labels: Arc::new(labels("tier=fast")), ..volume("f", 90) };
    assert_eq!(candidates(&selective, &[volume("a", 10), fast]), ["f"]);
    // One that is reserved for it is the only one, whatever its state and labels.
    let claimant =
        |name: &str, uid: &str| VolumeClaimant { namespace: "a".into(), name: name.into(), uid: uid.into() };
    let reserved = |name: &str, uid: &str| PersistentVolume {
        claimant: Some(claimant(name, uid)),
        available: false,
        ..volume("r", 50)
    };
    assert_eq!(candidates(&claims, &[volume("a", 10), reserved("c", "")]), ["r"]);
    assert_eq!(candidates(&claims, &[volume("a", 10), reserved("c", "u")]), ["r"]);
    assert_eq!(candidates(&claims, &[volume("a", 10), reserved("c", "other")]), ["a"]);
    assert_eq!(candidates(&claims, &[reserved("d", "")]), [""; 0]);
    let selected = Claim { selected: Some("n".into()), ..claims };
    assert_eq!(candidates(&selected, &[volume("a", 10)]), [""; 0]);
}

#[test]
fn what_was_changed_tells_whom_it_concerns() {
    let mut storage = Storage::default();
    let set =
        |storage: &mut Storage, object: StorageObject| (storage.set(object.clone()), storage.set(object));
    let claim = StorageObject::Claim(claim(1));
    let key = ("a".into(), "c".into());
    assert_eq!(set(&mut storage, claim), (StorageChange::Claim(key), StorageChange::None));
    let change = StorageChange::Volume("v".into(), "s".into());
    assert_eq!(
        set(&mut storage, StorageObject::Volume(volume("v", 1))),
        (change.clone(), StorageChange::None)
    );
    assert_eq!(storage.remove(&StorageKey::Volume("v".into())), change);
    assert_eq!(storage.remove(&StorageKey::Volume("v".into())), StorageChange::None);
    let change = StorageChange::Unbound(Some("s".into()));
    assert_eq!(set(&mut storage, StorageObject::Class(class(true))), (change, StorageChange::None));
    let node = NodeDrivers { node: "n".into(), limits: [("d".into(), 1)].into(), ..NodeDrivers::default() };
    assert_eq!(set(&mut storage, StorageObject::Node(node)), (StorageChange::Limits, StorageChange::None));
    assert!(storage.is_limited("d"));
    storage.remove(&StorageKey::Node("n".into()));
    assert!(!storage.is_limited("d"));
    let failure = |uid: &str| ClaimFailure {
        uid: uid.into(),
        namespace: "a".into(),
        claim: "u".into(),
        message: uid.into(),
    };
    for uid in ["1", "2"] {
        storage.set(StorageObject::Failure(failure(uid)));
    }
    storage.remove(&StorageKey::Failure("1".into()));
    assert_eq!(storage.failure(&"a".into(), &"u".into()), Some(&"2".into()));
    assert_eq!(storage.failure(&"b".into(), &"u".into()), None, "an Event elsewhere says nothing about it");
    storage.remove(&StorageKey::Failure("2".into()));
    assert_eq!(storage.failure(&"a".into(), &"u".into()), None);
}

proptest! {
    /// Every claim that has to get a volume gets one if there is any way to do that.
    #[test]
    fn volumes_are_assigned_whenever_that_is_possible(
        lists in proptest::collection::vec((proptest::collection::vec(0..5_usize, 0..4), any::<bool>()), 0..6)
    ) {
        let claims: Vec<(Vec<Arc<str>>, bool)> = lists
            .iter()
            .map(|(list, required)| (list.iter().map(|at| at.to_string().into()).collect(), *required))
            .collect();
        let (given, all) = assign(&claims);
        let mut used = BTreeSet::new();
        for ((list, _), volume) in claims.iter().zip(&given) {
            if let Some(volume) = volume {
                prop_assert!(list.contains(volume) && used.insert(volume.clone()));
            }
        }
        let served = claims.iter().zip(&given).all(|((_, required), volume)| !required || volume.is_some());
        prop_assert_eq!(all, served);
        let wanted: Vec<&Vec<usize>> =
            lists.iter().filter(|(_, required)| *required).map(|(list, _)| list).collect();
        prop_assert_eq!(all, possible(&wanted, &mut BTreeSet::new()));
    }
}

/// Whether each list has an entry of its own, by trying everything.
fn possible(lists: &[&Vec<usize>], used: &mut BTreeSet<usize>) -> bool {
    let Some((first, rest)) = lists.split_first() else { return true };
    first.iter().any(|at| {
        let new = used.insert(*at);
        let found = new && possible(rest, used);
        if new {
            used.remove(at);
        }
        found
    })
}
