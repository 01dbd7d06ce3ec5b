//! Why a request does not start, as user-facing facts with the names that the user may see.

use std::sync::Arc;

use fluxion_api::NodeReasonClass;
use fluxion_api::reason::NodesLeftOut;
use fluxion_api::reason::{Fact, JobNames, Lack, NearestNode, NoEstimate, ShapeNodes, Together};
use fluxion_text::quantity;

use super::why::{Count, GangWhy, NearestMiss, NodeReason, ShapeWhy, Short, WhyNot};
use crate::constraint::Exclusion;
use crate::constraint::words::pair;
use crate::placement::Denied;

/// The names visible to the user.
pub trait Names {
    /// The job's name, if visible to the user.
    fn job(&self, id: u32) -> Option<String>;
    /// The holder's name, if visible to the user.
    fn holder(&self, key: &str) -> Option<String>;
    /// A time in seconds, formatted for the user; by default RFC 3339 in UTC.
    fn time(&self, seconds: i64) -> String {
        utc(seconds)
    }
}

/// Hides all names.
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

/// Maximum number of shapes listed.
const SHAPES: usize = 8;

/// The facts, in the order in which they are shown.
pub fn facts(why: &WhyNot, names: &dyn Names) -> Vec<Fact> {
    let mut facts = Vec::new();
    if why.nodes == 0 {
        facts.push(Fact::NoNodes);
    } else {
        let shapes = why.shapes.iter().take(SHAPES);
        facts.extend(shapes.map(|shape| Fact::Nodes(Box::new(of_shape(why, shape, names)))));
        let more = why.shapes.len().saturating_sub(SHAPES) + why.left_out;
        if more > 0 {
            facts.push(Fact::MoreShapes { count: small(more) });
        }
    }
    facts.extend(why.gang.as_ref().map(|gang| Fact::Together(Box::new(together(gang, why.never)))));
    if !why.behind.is_empty() {
        facts.push(Fact::RoomReserved { jobs: jobs(&why.behind, names) });
    }
    if why.no_estimate {
        facts.push(no_estimate(why, names));
    }
    facts
}

fn of_shape(why: &WhyNot, shape: &ShapeWhy, names: &dyn Names) -> ShapeNodes {
    let requests = shape.needs.iter().filter(|(_, amount)| *amount > 0);
    ShapeNodes {
        members: shape.wanted,
        requests: requests.map(|(name, amount)| (name.to_string(), quantity::format(name, amount))).collect(),
        room: shape.room,
        available: small(shape.fitting),
        total: small(why.nodes),
        left_out: shape.counts.iter().map(|count| left_out(count, names)).collect(),
        nearest: shape.nearest.as_ref().map(nearest),
    }
}

/// Nodes with the same reason.
fn left_out(count: &Count, names: &dyn Names) -> NodesLeftOut {
    let mut left_out = NodesLeftOut {
        count: small(count.nodes),
        until: count.soonest.map(|release| names.time(release.at)),
        until_assumed: count.soonest.is_some_and(|release| release.assumed),
        without_end: small(count.endless),
        ..NodesLeftOut::default()
    };
    let amount = |resource: &str, quantity| Some(quantity::format(resource, quantity));
    left_out.class = match &count.reason {
        NodeReason::Excluded(Exclusion::Deleting) => NodeReasonClass::Deleting,
        NodeReason::Excluded(Exclusion::NotReady) => NodeReasonClass::NotReady,
        NodeReason::Excluded(Exclusion::Cordoned) => NodeReasonClass::SchedulingDisabled,
        NodeReason::Excluded(Exclusion::RefusedBinding) => NodeReasonClass::BindingRefused,
        NodeReason::Excluded(Exclusion::Affinity) => NodeReasonClass::NodeAffinity,
        NodeReason::Excluded(Exclusion::VolumeAffinity) => NodeReasonClass::VolumeAffinity,
        NodeReason::Excluded(Exclusion::VolumeZone) => NodeReasonClass::VolumeZone,
        NodeReason::Excluded(Exclusion::VolumeTopology) => NodeReasonClass::VolumeTopology,
        NodeReason::Excluded(Exclusion::VolumeNode(node)) => {
            left_out.value = Some(node.to_string());
            NodeReasonClass::VolumeNode
        }
        NodeReason::Excluded(Exclusion::Selector { key, value }) => {
            left_out.value = Some(pair(key, value));
            NodeReasonClass::NodeSelector
        }
        NodeReason::Excluded(Exclusion::Tainted(taint) | Exclusion::TaintedForNow(taint)) => {
            left_out.value = Some(taint.to_string());
            NodeReasonClass::Taint
        }
        NodeReason::Affinity { wanted } => {
            left_out.value = Some(wanted.to_string());
            NodeReasonClass::NodeAffinity
        }
        NodeReason::PortTaken { port } => {
            left_out.value = Some(port.to_string());
            NodeReasonClass::HostPort
        }
        NodeReason::Denied(denied) => {
            let (class, key) = match denied {
                Denied::Affinity => (NodeReasonClass::PodAffinity, None),
                Denied::AntiAffinity => (NodeReasonClass::PodAntiAffinity, None),
                Denied::OthersAntiAffinity => (NodeReasonClass::ExistingPodAntiAffinity, None),
                Denied::NoDomain(key) => (NodeReasonClass::TopologyLabel, Some(key.to_string())),
                Denied::Spread(key) => (NodeReasonClass::TopologySpread, Some(key.to_string())),
                Denied::ClaimInUse(claim) => (NodeReasonClass::ClaimInUse, Some(claim.to_string())),
                Denied::Disk => (NodeReasonClass::DiskInUse, None),
                Denied::NoDriver(driver) => (NodeReasonClass::VolumeDriver, Some(driver.to_string())),
                Denied::VolumeLimit(driver) => (NodeReasonClass::VolumeLimit, Some(driver.to_string())),
                Denied::NoVolume(class) => (NodeReasonClass::NoVolume, Some(class.to_string())),
                Denied::NoStorage(class) => (NodeReasonClass::NoStorage, Some(class.to_string())),
            };
            left_out.value = key;
            class
        }
        NodeReason::Reserved => {
            left_out.jobs = jobs(&count.jobs, names);
            NodeReasonClass::Reserved
        }
        NodeReason::Missing { resource } => {
            left_out.resource = Some(resource.to_string());
            NodeReasonClass::Missing
        }
        NodeReason::TooSmall { resource }
        | NodeReason::Withheld { resource }
        | NodeReason::Busy { resource } => {
            left_out.resource = Some(resource.to_string());
            left_out.requested = amount(resource, count.need);
            left_out.largest = amount(resource, count.largest);
            match &count.reason {
                NodeReason::TooSmall { .. } => NodeReasonClass::TooSmall,
                NodeReason::Withheld { .. } => NodeReasonClass::NotAllocatable,
                _ => NodeReasonClass::Insufficient,
            }
        }
    };
    left_out
}

