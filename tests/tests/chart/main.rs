//! The chart: what it renders is valid, installs and is enough, and nothing in it is too much.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cert_manager;
mod fence;
mod install;
mod journal;
mod metrics;
mod permissions;
mod render;
mod rules;
mod upgrade;

/// Values of all that the chart makes only on demand, but what excludes something else.
const EVERYTHING: [&str; 6] = [
    "--set",
    "serviceMonitor.enabled=true",
    "--set",
    "prometheusRule.enabled=true",
    "--set",
    "dashboard.enabled=true",
];
