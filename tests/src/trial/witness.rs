//! Watches all Pods, and notes what must never be: a Pod on two nodes, a node with more than it has, a gang in part.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};

use crate::stage::node_of;
use crate::wait;

const GANG: &str = "fluxion.flux-framework.org/group";
const SIZE: &str = "fluxion.flux-framework.org/group-size";

/// A running watch; ended on drop.
pub struct Witness {
    book: Arc<Mutex<Book>>,
    task: tokio::task::JoinHandle<()>,
}

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Each thing that must not be.
    pub wrong: Vec<String>,
    /// Pods bound.
    pub bound: usize,
    /// Gangs of which all members were bound.
    pub whole: usize,
    /// Gangs bound in part now.
    pub partial: usize,
    /// The longest time that a gang was bound in part.
    pub longest_partial: Duration,
}

#[derive(Debug)]
struct Placed {
    node: String,
    millicores: i64,
    ended: bool,
}

#[derive(Debug, Default)]
struct Gang {
    size: usize,
    members: BTreeSet<String>,
    partial_since: Option<Instant>,
}

#[derive(Debug)]
struct Book {
    /// Millicores that each node has.
    node_has: i64,
    pods: BTreeMap<String, Placed>,
    /// Where each Pod was ever seen.
    nodes: BTreeMap<String, String>,
    gangs: BTreeMap<String, Gang>,
    listed: BTreeSet<String>,
    seen: Seen,
}

impl Witness {
    /// Watches a cluster whose nodes have so many millicores each.
    pub fn start(client: Client, node_has: i64) -> Self {
        let book = Arc::new(Mutex::new(Book {
            node_has,
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            gangs: BTreeMap::new(),
            listed: BTreeSet::new(),
            seen: Seen::default(),
        }));
        let shared = Arc::clone(&book);
        let task = tokio::spawn(async move {
            let events = watcher(Api::<Pod>::all(client), watcher::Config::default()).default_backoff();
            pin_mut!(events);
            while let Some(event) = events.next().await {
                let mut book = shared.lock().unwrap_or_else(PoisonError::into_inner);
                match event {
                    Ok(Event::Init) => book.listed.clear(),
                    Ok(Event::InitApply(pod)) => {
                        book.listed.insert(pod.uid().unwrap_or_default());
                        book.see(&pod, Instant::now());
                    }
                    Ok(Event::InitDone) => {
                        let listed = std::mem::take(&mut book.listed);
                        book.pods.retain(|uid, _| listed.contains(uid));
                        // Until then, Pods that have gone in the meantime are counted.
                        book.sums();
                    }
                    Ok(Event::Apply(pod)) => {
                        book.see(&pod, Instant::now());
                        book.sums();
                    }
                    Ok(Event::Delete(pod)) => {
                        book.pods.remove(&pod.uid().unwrap_or_default());
                    }
                    Err(_) => {}
                }
            }
        });
        Self { book, task }
    }

    /// What was seen so far.
    pub fn seen(&self) -> Seen {
        let book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = book.seen.clone();
        for since in book.gangs.values().filter_map(|gang| gang.partial_since) {
            seen.partial += 1;
            seen.longest_partial = seen.longest_partial.max(since.elapsed());
        }
        seen
    }

    /// Waits until so many more gangs have become whole.
    pub async fn works(&self, more: usize, within: Duration) -> Result<()> {
        let before = self.seen().whole;
        wait::until("gangs are bound", within, || async {
            let seen = self.seen();
            ensure!(seen.whole >= before + more, "{seen:?}");
            Ok(())
        })
        .await
    }

