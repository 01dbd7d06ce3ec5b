//! Reasons as text: one line, and details.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use super::why::{Count, GangWhy, NearestMiss, NodeReason, ShapeWhy, Short, WhyNot};
use crate::constraint::Exclusion;
use fluxion_text::quantity;

/// The names that the reader may see.
pub trait Names {
    /// The job's name, if the reader may see it.
    fn job(&self, id: u32) -> Option<String>;
    /// The holder's name, if the reader may see it.
    fn holder(&self, key: &str) -> Option<String>;
    /// A time in seconds as the reader counts them; without more: since 1970, in UTC.
    fn time(&self, seconds: i64) -> String {
        utc(seconds)
    }
}

/// Knows no names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nameless;

impl Names for Nameless {
    fn job(&self, _: u32) -> Option<String> {
        None
    }

    fn holder(&self, _: &str) -> Option<String> {
        None
    }
}

/// One line, and one line per detail.
pub fn render(why: &WhyNot, names: &dyn Names) -> (String, Vec<String>) {
    let mut parts = Vec::new();
    let mut details = Vec::new();
    if why.nodes == 0 {
        parts.push("the cluster has no nodes".to_owned());
    } else {
        let lacking: Vec<&ShapeWhy> = why.shapes.iter().filter(|shape| shape.room < shape.wanted).collect();
        // Where each shape alone finds room, all of them are looked at.
        let shown = if lacking.is_empty() { why.shapes.iter().collect() } else { lacking };
        let several = why.shapes.len() > 1;
        for shape in shown.iter().take(SHAPES) {
            parts.push(one_shape(why, shape, several, names));
        }
        let more = shown.len().saturating_sub(SHAPES) + why.left_out;
        if more > 0 {
            parts.push(format!("{more} more shapes not shown"));
        }
    }
    parts.extend(why.gang.as_ref().and_then(|gang| one_gang(gang, why.never)));
    if !why.behind.is_empty() {
        parts.push(format!("room is reserved for {}", jobs(&why.behind, names)));
    }
    parts.extend(no_estimate(why, names));
    for shape in why.shapes.iter().take(SHAPES) {
        shape_details(shape, why.never, names, &mut details);
    }
    (parts.join("; "), details)
}

/// Shapes that are written out.
const SHAPES: usize = 8;
/// Names that are written out.
const LISTED: usize = 5;

fn nodes(count: usize) -> String {
    if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") }
}

fn one_shape(why: &WhyNot, shape: &ShapeWhy, several: bool, names: &dyn Names) -> String {
    let mut text = String::new();
    if several {
        let members = if shape.wanted == 1 { "member" } else { "members" };
        let _ = write!(text, "for {} {members} requesting {}: ", shape.wanted, needs(shape));
    }
    let _ = write!(text, "{}/{} nodes are available", shape.fitting, why.nodes);
    let counts: Vec<String> = shape.counts.iter().map(|count| one_count(count, why.never, names)).collect();
    if !counts.is_empty() {
        let _ = write!(text, ": {}", counts.join(", "));
    }
    text
}

fn needs(shape: &ShapeWhy) -> String {
    let listed: Vec<String> = shape
        .needs
        .iter()
        .filter(|(resource, quantity)| *quantity > 0 && resource.as_ref() != "pods")
        .map(|(resource, quantity)| format!("{resource} {}", quantity::shown(resource, quantity)))
        .collect();
    if listed.is_empty() { "no resources".to_owned() } else { listed.join(", ") }
}

fn one_count(count: &Count, never: bool, names: &dyn Names) -> String {
    let text = node_reason(count, never, names);
    match &count.reason {
        NodeReason::Excluded(Exclusion::Cordoned | Exclusion::NotReady) => {
            format!("{} {text}", nodes(count.nodes))
        }
        _ => format!("{} {text}", count.nodes),
    }
}

/// Why nodes take no member, as it follows their number; amounts of what others hold are left to [`Count`]. Wherever the
/// reason is told, it is in these words.
pub fn node_reason(count: &Count, never: bool, names: &dyn Names) -> String {
    match &count.reason {
        NodeReason::Excluded(Exclusion::Tainted(taint) | Exclusion::TaintedForNow(taint)) => {
            format!("had untolerated taint {{{taint}}}")
        }
        NodeReason::Excluded(exclusion) => exclusion.to_string(),
        NodeReason::Affinity { wanted } => format!("didn't match node affinity ({wanted})"),
        NodeReason::Missing { resource } if resource.as_ref() == "pods" => {
            "had no allocatable pods".to_owned()
        }
        NodeReason::Missing { resource } => format!("had no {resource}"),
        NodeReason::TooSmall { resource } => {
            let (need, largest) = quantity::compared(resource, count.need, count.largest);
            let empty = if never { "" } else { " when empty" };
            format!("too small for {resource} ({need} requested, largest has {largest}{empty})")
        }
        NodeReason::Withheld { resource } => {
            let (need, largest) = quantity::compared(resource, count.need, count.largest);
            format!("had at most {largest} {resource} even when empty ({need} requested)")
        }
        NodeReason::Busy { resource } => format!("had insufficient {resource}"),
        NodeReason::PortTaken { port } => format!("had host port {port} in use"),
        NodeReason::Reserved => format!("reserved for {}", jobs(&count.jobs, names)),
    }
}

