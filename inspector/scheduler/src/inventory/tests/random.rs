//! Random orders of changes against the checker.

use proptest::prelude::*;

use super::super::*;
use crate::request::{Placement, Slot};
use crate::testing::{gang, hold, node, sound};

#[derive(Clone, Debug)]
enum Change {
    Node {
        node: usize,
        cpu: u64,
        rack: u8,
        ready: bool,
    },
    Gone {
        node: usize,
    },
    Allocation {
        holder: usize,
        node: usize,
        cpu: u64,
        gpu: u64,
        until: Option<i64>,
        kind: u8,
        permanent: bool,
    },
    Release {
        holder: usize,
    },
    Retime {
        holder: usize,
        until: Option<i64>,
    },
    Reserve {
        job: u32,
        node: usize,
        cpu: u64,
        start: i64,
        length: Option<i64>,
    },
    Clear {
        job: u32,
    },
}

fn change() -> impl Strategy<Value = Change> {
    let until = || prop::option::of(0_i64..20);
    prop_oneof![
        (0..4_usize, 0..9_u64, 0..3_u8, any::<bool>()).prop_map(|(node, cpu, rack, ready)| Change::Node {
            node,
            cpu,
            rack,
            ready
        }),
        (0..4_usize).prop_map(|node| Change::Gone { node }),
        (0..8_usize, 0..4_usize, 0..5_u64, 0..3_u64, until(), 0..4_u8, any::<bool>()).prop_map(
            |(holder, node, cpu, gpu, until, kind, permanent)| Change::Allocation {
                holder,
                node,
                cpu,
                gpu,
                until,
                kind,
                permanent
            }
        ),
        (0..8_usize).prop_map(|holder| Change::Release { holder }),
        (0..8_usize, until()).prop_map(|(holder, until)| Change::Retime { holder, until }),
        (0..4_u32, 0..4_usize, 0..5_u64, 1_i64..20, prop::option::of(1_i64..9))
            .prop_map(|(job, node, cpu, start, length)| Change::Reserve { job, node, cpu, start, length }),
        (0..4_u32).prop_map(|job| Change::Clear { job }),
    ]
}

fn apply(inventory: &mut Inventory, change: &Change) {
    match change {
        Change::Node { node: at, cpu, rack, ready } => {
            let mut spec = node(&format!("n{at}"), &format!("cpu={cpu} gpu={} rack:r{rack}", at % 3));
            spec.ready = *ready;
            inventory.set_node(spec);
        }
        Change::Gone { node } => inventory.remove_node(&format!("n{node}")),
        Change::Allocation { holder, node, cpu, gpu, until, kind, permanent } => {
            let kind = [
                AllocationKind::Bound,
                AllocationKind::Assumed,
                AllocationKind::Foreign,
                AllocationKind::Nominated,
            ][usize::from(*kind)];
            let share =
                Allocation { kind, permanent: *permanent, ..hold(&format!("cpu={cpu} gpu={gpu}"), *until) };
            inventory.hold(format!("h{holder}").into(), &format!("n{node}"), share);
        }
        Change::Release { holder } => {
            inventory.release(&format!("h{holder}"));
        }
        Change::Retime { holder, until } => {
            inventory.retime(&format!("h{holder}"), *until);
        }
        Change::Reserve { job, node, cpu, start, length } => {
            let slots = vec![Slot { shape: 0, node: format!("n{node}").into(), count: 1 }];
            let placement = Placement { slots, domain: None };
            let end = length.map(|length| start + length);
            inventory.reserve(*job, &gang(1, &format!("cpu={cpu}")), placement, *start, end);
        }
        Change::Clear { job } => inventory.clear_reservation(*job),
    }
}

/// What is available at one moment, added up holder by holder: whoever is past his planned end leaves a second from now.
fn at_moment(inventory: &Inventory, id: NodeId, kind: KindId, now: i64, at: i64) -> u64 {
    let book = inventory.book(id).unwrap();
    let stays = |hold: &Allocation| hold.until.is_none_or(|until| at < until.max(now + 1));
    let held = book.holds.iter().filter(|(_, held)| stays(&held.hold)).map(|(_, held)| &held.needs);
    let reserved = inventory.reserved_on(id).iter().filter(|entry| entry.start <= at && at < entry.end);
    let of_kind = held.chain(reserved.map(|entry| &entry.needs)).flat_map(|needs| needs.iter());
    let taken: u64 = of_kind.filter(|(of, _)| *of == kind).map(|(_, amount)| amount).sum();
    if book.spec.is_none() { 0 } else { book.offer(kind).allocatable.saturating_sub(taken) }
}

/// The timelines against the sums of every second up to the last change.
fn timelines(inventory: &Inventory, now: i64) {
    const LAST: i64 = 32;
    let kinds: Vec<KindId> =
        ["cpu", "gpu"].iter().filter_map(|name| inventory.columns().kind(name)).collect();
    for id in inventory.order() {
        let moment =
            |at| -> Vec<u64> { kinds.iter().map(|kind| at_moment(inventory, *id, *kind, now, at)).collect() };
        let moments: Vec<Vec<u64>> = (now..2 * LAST).map(moment).collect();
        let obvious = |start: i64, length: i64| -> Vec<u64> {
            let window =
                &moments[usize::try_from(start - now).unwrap()..][..usize::try_from(length).unwrap()];
            (0..kinds.len()).map(|kind| window.iter().map(|moment| moment[kind]).min().unwrap()).collect()
        };
        let timeline = inventory.timeline(*id, inventory.book(*id).unwrap());
        let mut out = Vec::new();
        for (start, length) in (now..LAST).flat_map(|start| [1, 4, 20].map(|length| (start, length))) {
            inventory.least(*id, now, (start, start + length), &kinds, &mut out);
            assert_eq!(out, obvious(start, length), "from {start} for {length} at {now}");
            if now < start {
                let next = timeline.next_change(start, Some(length)).unwrap_or(LAST).min(LAST);
                let same = (start..next).all(|same| obvious(same, length) == out);
                assert!(same, "from {start} for {length} nothing changes before {next}");
            }
        }
    }
}

proptest! {
    #[test]
    fn the_books_are_right_after_every_change(changes in prop::collection::vec(change(), 1..60)) {
        let mut inventory = Inventory::new();
        for change in &changes {
            let before = inventory.clone();
            let shown: Vec<_> = before.nodes().collect();
            apply(&mut inventory, change);
            sound(&inventory);
            sound(&before);
            timelines(&inventory, 4);
            prop_assert_eq!(shown, before.nodes().collect::<Vec<_>>(), "a clone stands still");
        }
        for job in 0..4 {
            inventory.clear_reservation(job);
        }
        // After all are released nothing is left but the nodes as they were last described.
        for holder in 0..8 {
            inventory.release(&format!("h{holder}"));
        }
        let mut fresh = Inventory::new();
        for view in inventory.nodes() {
            fresh.set_node(view.spec.as_ref().clone());
        }
        prop_assert_eq!(inventory.nodes().collect::<Vec<_>>(), fresh.nodes().collect::<Vec<_>>());
        prop_assert_eq!(inventory.ids.len(), inventory.order.len());
        sound(&inventory);
    }
}
