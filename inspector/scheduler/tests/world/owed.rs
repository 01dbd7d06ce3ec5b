//! What a gang is owed after its start, told from the cluster alone and written from the rule, not from the engine:
//!
//! wanted = min(minimum, what its owner can still create); missing = wanted - assigned, while at least one is
//! assigned and neither owner nor group is going. For each missing member one place is kept: where it was, or,
//! once that node takes no work any more (or a restart forgot where it was), on the first node with room for it
//! before any waiting job. Only the gang's members use it. A gang of which nobody is assigned starts whole or
//! not at all.

use std::collections::{BTreeMap, BTreeSet};

use fluxion_scheduler::inventory::NodeSpec;
use fluxion_scheduler::model::{GroupSpec, OwnerDetail, OwnerSpec, Phase, PodSpec, SharedStr};

/// After so many seconds a place need not be kept any longer (the default of `lostMemberDeadline`).
const DEADLINE: i64 = 600;

/// The cluster after one step of the engine, and what was bound in it, in order.
#[derive(Clone, Debug)]
pub struct Moment {
    pub now: i64,
    /// The engine is a new one.
    pub restarted: bool,
    pub nodes: BTreeMap<SharedStr, NodeSpec>,
    pub pods: BTreeMap<SharedStr, PodSpec>,
    pub owners: BTreeMap<SharedStr, OwnerSpec>,
    pub groups: BTreeMap<SharedStr, GroupSpec>,
    pub binds: Vec<(SharedStr, SharedStr)>,
    /// The UID of the object a running job is named after, and whether it is marked as degraded.
    pub running: Vec<(SharedStr, bool)>,
}

/// CPU in milli-units, and the number of Pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    cpu: i64,
    pods: i64,
}

impl Amount {
    fn plus(self, other: Self, times: i64) -> Self {
        Self { cpu: self.cpu + times * other.cpu, pods: self.pods + times * other.pods }
    }

    fn holds(self, other: Self) -> bool {
        // Who asks for nothing of a resource doesn't mind that too much of it is used.
        (other.cpu == 0 || self.cpu >= other.cpu) && (other.pods == 0 || self.pods >= other.pods)
    }

    /// How many of `other` fit.
    fn room(self, other: Self) -> i64 {
        let by = |have: i64, need: i64| if need == 0 { i64::MAX } else { have.max(0) / need };
        by(self.cpu, other.cpu).min(by(self.pods, other.pods))
    }
}

fn needs(pod: &PodSpec) -> Amount {
    let list = pod.needs.as_ref().unwrap();
    Amount { cpu: i64::try_from(list.get("cpu")).unwrap(), pods: i64::try_from(list.get("pods")).unwrap() }
}

/// A place that is kept.
#[derive(Clone, Debug)]
struct Place {
    /// `None`: on any node with room for it.
    node: Option<SharedStr>,
    since: i64,
}

#[derive(Clone, Debug, Default)]
struct Account {
    assigned: BTreeMap<SharedStr, SharedStr>,
    /// Members that are told to go and still hold what a replacement will get.
    leaving: BTreeMap<SharedStr, SharedStr>,
    places: Vec<Place>,
    /// Places that were given up, until nobody is missing.
    expired: usize,
}

/// One gang as the cluster's objects tell it.
struct Gang {
    wanted: usize,
    /// Suspended, or its owner or group is going: nothing is owed.
    going: bool,
    shape: Amount,
    waiting: usize,
}

/// The books of all gangs.
#[derive(Clone, Debug, Default)]
pub struct Owed {
    accounts: BTreeMap<SharedStr, Account>,
}

impl Owed {
    /// Takes the next moment; what in it breaks the rule.
    pub fn see(&mut self, moment: &Moment) -> Vec<String> {
        let gangs = gangs(moment);
        let bound: BTreeSet<&SharedStr> = moment.binds.iter().map(|(pod, _)| pod).collect();
        let mut free = free(moment);
        for (pod, node) in &moment.binds {
            if let (Some(room), Some(pod)) = (free.get_mut(node), moment.pods.get(pod)) {
                *room = room.plus(needs(pod), 1);
            }
        }
        self.accounts.retain(|key, _| gangs.contains_key(key));
        for (key, gang) in &gangs {
            let account = self.accounts.entry(key.clone()).or_default();
            account.before(moment, key, gang, &bound);
        }
        self.make_room(&gangs, &free);
        let mut wrong = self.binds(moment, &gangs, &mut free);
        for (key, gang) in &gangs {
            let account = &self.accounts[key];
            let assigned = account.assigned.len();
            let at_home = account.places.iter().any(|place| place.node.is_some());
            if !gang.going
                && assigned > 0
                && gang.waiting > 0
                && assigned + gang.waiting >= gang.wanted
                && at_home
            {
                wrong.push(format!("a member of {key} waits while its place is kept: {:?}", account.places));
            }
            let missing = gang.wanted.saturating_sub(assigned);
            let leaving = !account.leaving.is_empty();
            let sure = assigned > 0 && !leaving && !gang.going;
            let marked = moment.running.iter().find(|(uid, _)| uid == key).map(|(_, degraded)| *degraded);
            if let Some(marked) = marked.filter(|marked| sure && *marked != (missing > 0)) {
                wrong.push(format!("{key} misses {missing} of {}, degraded: {marked}", gang.wanted));
            }
        }
        wrong
    }

