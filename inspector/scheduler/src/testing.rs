//! Helpers for tests: compact notation of nodes, holders and requests.

use std::sync::Arc;

use crate::check::check;
use crate::constraint::{
    Expression, HostPort, NodeConstraint, Operator, Peer, PodSelector, PodTerm, PodTerms, Preferences,
    PreferredNodes, PreferredPods, Protocol, Term, TopologySpread,
};
use crate::explain::{Nameless, Names, WhyNot, facts};
use crate::inventory::{Allocation, AllocationKind, Inventory, NodeSpec};
use crate::request::{Placement, Request, Shape};
use crate::resources::ResourceList;

/// `cpu=4 gpu=2`: cpu in cores (`500m` for milli-cores), others as integers; pods 110 by default.
pub(crate) fn list(text: &str) -> ResourceList {
    let quantity = |value: &str| match value.strip_suffix('m') {
        Some(milli) => milli.parse().unwrap(),
        None => value.parse::<u64>().unwrap() * 1000,
    };
    text.split_whitespace()
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap();
            (Arc::from(name), if name == "cpu" { quantity(value) } else { value.parse().unwrap() })
        })
        .collect()
}

/// A ready node; words with `:` are labels (`rack:a`), others its resources.
pub(crate) fn node(name: &str, text: &str) -> NodeSpec {
    let (labels, resources): (Vec<_>, Vec<_>) = text.split_whitespace().partition(|word| word.contains(':'));
    let mut allocatable = list(&resources.join(" "));
    if !allocatable.contains("pods") {
        allocatable.set("pods", 110);
    }
    NodeSpec {
        name: name.into(),
        uid: name.into(),
        labels: labels
            .iter()
            .filter_map(|word| word.split_once(':'))
            .map(|(key, value)| (key.into(), value.into()))
            .collect(),
        ready: true,
        capacity: allocatable.clone(),
        allocatable,
        ..NodeSpec::default()
    }
}

pub(crate) fn cluster(nodes: &[(&str, &str)]) -> Inventory {
    let mut inventory = Inventory::new();
    for (name, text) in nodes {
        inventory.set_node(node(name, text));
    }
    inventory
}

/// The requests of one Pod.
pub(crate) fn pod(text: &str) -> Arc<ResourceList> {
    let mut needs = list(text);
    needs.set("pods", 1);
    Arc::new(needs)
}

pub(crate) fn hold(text: &str, until: impl Into<Option<i64>>) -> Allocation {
    Allocation {
        needs: pod(text),
        ports: Arc::default(),
        from: 0,
        until: until.into(),
        end_assumed: false,
        kind: AllocationKind::Bound,
        permanent: false,
        job: None,
        peer: None,
    }
}

pub(crate) fn shape(count: u32, text: &str) -> Shape {
    Shape {
        count,
        needs: pod(text),
        constraint: Arc::default(),
        ports: Arc::default(),
        peer: None,
        preferences: None,
    }
}

pub(crate) fn gang(count: u32, text: &str) -> Request {
    Request { shapes: vec![shape(count, text)], ..Request::default() }
}

impl Request {
    pub(crate) fn lasting(self, seconds: i64) -> Self {
        Self { duration: Some(seconds), ..self }
    }

    pub(crate) fn at_least(self, minimum: u32) -> Self {
        Self { minimum: Some(minimum), ..self }
    }

    pub(crate) fn within(self, level: &str) -> Self {
        Self { level: Some(level.into()), ..self }
    }

    pub(crate) fn and(mut self, shape: Shape) -> Self {
        self.shapes.push(shape);
        self
    }
}

impl Shape {
    pub(crate) fn on(self, key: &str, value: &str) -> Self {
        let constraint =
            NodeConstraint { selector: [(key.into(), value.into())].into(), ..NodeConstraint::default() };
        Self { constraint: Arc::new(constraint), ..self }
    }

    pub(crate) fn port(self, port: u16) -> Self {
        Self { ports: Arc::new([tcp("", port)]), ..self }
    }

    /// Pods with these labels in namespace `a`.
    pub(crate) fn labelled(self, labels: &str) -> Self {
        let terms = self.peer.as_ref().and_then(|peer| peer.terms.clone());
        Self { peer: Some(Arc::new(Peer { terms, ..peer(labels) })), ..self }
    }

    fn requiring(self, change: impl FnOnce(&mut PodTerms)) -> Self {
        let mut peer = self.peer.as_deref().cloned().unwrap_or_else(|| peer(""));
        let mut terms = peer.terms.as_deref().cloned().unwrap_or_default();
        change(&mut terms);
        peer.terms = Some(Arc::new(terms));
        Self { peer: Some(Arc::new(peer)), ..self }
    }

