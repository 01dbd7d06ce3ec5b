//! Gangs in words: what is read back is what was printed, and what makes no sense is refused with its reason.

use std::sync::Arc;

use proptest::prelude::*;

use fluxion::jobspec::Jobspec;

use crate::constraint::{
    Expression, HostPort, NodeConstraint, Operator as Compare, Peer, PodSelector, PodTerm, PodTerms,
    Protocol, TaintEffect, Term, Toleration, TolerationOperator, TopologySpread,
};
use crate::extension::GangReader;
use crate::request::{Request, Shape};
use crate::resources::ResourceList;

fn known(name: &str) -> bool {
    ["node", "core", "slot", "memory", ""].contains(&name)
}

fn text() -> impl Strategy<Value = Arc<str>> {
    prop_oneof![
        "[a-z0-9./-]{0,9}".prop_map(Arc::from),
        ".{0,6}".prop_map(Arc::from),
        Just(Arc::from("null")),
        Just(Arc::from("")),
        Just(Arc::from("\u{7f}\u{85}\u{2028}\u{feff}\t\n\"\\")),
    ]
}

fn expression() -> impl Strategy<Value = Expression> {
    use Compare::{DoesNotExist, Exists, Gt, In, Lt, NotIn};
    let operator = prop::sample::select(vec![In, NotIn, Exists, DoesNotExist, Gt, Lt]);
    (text(), operator, prop::collection::vec(text(), 0..3)).prop_map(|(key, operator, values)| Expression {
        key,
        operator,
        values,
    })
}

fn toleration() -> impl Strategy<Value = Toleration> {
    let operator = prop::sample::select(vec![TolerationOperator::Equal, TolerationOperator::Exists]);
    let effect = prop::sample::select(vec![
        None,
        Some(TaintEffect::NoSchedule),
        Some(TaintEffect::PreferNoSchedule),
        Some(TaintEffect::NoExecute),
    ]);
    (prop::option::of(text()), operator, text(), effect)
        .prop_map(|(key, operator, value, effect)| Toleration { key, operator, value, effect })
}

fn constraint() -> impl Strategy<Value = NodeConstraint> {
    let expressions = || prop::collection::vec(expression(), 0..3);
    let term = (expressions(), expressions()).prop_map(|(labels, fields)| Term { labels, fields });
    (
        prop::collection::btree_map(text(), text(), 0..3),
        prop::option::of(prop::collection::vec(term, 0..3)),
        prop::collection::vec(toleration(), 0..3),
    )
        .prop_map(|(selector, affinity, tolerations)| NodeConstraint {
            selector,
            affinity,
            tolerations,
            ..NodeConstraint::default()
        })
}

fn shape() -> impl Strategy<Value = Shape> {
    let protocol = prop::sample::select(vec![Protocol::Tcp, Protocol::Udp, Protocol::Sctp]);
    let port =
        (protocol, text(), 1..=u16::MAX).prop_map(|(protocol, ip, port)| HostPort { protocol, ip, port });
    (
        any::<u32>(),
        prop::collection::btree_map(text(), any::<u64>(), 0..4),
        constraint(),
        prop::collection::vec(port, 0..3),
        prop::option::of(peer()),
    )
        .prop_map(|(count, needs, constraint, ports, peer)| Shape {
            count,
            needs: Arc::new(needs.into_iter().collect::<ResourceList>()),
            constraint: Arc::new(constraint),
            ports: ports.into(),
            peer: peer.map(Arc::new),
            preferences: None,
        })
}

fn selector() -> impl Strategy<Value = PodSelector> {
    let expressions = || prop::option::of(prop::collection::vec(expression(), 0..3));
    (prop::collection::btree_set(text(), 0..3), expressions(), expressions()).prop_map(
        |(namespaces, namespace_selector, labels)| PodSelector { namespaces, namespace_selector, labels },
    )
}