fn nearest(miss: &NearestMiss) -> NearestNode {
    let lack = |(resource, requested, available): &(Arc<str>, u64, u64)| Lack {
        resource: resource.to_string(),
        requested: quantity::format(resource, *requested),
        available: quantity::format(resource, *available),
    };
    NearestNode {
        name: miss.node.to_string(),
        lacks: miss.lacks.iter().map(lack).collect(),
        port: miss.port.as_ref().map(ToString::to_string),
    }
}

fn together(gang: &GangWhy, never: bool) -> Together {
    let (resource, port) = match &gang.short {
        Some(Short::Resource(resource)) => (Some(resource.to_string()), None),
        Some(Short::Port(port)) => (None, Some(port.to_string())),
        None => (None, None),
    };
    Together {
        wanted: small(gang.wanted),
        of: small(gang.of),
        room: small(gang.room),
        when_empty: never,
        topology: gang.level.as_ref().map(ToString::to_string),
        domain: gang.best.as_ref().map(ToString::to_string),
        resource,
        port,
        pod_constraints: gang.constrained,
        search_ended: gang.cut,
    }
}

fn no_estimate(why: &WhyNot, names: &dyn Names) -> Fact {
    let holders = why.no_end.iter().map(|key| names.holder(key));
    let all: Vec<Option<String>> = holders.chain(why.no_end_jobs.iter().map(|id| names.job(*id))).collect();
    let denied = |count: &Count| matches!(count.reason, NodeReason::Denied(_));
    let constrained = why.gang.as_ref().is_some_and(|gang| gang.constrained)
        && why.shapes.iter().flat_map(|shape| &shape.counts).any(denied);
    let because = match (all.is_empty(), why.down) {
        (false, _) => NoEstimate::NoTimeLimit,
        (true, true) => NoEstimate::NodesDown,
        (true, false) if constrained => NoEstimate::PodConstraints,
        (true, false) => NoEstimate::NothingFreed,
    };
    Fact::NoEstimate { because, jobs: told(all) }
}

fn jobs(ids: &[u32], names: &dyn Names) -> JobNames {
    told(ids.iter().map(|id| names.job(*id)).collect())
}

/// The visible names without duplicates, in order (a gang may be on several nodes), and whether there are others.
pub(crate) fn told(known: Vec<Option<String>>) -> JobNames {
    /// Maximum number of names listed.
    const NAMED: usize = 16;
    let mut jobs = JobNames::default();
    for name in known {
        match name {
            Some(name) if jobs.names.contains(&name) => {}
            Some(name) if jobs.names.len() < NAMED => jobs.names.push(name),
            _ => jobs.others = true,
        }
    }
    jobs
}

fn small(count: impl TryInto<u32>) -> u32 {
    count.try_into().unwrap_or(u32::MAX)
}

/// RFC 3339 in UTC; years beyond 9999 are formatted as they are.
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