    /// Required affinity to Pods with these labels in namespace `a`.
    pub(crate) fn near(self, topology: &str, labels: &str) -> Self {
        self.requiring(|terms| terms.affinity.push(pod_term(topology, labels)))
    }

    /// Required anti-affinity to Pods with these labels in namespace `a`.
    pub(crate) fn apart(self, topology: &str, labels: &str) -> Self {
        self.requiring(|terms| terms.anti_affinity.push(Arc::new(pod_term(topology, labels))))
    }

    /// A spread constraint over Pods with these labels in namespace `a`.
    pub(crate) fn spread(self, topology: &str, max_skew: u32, labels: &str) -> Self {
        self.requiring(|terms| terms.spread.push(spread(topology, max_skew, labels)))
    }

    fn preferring(self, change: impl FnOnce(&mut Preferences)) -> Self {
        let mut preferences = self.preferences.as_deref().cloned().unwrap_or_default();
        change(&mut preferences);
        Self { preferences: Some(Arc::new(preferences)), ..self }
    }

    /// Preferred node affinity to a label with this value.
    pub(crate) fn rather_on(self, weight: u32, key: &str, value: &str) -> Self {
        let labels = vec![Expression { key: key.into(), operator: Operator::In, values: vec![value.into()] }];
        let term = Term { labels, fields: Vec::new() };
        self.preferring(|preferences| preferences.nodes.push(PreferredNodes { weight, term }))
    }

    fn rather(self, weight: u32, apart: bool, term: PodTerm) -> Self {
        self.preferring(|preferences| preferences.pods.push(PreferredPods { weight, apart, term }))
    }

    /// Preferred affinity to Pods with these labels in namespace `a`.
    pub(crate) fn rather_near(self, weight: u32, topology: &str, labels: &str) -> Self {
        self.rather(weight, false, pod_term(topology, labels))
    }

    /// Preferred anti-affinity to Pods with these labels in namespace `a`.
    pub(crate) fn rather_apart(self, weight: u32, topology: &str, labels: &str) -> Self {
        self.rather(weight, true, pod_term(topology, labels))
    }

    /// A soft spread constraint over Pods with these labels in namespace `a`.
    pub(crate) fn rather_spread(self, topology: &str, max_skew: u32, labels: &str) -> Self {
        self.preferring(|preferences| preferences.spread.push(spread(topology, max_skew, labels)))
    }
}

/// A Pod with these labels (`app=web tier=front`) in namespace `a`.
pub(crate) fn peer(labels: &str) -> Peer {
    let pairs = labels.split_whitespace().filter_map(|pair| pair.split_once('='));
    let labels = pairs.map(|(key, value)| (key.into(), value.into())).collect();
    Peer { namespace: "a".into(), labels: Arc::new(labels), ..Peer::default() }
}

/// Pods with these labels in namespace `a`.
pub(crate) fn pods(labels: &str) -> PodSelector {
    let one = |(key, value): (&Arc<str>, &Arc<str>)| Expression {
        key: key.clone(),
        operator: Operator::In,
        values: vec![value.clone()],
    };
    PodSelector {
        namespaces: ["a".into()].into(),
        namespace_selector: None,
        labels: Some(peer(labels).labels.iter().map(one).collect()),
    }
}

pub(crate) fn pod_term(topology: &str, labels: &str) -> PodTerm {
    PodTerm { selector: pods(labels), topology: topology.into() }
}

pub(crate) fn spread(topology: &str, max_skew: u32, labels: &str) -> TopologySpread {
    TopologySpread {
        selector: pods(labels),
        topology: topology.into(),
        max_skew,
        min_domains: 1,
        honor_affinity: true,
        honor_taints: false,
    }
}

pub(crate) fn tcp(ip: &str, port: u16) -> HostPort {
    HostPort { protocol: Protocol::Tcp, ip: ip.into(), port }
}

/// `n1:0x2 n2:1x1`: node, shape and count of each slot.
pub(crate) fn shown(placement: &Placement) -> String {
    let slots: Vec<String> =
        placement.slots.iter().map(|slot| format!("{}:{}x{}", slot.node, slot.shape, slot.count)).collect();
    slots.join(" ")
}

pub(crate) fn line(why: &WhyNot) -> String {
    render(why, &Nameless).0
}

/// The line and the details.
pub(crate) fn render(why: &WhyNot, names: &dyn Names) -> (String, Vec<String>) {
    let reason = fluxion_api::Reason::new(fluxion_api::ReasonClass::Busy, facts(why, names));
    (reason.text, reason.details)
}

/// Asserts that the checker finds no problem.
pub(crate) fn sound(inventory: &Inventory) {
    assert_eq!(check(inventory), [""; 0]);
}
