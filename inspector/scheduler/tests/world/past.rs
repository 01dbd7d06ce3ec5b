//! What is told of the past, and what a journal keeps of it.

use std::collections::BTreeMap;

use fluxion_scheduler::event::{Effect, Event};
use fluxion_scheduler::model::SharedStr;
use fluxion_scheduler::record::{JournalEntry, LiveJob, Remembered};
use fluxion_scheduler::state::{HistoryEntry, Job, State};

use super::World;

/// Everything that says what the job was.
pub fn record(job: &Job) -> String {
    let shapes: Vec<String> =
        job.asked.iter().map(|asked| format!("{}x({})", asked.count, asked.needs)).collect();
    let nodes: Vec<String> =
        job.ran_on.iter().map(|(node, pods)| format!("{node}={}", pods.join("+"))).collect();
    format!(
        "{} {}/{} asked {} limit {:?} on {} from {:?} to {:?}",
        job.state.as_str(),
        job.members.bound,
        job.members.wanted.unwrap_or(0),
        shapes.join(" "),
        job.duration,
        nodes.join(" "),
        job.started_at,
        job.ended_at,
    )
}

/// What a journal gives back of what an engine wrote.
pub fn kept(world: &World) -> Vec<Event> {
    let mut live: BTreeMap<SharedStr, BTreeMap<u32, (String, HistoryEntry)>> = BTreeMap::new();
    let mut cancels: BTreeMap<SharedStr, SharedStr> = BTreeMap::new();
    let mut ended = BTreeMap::new();
    for effect in &world.effects {
        let Effect::Journal(entry) = effect else { continue };
        match entry.clone() {
            JournalEntry::Transition { uid, job, number, entry } => {
                live.entry(uid).or_default().insert(number, (job, entry));
            }
            JournalEntry::Cancelled { uid, by: Some(by), .. } => drop(cancels.insert(uid, by)),
            JournalEntry::Cancelled { uid, by: None, .. } => drop(cancels.remove(&uid)),
            JournalEntry::Ended(job) => {
                live.remove(&job.key.uid);
                // As text, which is how it is kept.
                let text = serde_json::to_string(&*job).unwrap();
                ended.insert((job.key.uid.clone(), job.ended_at), serde_json::from_str(&text).unwrap());
            }
            JournalEntry::Forgotten { uid, ended_at: None } => drop(live.remove(&uid)),
            JournalEntry::Forgotten { uid, ended_at: Some(at) }
            | JournalEntry::Retracted { uid, ended_at: at } => drop(ended.remove(&(uid, at))),
        }
    }
    let live = live.into_iter().map(|(uid, entries)| {
        let (next, (job, _)) =
            entries.last_key_value().map(|(number, last)| (number + 1, last.clone())).unwrap();
        let history = entries.into_values().map(|(_, entry)| entry).collect();
        Remembered::Live(LiveJob { cancelled_by: cancels.get(&uid).cloned(), uid, job, next, history })
    });
    let all = live.chain(ended.into_values().map(Remembered::Ended));
    all.map(|remembered| Event::Remembered(Box::new(remembered))).collect()
}

/// A new engine that is told what the cluster holds and what a journal kept.
pub fn restart_with_journal(world: &mut World) {
    let mut events = kept(world);
    world.state = State::new(world.state.settings().clone());
    events.extend(world.pods.values().map(|pod| Event::Pod(Box::new(pod.clone()))));
    events.extend(world.nodes.values().map(|node| Event::Node(Box::new(node.clone()))));
    events.extend(world.groups.values().map(|group| Event::Group(Box::new(group.clone()))));
    events.extend(world.owners.values().map(|owner| Event::Owner(Box::new(owner.clone()))));
    events.push(Event::Synced);
    world.step(events);
}

/// As a follower: it sees all objects, in order of their names, but makes no decisions.
pub fn follow(world: &mut World) {
    world.state = State::new(world.state.settings().clone());
    let mut events: Vec<Event> = world.pods.values().map(|pod| Event::Pod(Box::new(pod.clone()))).collect();
    events.extend(world.nodes.values().map(|node| Event::Node(Box::new(node.clone()))));
    events.push(Event::Paused);
    world.step(events);
}

/// All that users read of every job.
pub fn told_of_all(world: &World) -> Vec<String> {
    let told = |job: &Job| {
        let history: Vec<String> = job
            .history
            .iter()
            .map(|entry| format!("{}@{} {}", entry.state.as_str(), entry.time, entry.reason))
            .collect();
        format!(
            "{} {} since {} {} | {}",
            world.state.object_name(job),
            record(job),
            job.state_since,
            world.told(&world.state.object_name(job)),
            history.join(" > ")
        )
    };
    world.state.jobs().map(told).collect()
}