fn peer() -> impl Strategy<Value = Peer> {
    let key = || text().prop_filter("a topology key", |key| !key.is_empty());
    let term = || (selector(), key()).prop_map(|(selector, topology)| PodTerm { selector, topology });
    let spread = (selector(), key(), 1..=u32::MAX, 1..=u32::MAX, any::<(bool, bool)>()).prop_map(
        |(selector, topology, max_skew, min_domains, (honor_affinity, honor_taints))| TopologySpread {
            selector,
            topology,
            max_skew,
            min_domains,
            honor_affinity,
            honor_taints,
        },
    );
    let terms = (
        prop::collection::vec(term(), 0..3),
        prop::collection::vec(term().prop_map(Arc::new), 0..3),
        prop::collection::vec(spread, 0..3),
    )
        .prop_map(|(affinity, anti_affinity, spread)| PodTerms { affinity, anti_affinity, spread });
    (text(), prop::collection::btree_map(text(), text(), 0..3), terms).prop_map(
        |(namespace, labels, terms)| Peer {
            mounts: None,
            preferences: None,
            volumes: None,
            namespace,
            labels: Arc::new(labels),
            terms: (!terms.is_empty()).then(|| Arc::new(terms)),
            deleting: false,
        },
    )
}

fn request() -> impl Strategy<Value = Request> {
    let level = prop::option::of((text(), prop::option::of(text())));
    let duration = prop::option::of(1..=i64::MAX);
    let minimum = prop::option::of(1..=u32::MAX);
    (prop::collection::vec(shape(), 0..4), minimum, level, duration).prop_map(
        |(shapes, minimum, level, duration)| {
            let (level, domain) = level.unzip();
            let request = Request { shapes, minimum, level, domain: domain.flatten(), duration };
            let minimum = minimum.filter(|minimum| u64::from(*minimum) <= request.slots());
            Request { minimum, ..request }
        },
    )
}

fn read(text: &str) -> Result<Request, String> {
    let spec = Jobspec::parse_with(text, &known, &GangReader).map_err(|error| error.to_string())?;
    spec.extra.and_then(|extra| extra.get::<Request>().cloned()).ok_or_else(|| "no gang".to_owned())
}

/// A jobspec with these resources.
fn with(resources: &str) -> String {
    format!("version: 1\nresources: {resources}\ntasks: []\nattributes:\n")
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(request in request(), queue in prop::option::of("[a-z]{1,5}")) {
        let printed = request.to_jobspec(queue.as_deref());
        let spec = Jobspec::parse_with(&printed, &known, &GangReader).unwrap();
        prop_assert_eq!(spec.queue, queue);
        prop_assert_eq!(spec.extra.as_ref().and_then(|extra| extra.get::<Request>()), Some(&request), "{}", printed);
        prop_assert!(Jobspec::parse(&printed, &known).is_err());
    }
}

