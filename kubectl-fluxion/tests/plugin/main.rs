//! The plugin against a server that answers what a test tells it to.

#![allow(clippy::unwrap_used, reason = "a test whose set-up fails has to fail")]

mod cancelling;
mod cancelling_in_a_cluster;
mod commands;
mod failures;
mod following;
mod hostile;
mod live_screen;
mod mock;
mod rendering;
mod sample;
mod through_a_cluster;
