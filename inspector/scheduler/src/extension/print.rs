//! Prints a gang as a jobspec.

use std::fmt::Write;

use super::constraint::{constraint_json, ports_json};
use super::peer::peer_json;
use crate::request::Request;

/// A string, quoted for YAML.
fn quoted(text: &str) -> String {
    let mut all = String::with_capacity(text.len() + 2);
    all.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => all.extend(['\\', c]),
            ' '..='~' => all.push(c),
            c if u32::from(c) <= 0xff => put(&mut all, format_args!("\\x{:02x}", u32::from(c))),
            c if u32::from(c) <= 0xffff => put(&mut all, format_args!("\\u{:04x}", u32::from(c))),
            c => put(&mut all, format_args!("\\U{:08x}", u32::from(c))),
        }
    }
    all.push('"');
    all
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string does not fail");
}

/// A JSON value as YAML, on one line.
fn flow(value: &serde_json::Value) -> String {
    use serde_json::Value as Json;
    match value {
        Json::String(text) => quoted(text),
        Json::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Json::Object(pairs) => {
            let pairs: Vec<String> =
                pairs.iter().map(|(key, value)| format!("{}: {}", quoted(key), flow(value))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        plain => plain.to_string(),
    }
}

impl Request {
    /// The request as a jobspec in YAML, with the Kubernetes extensions; a [`super::GangReader`] parses the same
    /// request from it. `queue` is its queue.
    pub fn to_jobspec(&self, queue: Option<&str>) -> String {
        let mut out = String::from("version: 1\nresources:\n  - type: gang\n    count: 1\n");
        for (key, value) in [("level", &self.level), ("domain", &self.domain)] {
            if let Some(value) = value {
                put(&mut out, format_args!("    {key}: {}\n", quoted(value)));
            }
        }
        if let Some(minimum) = self.minimum {
            put(&mut out, format_args!("    minimum: {minimum}\n"));
        }
        out.push_str(if self.shapes.is_empty() { "    with: []\n" } else { "    with:\n" });
        for (at, shape) in self.shapes.iter().enumerate() {
            put(
                &mut out,
                format_args!(
                    "      - type: slot\n        count: {}\n        label: shape{at}\n        within: node\n",
                    shape.count
                ),
            );
            if let Some(constraint) = constraint_json(&shape.constraint) {
                put(&mut out, format_args!("        constraint: {}\n", flow(&constraint)));
            }
            if !shape.ports.is_empty() {
                put(&mut out, format_args!("        hostPorts: {}\n", flow(&ports_json(&shape.ports))));
            }
            if let Some(peer) = &shape.peer {
                put(&mut out, format_args!("        pod: {}\n", flow(&peer_json(peer))));
            }
            out.push_str(if shape.needs.is_empty() { "        with: []\n" } else { "        with:\n" });
            for (name, quantity) in shape.needs.iter() {
                put(&mut out, format_args!("          - {{type: {}, count: {quantity}}}\n", quoted(name)));
            }
        }
        out.push_str("attributes:\n  system:\n");
        // Rounded up to one second; 0 would mean no limit.
        let duration = self.duration.map_or(0, |seconds| seconds.max(1));
        put(&mut out, format_args!("    duration: {duration}\n"));
        if let Some(queue) = queue {
            put(&mut out, format_args!("    queue: {}\n", quoted(queue)));
        }
        out.push_str(if self.shapes.is_empty() { "tasks: []\n" } else { "tasks:\n" });
        for at in 0..self.shapes.len() {
            put(
                &mut out,
                format_args!("  - command: [pod]\n    slot: shape{at}\n    count: {{per_slot: 1}}\n"),
            );
        }
        out
    }
}
