//! Renders facts as text: one summary line, and details.

use fluxion_text::shorten;

use super::exit::ExitCause;
use super::fact::{Fact, MissingMembers, NoEstimate, ShapeNodes, Together};
use super::names::JobNames;
use super::nodes;

/// Maximum number of scheduling gates listed.
const GATES: usize = 3;
/// Maximum length of untrusted text, in characters.
const LONGEST: usize = 64;

/// The facts as one summary line.
pub fn line(facts: &[Fact]) -> String {
    let shapes = || facts.iter().filter_map(shape);
    let several = shapes().nth(1).is_some();
    // Where each shape alone finds room, all of them are shown.
    let lacking = shapes().any(|shape| shape.room < shape.members);
    let said = facts.iter().filter(|fact| !lacking || shape(fact).is_none_or(|it| it.room < it.members));
    let parts: Vec<String> = said.filter_map(|fact| one(fact, several)).collect();
    parts.join("; ")
}

/// The facts as detail lines; `time` formats RFC 3339 times.
pub fn details(facts: &[Fact], time: &dyn Fn(&str) -> String) -> Vec<String> {
    facts.iter().filter_map(shape).flat_map(|shape| nodes::details(shape, time)).collect()
}

fn shape(fact: &Fact) -> Option<&ShapeNodes> {
    match fact {
        Fact::Nodes(shape) => Some(shape),
        _ => None,
    }
}

/// Text of one fact; `None` if other facts already cover it.
fn one(fact: &Fact, several: bool) -> Option<String> {
    Some(match fact {
        Fact::Message { text } => text.clone(),
        Fact::WaitingForMembers { created, wanted, gated, gates, joining } => {
            let gated = match gated {
                0 => String::new(),
                1 => format!("; 1 is blocked by scheduling gate{}", named_gates(gates)),
                _ => format!("; {gated} are blocked by scheduling gate{}", named_gates(gates)),
            };
            let verb = if gated.is_empty() { "created" } else { "are schedulable" };
            let then = if *joining {
                "; they will start once the minimum number of members can be reached"
            } else {
                ""
            };
            format!("waiting for members: {created} of {wanted} {verb}{gated}{then}")
        }
        Fact::MembersFinished { finished } => format!(
            "all Pods have finished ({finished}); waiting for the controller to finish the job or recreate them"
        ),
        Fact::MembersWaiting { count: 1 } => "1 member is waiting for a node".to_owned(),
        Fact::MembersWaiting { count } => format!("{count} members are waiting for nodes"),
        Fact::MembersMissing { missing, wanted, because, nodes } => {
            let are = if *missing == 1 { "is" } else { "are" };
            format!("{missing} of {wanted} members {are} missing: {}", replacement(*because, nodes))
        }
        Fact::MembersOnDeletedNodes { members, wanted, nodes } => {
            let more = if nodes.len() > 1 { ", …" } else { "" };
            let node = nodes.first().map_or("", String::as_str);
            format!("{members} of {wanted} members were on deleted nodes ({node}{more})")
        }
        Fact::NodesDeleted => {
            "all its nodes were deleted; the gang will be rescheduled once its Pods on them are deleted"
                .to_owned()
        }
        Fact::PodGroupDeleted { name } => {
            format!("PodGroup {name} was deleted; its Pods keep running, but no more Pods can join")
        }
        Fact::Suspended => "the Job is suspended; it holds no resources until it is resumed".to_owned(),
        Fact::Terminating { pods: 1 } => "terminating: 1 Pod still holds its resources".to_owned(),
        Fact::Terminating { pods } => {
            format!("terminating: {pods} Pods still hold their resources")
        }
        Fact::InQueue => "waiting in the queue".to_owned(),
        Fact::BehindEarlierJobs => "waiting behind earlier jobs in the queue".to_owned(),
        Fact::BeyondQueueDepth => {
            "not considered yet: the jobs ahead of it in the queue already reach queueDepth".to_owned()
        }
        Fact::WouldDelay { jobs: others } => {
            format!("starting it now would delay the planned start of {}", others.text())
        }
        Fact::ResourcesInUse => "the requested resources are in use".to_owned(),
        Fact::NoNodes => "the cluster has no nodes".to_owned(),
        Fact::Nodes(shape) => nodes::line(shape, several),
        Fact::MoreShapes { count } => format!("{count} more shapes not shown"),
        Fact::Together(together) => whole(together)?,
        Fact::RoomReserved { jobs: others } => {
            format!("the remaining resources are reserved for {}", others.text())
        }
        Fact::NoEstimate { because, jobs: others } => {
            format!("no start time estimate: {}", endless(*because, others))
        }
        Fact::PlannedStart => "start planned".to_owned(),
        Fact::StartAssumed { jobs: others, limited } => {
            let because = match limited {
                true => format!("the end of {} is assumed", others.text()),
                false => others.without_limit(),
            };
            format!("the planned start is assumed: {because}")
        }
        Fact::LimitBeforeStart => {
            "the Job's activeDeadlineSeconds expires before its planned start".to_owned()
        }
        Fact::WaitingForVolumes { ready, wanted, claim, message } => {
            let why = message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
            format!(
                "waiting for volumes: {ready} of {wanted} PersistentVolumeClaims bound, {claim} is not{why}"
            )
        }
        Fact::VolumeFailed { claim, node, answer } => {
            format!("no volume for PersistentVolumeClaim {claim} on node {node}: {answer}")
        }
        Fact::BindFailed { pod, node, answer } => {
            format!("failed to bind Pod {pod} to node {node}: {answer}")
        }
        Fact::RetriedLater => "will be retried later".to_owned(),
        Fact::Rejected { pod, reason } => format!("Pod {pod} was rejected by the kubelet: {reason}"),
        Fact::Cancelled { by: Some(by) } => format!("cancelled by {by}"),
        Fact::Cancelled { by: None } => "the Pods were deleted".to_owned(),
        Fact::Disrupted { reason } => disrupted(reason),
        Fact::PodsFailed { failed, exit, limit_seconds } => {
            pods_failed(*failed, exit.as_ref(), *limit_seconds)
        }
        Fact::JobFailed { reason, limit_seconds } => {
            format!("the Job failed: {}{}", shorten(reason, LONGEST), limit(*limit_seconds))
        }
        Fact::Unknown(_) => return None,
    })
}

