//! The engine at the size of a large cluster: 5,000 nodes, 10,000 pending jobs of 500 different requests.
//!
//! `cargo bench -p fluxion-scheduler` prints the median of some runs: time on the processor where Linux tells it, which
//! other work on the machine does not change, and time on the wall.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod clock;

use std::sync::Arc;

use clock::measure;
use fluxion_scheduler::constraint::{
    Expression, Operator, Peer, PodSelector, PodTerm, PodTerms, Preferences, PreferredPods, TopologySpread,
};
use fluxion_scheduler::inventory::{Allocation, AllocationKind, Inventory, NodeSpec};
use fluxion_scheduler::placement::{NodePolicy, earliest};
use fluxion_scheduler::queue::{Carry, PassJob, QueueConfig, QueuePolicy, pass};
use fluxion_scheduler::request::{Request, Shape};
use fluxion_scheduler::resources::ResourceList;

const NODES: u64 = 5_000;
const JOBS: u32 = 10_000;
const REQUESTS: u64 = 500;

/// A fixed sequence that looks random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn list(cpu: u64, memory: u64, gpu: u64) -> ResourceList {
    let mut list = ResourceList::new();
    list.set("cpu", cpu);
    list.set("memory", memory << 30);
    if gpu > 0 {
        list.set("nvidia.com/gpu", gpu);
    }
    list
}

fn node(index: u64) -> NodeSpec {
    let mut allocatable = list(64_000, 256, if index.is_multiple_of(4) { 8 } else { 0 });
    allocatable.set("pods", 110);
    let labels = [
        ("rack", format!("r{}", index / 40)),
        ("pool", format!("p{}", index % 3)),
        ("kubernetes.io/hostname", format!("node-{index}")),
    ];
    NodeSpec {
        name: format!("node-{index}").into(),
        uid: format!("uid-{index}").into(),
        labels: labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
        ready: true,
        capacity: allocatable.clone(),
        allocatable,
        ..NodeSpec::default()
    }
}

/// `load` Pods on each node, with planned ends for all but one in `endless`.
fn cluster(load: u64, endless: u64) -> Inventory {
    let mut dice = Dice(1);
    let mut inventory = Inventory::new();
    for index in 0..NODES {
        inventory.set_node(node(index));
        for pod in 0..load {
            let mut needs = list(4_000, 16, 0);
            needs.set("pods", 1);
            let until = (dice.roll(endless) > 0).then(|| i64::try_from(1_000 + dice.roll(100_000)).unwrap());
            let hold = Allocation {
                needs: Arc::new(needs),
                ports: Arc::default(),
                from: 0,
                until,
                end_assumed: false,
                kind: AllocationKind::Bound,
                permanent: false,
                job: None,
                peer: Some(Arc::new(peer(index * load + pod, None))),
            };
            inventory.hold(format!("pod-{index}-{pod}").into(), &format!("node-{index}"), hold);
        }
    }
    inventory
}

/// A Pod of one of a thousand applications.
fn peer(number: u64, terms: Option<Arc<PodTerms>>) -> Peer {
    let labels = [("app".into(), format!("app-{}", number % 1_000).into())];
    Peer {
        namespace: "default".into(),
        labels: Arc::new(labels.into()),
        terms,
        deleting: false,
        mounts: None,
        preferences: None,
        volumes: None,
    }
}

/// What the members of a gang want of Pods of the same application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wants {
    /// To be on other nodes.
    Apart,
    /// To be spread over racks.
    Spread,
    /// The same, if possible.
    RatherApart,
    RatherSpread,
    /// Nothing.
    Nothing,
}

/// A gang of each application.
fn constrained(wants: Wants) -> Vec<PassJob> {
    let one = |number: u32| {
        let app = format!("app-{}", number % 1_000);
        let expression = Expression { key: "app".into(), operator: Operator::In, values: vec![app.into()] };
        let selector = PodSelector {
            namespaces: ["default".into()].into(),
            namespace_selector: None,
            labels: Some(vec![expression]),
        };
        let spread = TopologySpread {
            selector: selector.clone(),
            topology: "rack".into(),
            max_skew: 1,
            min_domains: 1,
            honor_affinity: true,
            honor_taints: false,
        };
        let apart = PodTerm { selector, topology: "kubernetes.io/hostname".into() };
        let (mut terms, mut preferences) = (PodTerms::default(), Preferences::default());
        match wants {
            Wants::Apart => terms.anti_affinity.push(Arc::new(apart)),
            Wants::Spread => terms.spread.push(spread),
            Wants::RatherApart => {
                preferences.pods.push(PreferredPods { weight: 100, apart: true, term: apart });
            }
            Wants::RatherSpread => preferences.spread.push(spread),
            Wants::Nothing => {}
        }
        let terms = (!terms.is_empty()).then(|| Arc::new(terms));
        let mut needs = list(4_000, 16, 0);
        needs.set("pods", 1);
        let shape = Shape {
            count: 4,
            needs: Arc::new(needs),
            constraint: Arc::default(),
            ports: Arc::default(),
            peer: (wants != Wants::Nothing).then(|| Arc::new(peer(u64::from(number), terms))),
            preferences: (!preferences.is_empty()).then(|| Arc::new(preferences)),
        };
        let request = Request { shapes: vec![shape], duration: Some(3_600), ..Request::default() };
        PassJob { id: number, request: Arc::new(request), priority: 0 }
    };
    (0..1_000).map(one).collect()
}

