//! The plugin against a server that answers what a test tells it to.

mod cancelling;
mod commands;
mod failures;
mod following;
mod live_screen;
mod mock;
mod rendering;
mod sample;