    /// The gangs' members and books as they are, for whoever reads what is wrong.
    pub fn tell(&self, moment: &Moment) -> String {
        let mut lines = vec![format!("at {}, bound: {:?}", moment.now, moment.binds)];
        for pod in moment.pods.values().filter(|pod| !pod.phase.ended()) {
            let going = if pod.deleting { ", going" } else { "" };
            lines.push(format!("{} {:?} on {:?}{going}", pod.name, pod.phase, pod.node));
        }
        lines.extend(self.accounts.iter().map(|(key, account)| format!("{key}: {account:?}")));
        lines.join("\n")
    }

    /// What came from outside may have taken a place: then it is looked for elsewhere.
    fn make_room(&mut self, gangs: &BTreeMap<SharedStr, Gang>, free: &BTreeMap<SharedStr, Amount>) {
        for (node, room) in free {
            while !room.holds(self.kept(gangs, node)) {
                let mut on_it = self
                    .accounts
                    .values_mut()
                    .flat_map(|account| &mut account.places)
                    .filter(|place| place.node.as_ref() == Some(node));
                let Some(place) = on_it.next_back() else { break };
                place.node = None;
            }
        }
    }

    /// What is kept on the node.
    fn kept(&self, gangs: &BTreeMap<SharedStr, Gang>, node: &SharedStr) -> Amount {
        let mut sum = Amount::default();
        for (key, account) in &self.accounts {
            let here = |place: &&Place| place.node.as_ref() == Some(node);
            let count = i64::try_from(account.places.iter().filter(here).count()).unwrap();
            sum = sum.plus(gangs[key].shape, count);
        }
        sum
    }

    /// Follows what was bound, one by one.
    fn binds(
        &mut self,
        moment: &Moment,
        gangs: &BTreeMap<SharedStr, Gang>,
        free: &mut BTreeMap<SharedStr, Amount>,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut starts: BTreeMap<SharedStr, usize> = BTreeMap::new();
        let mut starting: BTreeSet<SharedStr> = BTreeSet::new();
        for (key, account) in &self.accounts {
            if account.assigned.is_empty() {
                starting.insert(key.clone());
            }
        }
        for (uid, node) in &moment.binds {
            let Some(pod) = moment.pods.get(uid) else { continue };
            let homeless = self.homeless(gangs);
            let before = homeless.map(|(shape, count)| self.room(moment, gangs, free, shape).min(count));
            if let Some(room) = free.get_mut(node) {
                *room = room.plus(needs(pod), -1);
            }
            let mut refill = false;
            if let Some((key, account)) =
                gang_of(pod).and_then(|key| self.accounts.get_mut(&key).map(|of| (key, of)))
            {
                account.assigned.insert(uid.clone(), node.clone());
                if starting.contains(&key) {
                    *starts.entry(key).or_default() += 1;
                } else {
                    refill = account.take_place(node);
                }
            }
            let kept = self.kept(gangs, node);
            if let Some(room) = free.get(node).filter(|room| !room.holds(kept)) {
                wrong.push(format!("{} took a place kept on {node}: {room:?} left, {kept:?} kept", pod.name));
            }
            if let (Some(before), Some((shape, count)), false) = (before, homeless, refill) {
                let after = self.room(moment, gangs, free, shape).min(count);
                if after < before {
                    wrong.push(format!(
                        "{} took the room on {node} of a member that is missing: for {before} before, for {after} after",
                        pod.name
                    ));
                }
            }
        }
        for (key, count) in starts {
            if count < gangs[&key].wanted {
                wrong.push(format!(
                    "{key} starts with {count} of {}: whole or not at all",
                    gangs[&key].wanted
                ));
            }
        }
        wrong
    }

    /// The places without a node, where one gang alone has such: how many of which shape.
    fn homeless(&self, gangs: &BTreeMap<SharedStr, Gang>) -> Option<(Amount, i64)> {
        let mut found = None;
        for (key, account) in &self.accounts {
            let count = account.places.iter().filter(|place| place.node.is_none()).count();
            if count > 0 {
                if found.is_some() {
                    return None;
                }
                found = Some((gangs[key].shape, i64::try_from(count).unwrap()));
            }
        }
        found
    }

    /// How many of a shape fit beside what is kept.
    fn room(
        &self,
        moment: &Moment,
        gangs: &BTreeMap<SharedStr, Gang>,
        free: &BTreeMap<SharedStr, Amount>,
        shape: Amount,
    ) -> i64 {
        let open = free.iter().filter(|(node, _)| takes_work(moment, node));
        open.map(|(node, room)| room.plus(self.kept(gangs, node), -1).room(shape).min(1000)).sum()
    }
}

