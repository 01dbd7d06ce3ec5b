//! A large cluster: 5,000 nodes that are full, and gangs of 500 different requests.

use std::sync::Arc;

use fluxion_scheduler::event::Event;
use fluxion_scheduler::inventory::NodeSpec;
use fluxion_scheduler::model::PodSpec;
use fluxion_scheduler::resources::ResourceList;
use fluxion_scheduler::state::{Settings, State};

pub(crate) const NODES: u64 = 5_000;
pub(crate) const GANGS: u64 = 10_000;
const REQUESTS: u64 = 500;
pub(crate) const NOW: i64 = 1_000_000;

pub(crate) fn amounts(cpu: u64, gpu: u64) -> ResourceList {
    let list = [("cpu", cpu), ("memory", cpu << 20), ("nvidia.com/gpu", gpu), ("pods", 1)];
    list.into_iter().filter(|(_, amount)| *amount > 0).map(|(name, amount)| (name.into(), amount)).collect()
}

fn node(index: u64) -> Event {
    let mut allocatable = amounts(64_000, if index.is_multiple_of(4) { 8 } else { 0 });
    allocatable.set("pods", 110);
    Event::Node(Box::new(NodeSpec {
        name: format!("node-{index}").into(),
        uid: format!("node-uid-{index}").into(),
        ready: true,
        capacity: allocatable.clone(),
        allocatable,
        ..NodeSpec::default()
    }))
}

pub(crate) fn pod(name: &str, needs: ResourceList, limit: Option<i64>) -> PodSpec {
    PodSpec {
        scheduler_name: "fluxion".into(),
        created: NOW,
        needs: Ok(Arc::new(needs)),
        active_deadline: limit,
        ..PodSpec::new("default", name, format!("uid-{name}"))
    }
}

/// Number of nodes with a small Pod.
const SMALL: u64 = 200;

/// A full cluster: one Pod of another scheduler's on each node, which ends some time, and small ones on some.
pub(crate) fn full(settings: Settings) -> State {
    let mut state = State::new(settings);
    let mut events: Vec<Event> = (0..NODES).map(node).collect();
    let mut foreign = |name: &str, index: u64, cpu: u64| {
        let mut pod = pod(name, amounts(cpu, 0), Some(1000 + i64::try_from(index % 997).unwrap()));
        pod.scheduler_name = "default-scheduler".into();
        pod.node = Some(format!("node-{index}").into());
        pod.scheduled_at = Some(NOW);
        events.push(Event::Pod(Box::new(pod)));
    };
    (0..NODES).for_each(|index| foreign(&format!("busy-{index}"), index, 62_000));
    (0..SMALL).for_each(|index| foreign(&format!("small-{index}"), index, 1_000));
    events.push(Event::Synced);
    state.step(NOW, events);
    state
}

/// Gangs of one to four members, of which none fits now.
pub(crate) fn waiting(gangs: u64) -> Vec<Event> {
    (0..gangs)
        .flat_map(|gang| {
            let request = gang % REQUESTS;
            let size = 1 + request % 4;
            (0..size).map(move |member| {
                let limit = Some(600 + i64::try_from(request).unwrap());
                let mut pod = pod(&format!("gang-{gang}-{member}"), amounts(3_000 + 10 * request, 0), limit);
                for (key, value) in [("group", format!("gang-{gang}")), ("group-size", size.to_string())] {
                    pod.labels.insert(format!("fluxion.flux-framework.org/{key}").into(), value.into());
                }
                Event::Pod(Box::new(pod))
            })
        })
        .collect()
}

/// After all passes that are due.
pub(crate) fn settled(mut state: State, now: i64) -> State {
    while state.unfinished() {
        state.step(now, vec![Event::Tick]);
    }
    state
}
