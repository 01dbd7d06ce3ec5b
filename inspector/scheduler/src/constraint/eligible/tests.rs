use super::*;

use crate::constraint::{Expression, Operator, Term};
use crate::constraint::{HostPort, Protocol};

fn node(name: &str, labels: &[(&str, &str)]) -> NodeFacts {
    NodeFacts {
        name: name.into(),
        labels: labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        ready: true,
        ..NodeFacts::default()
    }
}

fn expression(key: &str, operator: Operator, values: &[&str]) -> Expression {
    Expression { key: key.into(), operator, values: values.iter().map(|v| (*v).into()).collect() }
}

fn affinity(labels: Vec<Expression>, fields: Vec<Expression>) -> NodeConstraint {
    NodeConstraint { affinity: Some(vec![Term { labels, fields }]), ..NodeConstraint::default() }
}

fn four() -> [NodeFacts; 4] {
    [
        node("n1", &[("gen", "4"), ("disk", "ssd")]),
        node("n2", &[("gen", "12"), ("disk", "hdd")]),
        node("n3", &[("gen", "twelve"), ("disk", "ssd")]),
        node("n4", &[("disk", "nvme"), ("spot", "true")]),
    ]
}

fn takers(constraint: &NodeConstraint) -> Vec<String> {
    let takes = |n: &NodeFacts| eligible(constraint, n).is_ok().then(|| n.name.to_string());
    four().iter().filter_map(takes).collect()
}

#[test]
fn affinity_operators_have_their_corners() {
    use Operator::{DoesNotExist, Exists, Gt, In, Lt, NotIn};
    let by = |labels| takers(&affinity(labels, vec![]));
    assert_eq!(by(vec![expression("gen", Gt, &["4"])]), ["n2"]);
    assert_eq!(by(vec![expression("gen", Lt, &["12"])]), ["n1"]);
    assert_eq!(by(vec![expression("gen", Gt, &["x"])]), [""; 0]);
    assert_eq!(by(vec![expression("gen", Gt, &["1", "2"])]), [""; 0]);
    assert_eq!(by(vec![expression("gen", NotIn, &["4", "12", "twelve"])]), ["n4"]);
    assert_eq!(by(vec![expression("gen", In, &[])]), [""; 0]);
    assert_eq!(
        by(vec![
            expression("gen", Exists, &[]),
            expression("spot", DoesNotExist, &[]),
            expression("disk", In, &["ssd"]),
            expression("gen", NotIn, &["4"]),
        ]),
        ["n3"]
    );
    let field = |operator, name| vec![expression("metadata.name", operator, &[name])];
    assert_eq!(takers(&affinity(vec![], field(In, "n3"))), ["n3"]);
    assert_eq!(takers(&affinity(vec![], vec![expression("metadata.uid", Exists, &[])])), [""; 0]);
    let both = NodeConstraint {
        selector: [("disk".into(), "ssd".into())].into(),
        ..affinity(vec![], field(NotIn, "n3"))
    };
    assert_eq!(takers(&both), ["n1"]);
}

#[test]
fn empty_terms_match_nothing_and_terms_are_alternatives() {
    assert_eq!(takers(&affinity(vec![], vec![])), [""; 0]);
    let none = NodeConstraint { affinity: Some(vec![]), ..NodeConstraint::default() };
    assert_eq!(eligible(&none, &four()[0]), Err(Exclusion::Affinity));
    let ssd = Term { labels: vec![expression("disk", Operator::In, &["ssd"])], fields: vec![] };
    let spot = Term { labels: vec![expression("spot", Operator::Exists, &[])], fields: vec![] };
    let either = NodeConstraint { affinity: Some(vec![ssd, spot, Term::default()]), ..Default::default() };
    assert_eq!(takers(&either), ["n1", "n3", "n4"]);
}

fn taint(key: &str, value: &str, effect: TaintEffect) -> Taint {
    Taint { key: key.into(), value: value.into(), effect }
}

fn tolerate(
    key: Option<&str>,
    operator: TolerationOperator,
    value: &str,
    effect: Option<TaintEffect>,
) -> Toleration {
    Toleration { key: key.map(Into::into), operator, value: value.into(), effect }
}

