//! `kubectl fluxion`: what the scheduler does, asked from a command line.
//!
//! The commands are thin: [`connect`] finds the server, [`fluxion_api::client`] asks it, [`render`] writes
//! text, [`tui`] shows it live. Nothing in here decides anything about scheduling.

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
