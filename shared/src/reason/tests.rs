use serde_json::{from_value, json, to_value};

use super::*;
use crate::words::NodeReasonClass;

fn busy(count: u32) -> NodesLeftOut {
    NodesLeftOut {
        count,
        class: NodeReasonClass::Insufficient,
        resource: Some("cpu".into()),
        requested: Some("8".into()),
        largest: Some("500m".into()),
        until: Some("2026-03-01T12:45:00Z".into()),
        ..NodesLeftOut::default()
    }
}

fn shape(members: u32, room: u32, left_out: Vec<NodesLeftOut>) -> Fact {
    let requests = [("cpu", "8"), ("pods", "1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    Fact::Nodes(Box::new(ShapeNodes {
        members,
        requests: requests.into(),
        room,
        available: room,
        total: 4,
        left_out,
        nearest: None,
    }))
}

fn gang(wanted: u32, room: u32) -> Fact {
    Fact::Together(Box::new(Together { wanted, of: wanted, room, ..Together::default() }))
}

fn names(names: &[&str], others: bool) -> JobNames {
    JobNames { names: names.iter().map(|name| (*name).to_owned()).collect(), others }
}

#[test]
fn facts_make_one_line_and_details() {
    let endless = NodesLeftOut { until: None, without_end: 1, ..busy(1) };
    let reason = Reason::new(
        ReasonClass::Busy,
        vec![
            shape(3, 2, vec![busy(2), endless]),
            gang(3, 2),
            Fact::RoomReserved { jobs: names(&["job/a"], true) },
        ],
    );
    assert_eq!(
        reason.text,
        "2/4 nodes are available: 2 had insufficient cpu, 1 had insufficient cpu; \
         3 members must start together, but there is room for only 2; \
         the remaining resources are reserved for job/a and others"
    );
    assert_eq!(
        reason.details(&|time| time.replace("2026-03-01T", "")),
        [
            "2 had insufficient cpu (8 requested, at most 0.5 available), the earliest until 12:45:00Z",
            "1 had insufficient cpu (8 requested, at most 0.5 available), without a planned end",
        ]
    );
    // Only the shape that lacks nodes is shown, with what it requests.
    let several = [shape(2, 2, Vec::new()), shape(1, 0, vec![busy(4)])];
    assert_eq!(
        line(&several),
        "for 1 member requesting cpu 8: 0/4 nodes are available: 4 had insufficient cpu"
    );
}

#[test]
fn every_class_of_nodes_reads_as_a_sentence() {
    let left = |class: NodeReasonClass, count| NodesLeftOut {
        count,
        class,
        resource: Some("memory".into()),
        requested: Some("2147483648".into()),
        largest: Some("1073741824".into()),
        value: Some("V".into()),
        jobs: names(&["job/a", "job/a", "job/b"], false),
        ..NodesLeftOut::default()
    };
    let texts: Vec<String> = NodeReasonClass::ALL.iter().map(|class| left(class.clone(), 2).text()).collect();
    assert_eq!(
        texts,
        [
            "were being deleted",
            "didn't match node selector V",
            "didn't match node affinity (V)",
            "had untolerated taint {V}",
            "were not ready",
            "were cordoned",
            "recently rejected a binding or a volume",
            "had no memory",
            "had too little memory (2Gi requested, at most 1Gi per node)",
            "had at most 1Gi memory even when empty (2Gi requested)",
            "had insufficient memory",
            "had host port V in use",
            "were reserved for job/a, job/b",
            "didn't match pod affinity rules",
            "didn't match pod anti-affinity rules",
            "didn't satisfy existing pods' anti-affinity rules",
            "didn't have topology label V",
            "didn't match pod topology spread constraints (V)",
            "didn't match PersistentVolume's node affinity",
            "had no available volume zone",
            "couldn't use a volume that is being provisioned for node V",
            "didn't match the StorageClass's allowed topologies",
            "were excluded because ReadWriteOncePod claim V is in use",
            "had the disk in use by another pod",
            "didn't have the CSI driver V installed",
            "would exceed the maximum volume count of V",
            "didn't find available persistent volumes to bind (storage class V)",
            "did not have enough free storage (storage class V)",
        ]
    );
    assert_eq!(left(NodeReasonClass::NotReady, 1).text(), "was not ready");
    let newer = NodesLeftOut { reason: "were on fire".into(), ..left("Burning".into(), 2) };
    assert_eq!(newer.text(), "were on fire");
}