impl Account {
    /// Who was lost since, and which places are kept now, before anything is bound.
    fn before(&mut self, moment: &Moment, key: &SharedStr, gang: &Gang, bound: &BTreeSet<&SharedStr>) {
        let before = std::mem::take(&mut self.assigned).into_iter().chain(std::mem::take(&mut self.leaving));
        let there = moment.pods.values().filter(|pod| {
            gang_of(pod).as_ref() == Some(key) && !pod.phase.ended() && !bound.contains(&pod.uid)
        });
        for pod in there {
            if let Some(node) = pod.node.as_ref().filter(|node| moment.nodes.contains_key(*node)) {
                let books = if pod.deleting { &mut self.leaving } else { &mut self.assigned };
                books.insert(pod.uid.clone(), node.clone());
            }
        }
        let gone = |uid: &SharedStr| !self.assigned.contains_key(uid) && !self.leaving.contains_key(uid);
        let lost: Vec<SharedStr> = before.filter(|(uid, _)| gone(uid)).map(|(_, node)| node).collect();
        let nobody = gang.going || self.assigned.is_empty();
        let missing = if nobody { 0 } else { gang.wanted.saturating_sub(self.assigned.len()) };
        if missing == 0 {
            self.expired = 0;
        }
        let places = self.places.len();
        self.places.retain(|place| place.since + DEADLINE > moment.now);
        self.expired += places - self.places.len();
        let owed = missing.saturating_sub(self.expired + self.leaving.len());
        let mut nodes = lost.into_iter();
        while self.places.len() < owed {
            self.places.push(Place { node: nodes.next(), since: moment.now });
        }
        if self.places.len() > owed {
            // Which of them goes is the scheduler's choice.
            let first = self.places[0].node.clone();
            if self.places.iter().any(|place| place.node != first) {
                self.places.iter_mut().for_each(|place| place.node = None);
            }
            self.places.truncate(owed);
        }
        for place in &mut self.places {
            let stays = place.node.as_ref().is_some_and(|node| takes_work(moment, node));
            if moment.restarted || !stays {
                place.node = None;
            }
        }
    }

    /// A member came: it uses one place, its own node's first; whether there was one.
    fn take_place(&mut self, node: &SharedStr) -> bool {
        let own = self.places.iter().position(|place| place.node.as_ref() == Some(node));
        let any = || self.places.iter().position(|place| place.node.is_none());
        let Some(index) = own.or_else(any).or_else(|| (!self.places.is_empty()).then_some(0)) else {
            return false;
        };
        self.places.remove(index);
        true
    }
}

/// The UID of what makes the Pod's gang, where one does.
fn gang_of(pod: &PodSpec) -> Option<SharedStr> {
    let group = pod.scheduling_group.as_ref().map(|name| format!("pg-{name}").as_str().into());
    group.or_else(|| pod.controller.as_ref().map(|owner| owner.uid.clone()))
}

fn gangs(moment: &Moment) -> BTreeMap<SharedStr, Gang> {
    let mut members: BTreeMap<SharedStr, Vec<&PodSpec>> = BTreeMap::new();
    for pod in moment.pods.values() {
        if let Some(key) = gang_of(pod) {
            members.entry(key).or_default().push(pod);
        }
    }
    let gang = |(key, pods): (SharedStr, Vec<&PodSpec>)| {
        let (wanted, going) = match (moment.owners.get(&key), moment.groups.get(&key)) {
            (Some(owner), _) => {
                let OwnerDetail::Job {
                    parallelism, completions, succeeded, failed_indexes, suspended, ..
                } = &owner.detail
                else {
                    panic!("only Jobs own Pods here")
                };
                let left = completions.unwrap() - succeeded - failed_indexes;
                ((*parallelism).min(left), *suspended || owner.deleting)
            }
            (None, Some(group)) => {
                // What has done its work is not made again.
                let done = pods.iter().filter(|pod| pod.phase == Phase::Succeeded).count();
                let left = group.min_count.unwrap() - i64::try_from(done).unwrap();
                (left.max(0), group.deleting)
            }
            (None, None) => (0, true),
        };
        let waits = |pod: &&&PodSpec| pod.node.is_none() && !pod.phase.ended() && !pod.deleting;
        let waiting = pods.iter().filter(waits).count();
        let shape = needs(pods[0]);
        (key, Gang { wanted: usize::try_from(wanted).unwrap(), going, shape, waiting })
    };
    members.into_iter().map(gang).collect()
}

/// What the Pods on each node leave of it.
fn free(moment: &Moment) -> BTreeMap<SharedStr, Amount> {
    let mut free: BTreeMap<SharedStr, Amount> = BTreeMap::new();
    for (name, node) in &moment.nodes {
        let all = |resource| i64::try_from(node.allocatable.get(resource)).unwrap();
        free.insert(name.clone(), Amount { cpu: all("cpu"), pods: all("pods") });
    }
    for pod in moment.pods.values().filter(|pod| !pod.phase.ended()) {
        if let Some(room) = pod.node.as_ref().and_then(|node| free.get_mut(node)) {
            *room = room.plus(needs(pod), -1);
        }
    }
    free
}

fn takes_work(moment: &Moment, node: &SharedStr) -> bool {
    moment.nodes.get(node).is_some_and(|node| node.ready && !node.unschedulable && !node.deleting)
}