fn one_gang(gang: &GangWhy, never: bool) -> Option<String> {
    if gang.wanted == 1 && gang.level.is_none() {
        return None;
    }
    let empty = if never { " even when empty" } else { "" };
    let short = match &gang.short {
        Some(Short::Resource(resource)) => format!(" (insufficient {resource})"),
        Some(Short::Port(port)) => format!(" (host port {port} limits each node to one member)"),
        None => String::new(),
    };
    let wanted = if gang.of > gang.wanted {
        format!("{} of {}", gang.wanted, gang.of)
    } else {
        gang.wanted.to_string()
    };
    let members = if gang.of == 1 { "member" } else { "members" };
    Some(match (&gang.level, &gang.best) {
        (Some(level), Some(best)) => format!(
            "{wanted} {members} must start together in one {level}, the best ({best}) has room for {}{empty}{short}",
            gang.room
        ),
        (Some(level), None) => {
            format!("{wanted} {members} must start together in one {level}, but no node has that label")
        }
        (None, _) => format!("{wanted} {members} must start together, room for {}{empty}{short}", gang.room),
    })
}

/// Names that may be told, each once, and whether there are more.
fn list(known: &[Option<String>], one: &str, more: &str) -> String {
    let names = distinct(known);
    let unknown = known.iter().filter(|name| name.is_none()).count();
    let told: Vec<&str> = names.iter().copied().take(LISTED).collect();
    let rest = names.len() - told.len() + unknown;
    if told.is_empty() {
        return if rest == 1 { one.to_owned() } else { more.to_owned() };
    }
    let told = told.join(", ");
    if rest > 0 { format!("{told} and others") } else { told }
}

/// The names among them, each once, in their order: a gang may be met on each of its nodes.
fn distinct(known: &[Option<String>]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    known.iter().flatten().map(String::as_str).filter(|name| seen.insert(*name)).collect()
}

fn jobs(ids: &[u32], names: &dyn Names) -> String {
    list(&ids.iter().map(|id| names.job(*id)).collect::<Vec<_>>(), "another job", "other jobs")
}

fn no_estimate(why: &WhyNot, names: &dyn Names) -> Option<String> {
    let mut known: Vec<Option<String>> = why.no_end.iter().map(|key| names.holder(key)).collect();
    known.extend(why.no_end_jobs.iter().map(|id| names.job(*id)));
    if !why.no_estimate {
        return None;
    }
    if known.is_empty() {
        let what = if why.down {
            "it is not known when unavailable nodes will recover"
        } else {
            "no planned end frees enough resources"
        };
        return Some(format!("no estimate: {what}"));
    }
    let alone = match distinct(&known).len() {
        0 => false,
        names => names == 1 && known.iter().all(Option::is_some),
    };
    let verb = if alone { "has" } else { "have" };
    Some(format!("no estimate: {} {verb} no time limit", list(&known, "running Pods", "running Pods")))
}

fn shape_details(shape: &ShapeWhy, never: bool, names: &dyn Names, details: &mut Vec<String>) {
    for count in &shape.counts {
        let mut line = one_count(count, never, names);
        if let (Some(soonest), NodeReason::Busy { .. }) = (count.soonest, &count.reason) {
            let assumed = if soonest.assumed { " (assumed)" } else { "" };
            let _ = write!(line, ", first has room at {}{assumed}", names.time(soonest.at));
        }
        if count.endless > 0 {
            let _ = write!(line, ", {} without a planned end", count.endless);
        }
        details.push(line);
    }
    if let Some(miss) = &shape.nearest {
        details.push(format!("closest node: {miss}"));
    }
}

/// `n1 (2 of 4 cpu available)`
impl fmt::Display for NearestMiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lack = |(resource, need, has): &(Arc<str>, u64, u64)| {
            let (has, need) = quantity::compared(resource, *has, *need);
            format!("{has} of {need} {resource} available")
        };
        let mut lacks: Vec<String> = self.lacks.iter().map(lack).collect();
        lacks.extend(self.port.as_ref().map(|port| format!("host port {port} in use")));
        write!(f, "{} ({})", self.node, lacks.join(", "))
    }
}

/// RFC 3339 in UTC; years beyond 9999 are written as they are.
pub fn utc(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days are counted from 1 March of year 0, so that leap days end the year; 146,097 days are 400 years.
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day_of_month:02}T{hour:02}:{minute:02}:{second:02}Z")
}
