//! Fluxion's traversal, step by step: the definition of what a match chooses, and the oracle for
//! anything faster.
//!
//! A walk from the root down collects candidates per type, lets the policy choose among them on the way
//! up, and marks the chosen edges. It books nothing.

mod children;
mod collector;
mod flexible;
mod index;
mod known;
mod notes;
mod pick;
mod prune;
mod select;
mod shortcut;
mod slots;
mod walk;

pub(super) use collector::Collector;
pub(super) use walk::{Purpose, Selection, Walk};
