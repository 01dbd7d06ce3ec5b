//! `kubectl fluxion`: inspect and cancel jobs scheduled by Fluxion.
//!
//! The commands are thin: [`connect`] finds the server, [`fluxion_api::client`] sends requests, [`render`] formats
//! text, and [`tui`] is the interactive view. This crate contains no scheduling logic.

/// Appends to a `String`, which cannot fail.
macro_rules! put {
    ($text:expr, $($arg:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($text, $($arg)*);
    }};
}

/// Appends a line to a `String`, which cannot fail.
macro_rules! putln {
    ($text:expr, $($arg:tt)*) => {{
        use std::fmt::Write as _;
        let _ = writeln!($text, $($arg)*);
    }};
}

pub mod cancel;
pub mod cli;
pub mod command;
pub mod connect;
pub mod failure;
pub mod lookup;
pub mod output;
pub mod render;
pub mod tui;