/// ` a`, `s a, b and 3 more`.
fn named_gates(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(GATES).map(|name| shorten(name, LONGEST)).collect();
    let plural = if names.len() == 1 { "" } else { "s" };
    let more = match names.len().saturating_sub(GATES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{plural} {}{more}", shown.join(", "))
}

fn replacement(because: MissingMembers, nodes: &[String]) -> String {
    match (because, nodes) {
        (MissingMembers::Reserved, [node, _, ..]) => {
            format!("resources for replacements are reserved on {} nodes ({node}, …)", nodes.len())
        }
        (MissingMembers::Reserved, _) => {
            format!("resources for the replacement are reserved on {}", nodes.concat())
        }
        (MissingMembers::NoRoom, _) => "no node has room for a replacement yet".to_owned(),
        (MissingMembers::Terminating, _) => "waiting for the terminating Pods to be replaced".to_owned(),
        (MissingMembers::GivenUp, _) => {
            "no replacement was created in time, so no resources are reserved".to_owned()
        }
        (MissingMembers::NotReserved, _) => "no resources are reserved for a replacement".to_owned(),
        (MissingMembers::NotRecreated, _) => {
            "Pods without a controller are not recreated, so no resources are reserved".to_owned()
        }
    }
}

fn whole(together: &Together) -> Option<String> {
    let Together { wanted, of, room, when_empty, topology, domain, resource, port, .. } = together;
    if *wanted == 1 && topology.is_none() {
        return None;
    }
    let empty = if *when_empty { ", even when all nodes are empty" } else { "" };
    let short = match (resource, port) {
        (_, Some(port)) => format!(" (host port {port} limits each node to one member)"),
        (Some(resource), None) => format!(" (insufficient {resource})"),
        (None, None) if together.search_ended => {
            " (the search under inter-Pod affinity and topology spread constraints reached its limit)"
                .to_owned()
        }
        (None, None) if together.pod_constraints => " (limited by other Pods or volumes)".to_owned(),
        (None, None) => String::new(),
    };
    let wanted = if of > wanted { format!("{wanted} of {of}") } else { wanted.to_string() };
    let members = if *of == 1 { "member" } else { "members" };
    let room = match room {
        0 => format!("no room for any of them{empty}{short}"),
        room => format!("room for only {room}{empty}{short}"),
    };
    Some(match (topology, domain) {
        // Whoever may not know its name is told the rest.
        (Some(level), Some(unnamed)) if unnamed.is_empty() => {
            format!("{wanted} {members} must start together in one {level}, but the best one has {room}")
        }
        (Some(level), Some(best)) => {
            format!(
                "{wanted} {members} must start together in one {level}, but the best one ({best}) has {room}"
            )
        }
        (Some(level), None) => {
            format!("{wanted} {members} must start together in one {level}, but no node has that label")
        }
        (None, _) => format!("{wanted} {members} must start together, but there is {room}"),
    })
}

fn endless(because: NoEstimate, jobs: &JobNames) -> String {
    match because {
        NoEstimate::NodesDown => {
            "it depends on unavailable nodes, and their recovery time is unknown".to_owned()
        }
        NoEstimate::NothingFreed => {
            "running jobs with a planned end will not free enough resources".to_owned()
        }
        NoEstimate::PodConstraints => "it depends on other Pods or volumes".to_owned(),
        NoEstimate::NoTimeLimit => jobs.without_limit(),
    }
}

fn disrupted(reason: &str) -> String {
    match reason {
        "PreemptionByScheduler" => "preempted by another scheduler".to_owned(),
        "DeletionByTaintManager" => "evicted because of a node taint".to_owned(),
        "EvictionByEvictionAPI" => "evicted through the Eviction API".to_owned(),
        "TerminationByKubelet" => "evicted by the kubelet".to_owned(),
        "DeletionByPodGC" => "its node was deleted".to_owned(),
        other => format!("disrupted: {}", shorten(other, LONGEST)),
    }
}

fn pods_failed(failed: u32, exit: Option<&ExitCause>, limit_seconds: Option<i64>) -> String {
    let count = if failed == 1 { "1 Pod failed".to_owned() } else { format!("{failed} Pods failed") };
    match exit.map(|exit| exit.text(limit_seconds)) {
        None => count,
        Some(exit) if failed <= 1 => exit,
        Some(exit) => format!("{count}; first failure: {exit}"),
    }
}

fn limit(seconds: Option<i64>) -> String {
    seconds.map_or_else(String::new, |seconds| format!(" (activeDeadlineSeconds: {seconds})"))
}

impl Fact {
    /// The fact alone, as text.
    pub fn text(&self) -> String {
        one(self, false).unwrap_or_default()
    }
}