fn requests() -> Vec<Arc<Request>> {
    let mut dice = Dice(2);
    let mut one = || {
        let gpus = if dice.roll(4) == 0 { 1 + dice.roll(8) } else { 0 };
        let mut needs = list(1_000 * (1 + dice.roll(32)), 1 + dice.roll(64), gpus);
        needs.set("pods", 1);
        let mut constraint = fluxion_scheduler::constraint::NodeConstraint::default();
        if dice.roll(5) == 0 {
            constraint.selector.insert("pool".into(), format!("p{}", dice.roll(3)).into());
        }
        let count = u32::try_from(1 + dice.roll(64)).unwrap();
        let mut shapes = vec![Shape {
            count,
            needs: Arc::new(needs),
            constraint: Arc::new(constraint.clone()),
            ports: Arc::default(),
            peer: None,
            preferences: None,
        }];
        if dice.roll(10) == 0 {
            let mut launcher = list(500, 1, 0);
            launcher.set("pods", 1);
            shapes.push(Shape {
                count: 1,
                needs: Arc::new(launcher),
                constraint: Arc::new(constraint),
                ports: Arc::default(),
                peer: None,
                preferences: None,
            });
        }
        let level = (dice.roll(20) == 0).then(|| Arc::from("rack"));
        let duration = Some(i64::try_from(60 + dice.roll(50_000)).unwrap());
        Arc::new(Request { shapes, level, duration, ..Request::default() })
    };
    (0..REQUESTS).map(|_| one()).collect()
}

fn jobs(requests: &[Arc<Request>]) -> Vec<PassJob> {
    let mut dice = Dice(3);
    let pick = |id| {
        let at = usize::try_from(dice.roll(REQUESTS)).unwrap();
        // As a caller has them that made each job's request from its own Pods.
        PassJob { id, priority: 0, request: Arc::new(requests[at].as_ref().clone()) }
    };
    (0..JOBS).map(pick).collect()
}

fn main() {
    let jobs = jobs(&requests());
    let easy = QueueConfig::default();
    let hybrid = QueueConfig { policy: QueuePolicy::Hybrid, reservation_depth: 64, ..easy.clone() };
    println!("a pass over 10,000 jobs of 500 requests on 5,000 nodes");
    for (name, inventory, config) in [
        ("easy, full cluster", cluster(16, u64::MAX), &easy),
        ("easy, full cluster, no time limits", cluster(16, 1), &easy),
        ("easy, half full", cluster(8, 10), &easy),
        ("easy, empty", cluster(0, 10), &easy),
        ("hybrid with 64 reservations, half full", cluster(8, 10), &hybrid),
    ] {
        let run = |books: &mut Inventory| pass(books, config, &jobs, 100, u64::MAX, None);
        measure(name, 3, || inventory.clone(), run);
        let mut books = inventory.clone();
        let memory = run(&mut books).memory;
        let again = |books: &mut Inventory| {
            pass(books, config, &jobs, 100, u64::MAX, Some(Carry::remembering(memory.clone())))
        };
        measure("  the same again, nothing freed", 3, || books.clone(), again);
    }
    println!("a pass over 1,000 gangs of 4 with constraints on other Pods on 5,000 nodes");
    for (name, load) in [("full cluster", 16), ("half full", 8)] {
        let inventory = cluster(load, u64::MAX);
        for (what, wants) in [
            ("no constraints", Wants::Nothing),
            ("anti-affinity", Wants::Apart),
            ("spread over racks", Wants::Spread),
            ("preferred anti-affinity", Wants::RatherApart),
            ("soft spread over racks", Wants::RatherSpread),
        ] {
            let jobs = constrained(wants);
            let run = |books: &mut Inventory| pass(books, &easy, &jobs, 100, u64::MAX, None).started.len();
            measure(&format!("{what}, {name}"), 1, || inventory.clone(), run);
        }
    }
    // `cargo bench -p fluxion-scheduler --bench engine -- short` leaves out what follows, which takes minutes.
    if std::env::args().any(|argument| argument == "short") {
        return;
    }
    println!("a conservative pass over the first of these jobs: each that waits gets a reservation");
    let conservative = QueueConfig { policy: QueuePolicy::Conservative, ..easy.clone() };
    for (name, load) in [("full cluster", 16), ("half full", 8)] {
        let inventory = cluster(load, u64::MAX);
        for count in [100, 300, 1_000] {
            let run = |books: &mut Inventory| pass(books, &conservative, &jobs[..count], 100, u64::MAX, None);
            measure(&format!("{count} jobs, {name}"), 1, || inventory.clone(), run);
        }
    }
    println!("one by one");
    let inventory = cluster(16, 10);
    measure("clone", 101, || (), |()| inventory.clone());
    let (node, hold) = inventory.holding("pod-7-3").unwrap_or_else(|| unreachable!("it was put there"));
    let change = |books: &mut (Inventory, Inventory)| {
        books.0.release("pod-7-3");
        books.0.hold("pod-7-3".into(), &node, hold.clone());
    };
    measure("one Pod goes and comes, after a clone", 101, || (inventory.clone(), inventory.clone()), change);
    let requests = requests();
    let Some(wide) = requests.iter().max_by_key(|request| request.slots()) else { return };
    measure("earliest start", 5, || (), |()| earliest(&inventory, wide, 100, NodePolicy::Low));
    measure("why not", 5, || (), |()| fluxion_scheduler::explain::why_not(&inventory, wide, 100));
}