    /// How many members of the gang were ever bound.
    pub fn bound_of(&self, gang: &str) -> usize {
        let book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.gangs.get(gang).map_or(0, |gang| gang.members.len())
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Book {
    fn see(&mut self, pod: &Pod, now: Instant) {
        let Some(node) = node_of(pod) else { return };
        let (name, uid) = (pod.name_any(), pod.uid().unwrap_or_default());
        match self.nodes.get(&uid) {
            Some(before) if before != node => {
                self.seen.wrong.push(format!("{name} was on {before} and is on {node}"));
            }
            Some(_) => {}
            None => {
                self.nodes.insert(uid.clone(), node.to_owned());
                self.seen.bound += 1;
                self.count(pod, &uid, now);
            }
        }
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
        let ended = matches!(phase, "Succeeded" | "Failed");
        self.pods.insert(uid, Placed { node: node.to_owned(), millicores: millicores(pod), ended });
    }

    fn count(&mut self, pod: &Pod, uid: &str, now: Instant) {
        let Some(name) = pod.labels().get(GANG) else { return };
        let size = pod.labels().get(SIZE).and_then(|size| size.parse().ok()).unwrap_or(1);
        let gang = self.gangs.entry(name.clone()).or_default();
        gang.size = size;
        gang.members.insert(uid.to_owned());
        if gang.members.len() < size {
            gang.partial_since.get_or_insert(now);
            return;
        }
        self.seen.whole += 1;
        if let Some(since) = gang.partial_since.take() {
            self.seen.longest_partial = self.seen.longest_partial.max(now.duration_since(since));
        }
    }

    /// The requests of all Pods that hold resources, node by node.
    fn sums(&mut self) {
        let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
        for placed in self.pods.values().filter(|placed| !placed.ended) {
            *sums.entry(&placed.node).or_default() += placed.millicores;
        }
        let too_much: Vec<String> = sums
            .into_iter()
            .filter(|(_, sum)| *sum > self.node_has)
            .map(|(node, sum)| format!("Pods on {node} request {sum}m of {}m", self.node_has))
            .collect();
        self.seen.wrong.extend(too_much);
    }
}

/// What its containers request of cpu, in millicores; whole cores or `m` only.
fn millicores(pod: &Pod) -> i64 {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let amounts =
        containers.filter_map(|container| container.resources.as_ref()?.requests.as_ref()?.get("cpu"));
    amounts
        .filter_map(|amount| match amount.0.strip_suffix('m') {
            Some(milli) => milli.parse::<i64>().ok(),
            None => amount.0.parse::<i64>().ok().map(|cores| cores * 1000),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, node: &str, phase: &str) -> Pod {
        let pod = json!({
            "metadata": { "name": uid, "uid": uid, "labels": { GANG: "g", SIZE: "2" } },
            "spec": { "nodeName": node, "containers": [
                { "name": "c", "resources": { "requests": { "cpu": "1500m" } } },
                { "name": "d", "resources": { "requests": { "cpu": "1" } } },
            ] },
            "status": { "phase": phase },
        });
        serde_json::from_value(pod).unwrap()
    }

    fn book() -> Book {
        Book {
            node_has: 4000,
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            gangs: BTreeMap::new(),
            listed: BTreeSet::new(),
            seen: Seen::default(),
        }
    }

    #[test]
    fn what_must_not_be_is_noted() {
        let (mut book, start) = (book(), Instant::now());
        book.see(&pod("a", "n", "Running"), start);
        book.sums();
        assert!(book.seen.wrong.is_empty() && book.gangs["g"].partial_since.is_some());
        book.see(&pod("b", "n", "Pending"), start + Duration::from_secs(3));
        book.sums();
        assert_eq!(book.seen.wrong, ["Pods on n request 5000m of 4000m"]);
        assert_eq!((book.seen.whole, book.seen.longest_partial), (1, Duration::from_secs(3)));
        book.see(&pod("a", "n", "Succeeded"), start);
        book.sums();
        assert_eq!(book.seen.wrong.len(), 1, "what has ended holds nothing");
        book.see(&pod("b", "m", "Running"), start);
        assert_eq!(book.seen.wrong[1], "b was on n and is on m");
    }
}