#[test]
fn causes_of_an_end_are_written_out() {
    let exit = |reason: &str, container: Option<&str>, message: Option<&str>| {
        let exit = ExitCause {
            pod: "w-0".into(),
            reason: reason.into(),
            container: container.map(str::to_owned),
            exit_code: container.map(|_| 3),
            message: message.map(str::to_owned),
            time: None,
        };
        Fact::PodsFailed { failed: 1, exit: Some(exit), limit_seconds: Some(60) }.text()
    };
    assert_eq!(exit("Error", Some("main"), None), "container main of Pod w-0 exited with code 3");
    assert_eq!(exit("OOMKilled", Some("main"), None), "OOMKilled (Pod w-0, container main, exit code 3)");
    assert_eq!(exit("Evicted", None, Some("no memory")), "Evicted (Pod w-0): no memory");
    assert_eq!(
        exit("DeadlineExceeded", None, Some("too long")),
        "DeadlineExceeded (Pod w-0, activeDeadlineSeconds: 60)"
    );
    assert_eq!(Fact::PodsFailed { failed: 2, exit: None, limit_seconds: None }.text(), "2 Pods failed");
    assert_eq!(Fact::Cancelled { by: Some("me".into()) }.text(), "cancelled by me");
}

#[test]
fn jobs_are_named_as_far_as_the_reader_may_know() {
    let limit = |jobs| Fact::NoEstimate { because: NoEstimate::NoTimeLimit, jobs }.text();
    assert_eq!(limit(names(&["job/a"], false)), "no start time estimate: job/a has no time limit");
    assert_eq!(
        limit(names(&["job/a", "job/b"], false)),
        "no start time estimate: job/a, job/b have no time limit"
    );
    assert_eq!(limit(names(&["job/a"], true)), "no start time estimate: job/a and others have no time limit");
    assert_eq!(limit(names(&[], true)), "no start time estimate: running Pods have no time limit");
    let six = names(&["a", "b", "c", "d", "e", "f"], false);
    assert_eq!(
        Fact::WouldDelay { jobs: six }.text(),
        "starting it now would delay the planned start of a, b, c, d, e and others"
    );
    let nobody = Fact::WouldDelay { jobs: names(&[], true) };
    assert_eq!(nobody.text(), "starting it now would delay the planned start of other jobs");
}

#[test]
fn facts_survive_the_wire() {
    let gates = vec!["example.com/gate".to_owned()];
    let facts = vec![
        shape(3, 2, vec![busy(2)]),
        gang(3, 2),
        Fact::WaitingForMembers { created: 1, wanted: 3, gated: 2, gates, joining: false },
        Fact::InQueue,
        Fact::NoEstimate { because: NoEstimate::NodesDown, jobs: JobNames::default() },
    ];
    let reason = Reason::new(ReasonClass::Busy, facts);
    let wire = to_value(&reason).unwrap();
    assert_eq!(wire["facts"][0]["type"], "Nodes");
    assert_eq!(wire["facts"][0]["leftOut"][0]["requested"], "8");
    assert_eq!(wire["facts"][2]["gates"], json!(["example.com/gate"]));
    assert_eq!(from_value::<Reason>(wire).unwrap(), reason);
}

#[test]
fn what_only_a_newer_server_knows_is_shown_as_it_says_and_kept() {
    let wire = json!({
        "class": "Preempting",
        "text": "preempts job/b",
        "details": ["one"],
        "facts": [{"type": "Preempts", "jobs": ["job/b"]}, {"type": "InQueue"}],
    });
    let reason: Reason = from_value(wire.clone()).unwrap();
    assert_eq!(reason.line(), "preempts job/b");
    assert_eq!(reason.details(&str::to_owned), ["one"]);
    assert_eq!(to_value(&reason).unwrap(), wire);
    let silent: Reason = from_value(json!({"class": "Preempting"})).unwrap();
    assert_eq!(silent.line(), "Preempting");
}
