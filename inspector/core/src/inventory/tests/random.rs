//! Random orders of changes against the checker.

use proptest::prelude::*;

use super::super::*;
use crate::testing::{hold, node, sound};

#[derive(Clone, Debug)]
enum Change {
    Node { node: usize, cpu: u64, rack: u8, ready: bool },
    Gone { node: usize },
    Hold { holder: usize, node: usize, cpu: u64, gpu: u64, until: Option<i64>, kind: u8, permanent: bool },
    Release { holder: usize },
    Retime { holder: usize, until: Option<i64> },
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
            |(holder, node, cpu, gpu, until, kind, permanent)| Change::Hold {
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
        Change::Hold { holder, node, cpu, gpu, until, kind, permanent } => {
            let kind = [HoldKind::Bound, HoldKind::Assumed, HoldKind::Foreign, HoldKind::Nominated]
                [usize::from(*kind)];
            let share = Hold { kind, permanent: *permanent, ..hold(&format!("cpu={cpu} gpu={gpu}"), *until) };
            inventory.hold(format!("h{holder}").into(), &format!("n{node}"), share);
        }
        Change::Release { holder } => {
            inventory.release(&format!("h{holder}"));
        }
        Change::Retime { holder, until } => {
            inventory.retime(&format!("h{holder}"), *until);
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
            prop_assert_eq!(shown, before.nodes().collect::<Vec<_>>(), "a clone stands still");
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
        prop_assert!(inventory.ends.is_empty());
        sound(&inventory);
    }
}