#[test]
fn taints_keep_away_unless_tolerated() {
    use TolerationOperator::{Equal, Exists};
    let mut n = node("n", &[]);
    n.taints = vec![
        taint("wish", "", TaintEffect::PreferNoSchedule),
        taint("team", "a", TaintEffect::NoSchedule),
        taint("team", "a", TaintEffect::NoExecute),
    ];
    let with = |tolerations: Vec<Toleration>| {
        eligible(&NodeConstraint { tolerations, ..NodeConstraint::default() }, &n).is_ok()
    };
    assert!(!with(vec![]));
    assert!(with(vec![tolerate(Some("team"), Equal, "a", None)]));
    assert!(!with(vec![tolerate(Some("team"), Equal, "b", None)]));
    assert!(
        !with(vec![tolerate(Some("team"), Exists, "", Some(TaintEffect::NoSchedule))]),
        "NoExecute counts too"
    );
    assert!(with(vec![tolerate(None, Exists, "", None)]));
    assert!(!with(vec![tolerate(None, Equal, "", None)]));
    let refused = eligible(&NodeConstraint::default(), &n).unwrap_err();
    assert_eq!(refused.to_string(), "tainted team=a:NoSchedule");
    assert!(!refused.is_temporary());
}

#[test]
fn readiness_and_cordons_pass_and_are_tolerated_as_taints_are() {
    let mut n = node("n", &[]);
    n.ready = false;
    n.taints = vec![taint(NOT_READY, "", TaintEffect::NoSchedule)];
    let refused = eligible(&NodeConstraint::default(), &n).unwrap_err();
    assert_eq!(refused, Exclusion::NotReady);
    assert!(refused.is_temporary());
    assert_eq!(exclusions(&[], &n), [Exclusion::NotReady], "the taint and the condition are one reason");
    let admitted = |effect| NodeConstraint {
        tolerations: vec![tolerate(Some(NOT_READY), TolerationOperator::Exists, "", effect)],
        ..NodeConstraint::default()
    };
    assert!(eligible(&admitted(None), &n).is_ok());
    assert!(
        eligible(&admitted(Some(TaintEffect::NoExecute)), &n).is_err(),
        "what every Pod gets by default tolerates eviction only"
    );
    let mut cordoned = node("n", &[]);
    cordoned.unschedulable = true;
    assert_eq!(eligible(&NodeConstraint::default(), &cordoned), Err(Exclusion::Cordoned));
    let selective =
        NodeConstraint { selector: [("pool".into(), "gold".into())].into(), ..NodeConstraint::default() };
    assert_eq!(
        eligible(&selective, &cordoned),
        Err(Exclusion::Selector { key: "pool".into(), value: "gold".into() }),
        "what stays comes before what passes"
    );
    let pressure =
        Exclusion::TaintedForNow(taint("node.kubernetes.io/disk-pressure", "", TaintEffect::NoSchedule));
    assert!(pressure.is_temporary());
}

#[test]
fn ports_clash_by_address_protocol_and_number() {
    let port = |protocol, ip: &str, port| HostPort { protocol, ip: ip.into(), port };
    let one = port(Protocol::Tcp, "10.1.1.1", 8080);
    let any = port(Protocol::Tcp, "", 8080);
    assert!(one.clashes(&any) && any.clashes(&one) && one.clashes(&one));
    assert!(!one.clashes(&port(Protocol::Tcp, "10.1.1.2", 8080)));
    assert!(!any.clashes(&port(Protocol::Udp, "0.0.0.0", 8080)));
    assert!(any.clashes(&port(Protocol::Tcp, "::", 8080)));
    assert!(!any.clashes(&port(Protocol::Tcp, "", 8081)));
    assert_eq!(one.to_string(), "10.1.1.1:8080/TCP");
    assert_eq!(any.to_string(), "8080/TCP");
}

#[test]
fn taints_that_controllers_remove_after_start_up_pass() {
    let mut n = node("n", &[]);
    n.startup_taints = ["example.com/agent-".into()].into();
    for (key, passes) in [
        ("node.cloudprovider.kubernetes.io/uninitialized", true),
        ("karpenter.sh/unregistered", true),
        ("readiness.k8s.io/network", true),
        ("example.com/agent-not-ready", true),
        ("example.com/dedicated", false),
        ("nvidia.com/gpu", false),
    ] {
        n.taints = vec![taint(key, "", TaintEffect::NoExecute)];
        let exclusion = eligible(&NodeConstraint::default(), &n).unwrap_err();
        assert_eq!(exclusion.is_temporary(), passes, "{key}");
        assert!(exclusion.to_string().contains(key), "{exclusion}");
    }
}