#[test]
fn a_gang_looks_like_this() {
    let gang = crate::testing::gang(2, "cpu=1500m memory=1024").lasting(3600).within("rack");
    let gang = gang.and(crate::testing::shape(1, "cpu=1").on("pool", "gold").port(80)).at_least(2);
    let want = "\
version: 1
resources:
  - type: gang
    count: 1
    level: \"rack\"
    minimum: 2
    with:
      - type: slot
        count: 2
        label: shape0
        within: node
        with:
          - {type: \"cpu\", count: 1500}
          - {type: \"memory\", count: 1024}
          - {type: \"pods\", count: 1}
      - type: slot
        count: 1
        label: shape1
        within: node
        constraint: {\"nodeSelector\": {\"pool\": \"gold\"}}
        hostPorts: [{\"port\": 80, \"protocol\": \"TCP\"}]
        with:
          - {type: \"cpu\", count: 1000}
          - {type: \"pods\", count: 1}
attributes:
  system:
    duration: 3600
    queue: \"batch\"
tasks:
  - command: [pod]
    slot: shape0
    count: {per_slot: 1}
  - command: [pod]
    slot: shape1
    count: {per_slot: 1}
";
    assert_eq!(gang.to_jobspec(Some("batch")), want);
}

#[test]
fn one_shape_needs_no_gang_around_it() {
    let slot = "{type: slot, count: 3, label: a, within: node, with: [{type: core, count: 5000000000}]}";
    let request = read(&with(&format!("[{slot}]"))).unwrap();
    assert_eq!((request.slots(), request.duration, request.level), (3, None, None));
    assert_eq!(request.shapes[0].needs.get("core"), 5_000_000_000);
}

#[test]
fn what_is_no_gang_is_read_by_the_rules_of_fluxion() {
    let plain = with("[{type: slot, count: 1, label: a, with: [{type: core, count: 1}]}]");
    assert_eq!(Jobspec::parse(&plain, &known), Jobspec::parse_with(&plain, &known, &GangReader));
}

#[test]
fn what_makes_no_sense_is_refused_with_its_reason() {
    let slot = |inside: &str| format!("[{{type: slot, label: a, within: node, {inside}}}]");
    let pool = |count: &str| slot(&format!("count: 1, with: [{{type: core, count: {count}}}]"));
    for (resources, part) in [
        ("[{type: gang, count: 1, with: []}, {type: core, count: 1}]".to_owned(), "the only entry"),
        ("[{type: gang, count: 2, with: []}]".to_owned(), "must be 1"),
        ("[{type: gang, count: 1}]".to_owned(), "must be a sequence of slots"),
        ("[{type: gang, count: 1, domain: a, with: []}]".to_owned(), "requires \"level\""),
        (
            format!("[{{type: gang, count: 1, minimum: 3, with: {}}}]", slot("count: 2, with: []")),
            "between 1 and 2",
        ),
        (
            format!("[{{type: gang, count: 1, minimum: 0, with: {}}}]", slot("count: 2, with: []")),
            "between 1 and 2",
        ),
        (
            format!("[{{type: gang, count: 1, minimum: x, with: {}}}]", slot("count: 2, with: []")),
            "between 1 and 2",
        ),
        ("[{type: gang, count: 1, minimum: 1, with: []}]".to_owned(), "between 1 and 0"),
        ("[{type: gang, count: 1, with: [{type: core, count: 1}]}]".to_owned(), "entries of type \"slot\""),
        ("[{type: gang, count: 1, with: [~]}]".to_owned(), "slot is not a mapping"),
        (
            "[{type: gang, count: 1, exclusive: true, with: []}]".to_owned(),
            "unknown key \"exclusive\" in gang",
        ),
        ("[{type: slot, count: 1, label: a, within: rack, with: []}]".to_owned(), "\"within: node\""),
        ("[{type: slot, count: 1, within: node, with: []}]".to_owned(), "must be labeled"),
        (slot("count: 4294967296, with: []"), "must be an unsigned integer"),
        (slot("count: {min: 1}, with: []"), "must be an unsigned integer"),
        (slot("count: 1, count: 2, with: []"), "duplicate \"count\" in slot"),
        (pool("18446744073709551616"), "less than 2^64"),
        (pool("-1"), "less than 2^64"),
        (pool("1.5"), "less than 2^64"),
        (pool("''"), "less than 2^64"),
        (slot("count: 1, with: [{type: core, count: 1}, {type: core, count: 2}]"), "combine the counts"),
        (slot("count: 1, with: [], hostPorts: [{port: 0}]"), "from 1 to 65535"),
        (slot("count: 1, with: [], hostPorts: [{port: 1, protocol: ICMP}]"), "one of TCP, UDP, SCTP"),
        (slot("count: 1, with: [], constraint: {nodeSelector: {a: [b]}}"), "must map labels"),
        (slot("count: 1, with: [], constraint: {tolerations: {}}"), "\"tolerations\" is not a sequence"),
        (
            slot("count: 1, with: [], constraint: {properties: [a]}"),
            "unknown key \"properties\" in constraint",
        ),
        (
            slot("count: 1, with: [], constraint: {nodeAffinity: [{matchFields: [{key: a, operator: is}]}]}"),
            "not \"is\"",
        ),
    ] {
        let error = read(&with(&resources)).unwrap_err();
        assert!(error.contains(part), "{resources}: {error}");
    }
    let slots = vec!["{type: slot, count: 1, label: a, within: node, with: []}"; 1_001].join(", ");
    let error = read(&with(&format!("[{{type: gang, count: 1, with: [{slots}]}}]"))).unwrap_err();
    assert!(error.contains("more than 1000 shapes"), "{error}");
    for (duration, want) in [
        ("0", Some(None)),
        ("1.5", Some(Some(2))),
        (".inf", None),
        ("-1", None),
        (".nan", None),
        ("1e30", None),
    ] {
        let text = with(&slot("count: 1, with: []"))
            .replace("attributes:", &format!("attributes: {{system: {{duration: {duration}}}}}"));
        assert_eq!(read(&text).ok().map(|request| request.duration), want, "{duration}");
    }
}
