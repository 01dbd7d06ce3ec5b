//! Watches Pods and notes for how long a gang was bound in part.
//!
//! It sees what every user of the API sees: a gang whose Pods run in part wastes nodes, however short the
//! scheduler thinks that was.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};

use crate::stage::node_of;

/// A running watch; ends on drop.
pub struct GangWatch {
    book: Arc<Mutex<Book>>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Book {
    gangs: BTreeMap<String, Gang>,
    rebound: Vec<String>,
    nodes: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct Gang {
    size: usize,
    bound: usize,
    partial_since: Option<Instant>,
    longest: Duration,
}

impl GangWatch {
    /// Watches all Pods that carry `label`; its value names the gang, `sizes` says how many Pods each has.
    pub fn start(client: Client, label: &'static str, sizes: &[(&str, usize)]) -> Self {
        let mut book = Book::default();
        for (name, size) in sizes {
            book.gangs.insert((*name).to_owned(), Gang { size: *size, ..Gang::default() });
        }
        let book = Arc::new(Mutex::new(book));
        let shared = Arc::clone(&book);
        let task = tokio::spawn(async move {
            let events = watcher(Api::<Pod>::all(client), watcher::Config::default().labels(label));
            pin_mut!(events);
            while let Some(event) = events.next().await {
                if let Ok(Event::Apply(pod) | Event::InitApply(pod)) = event {
                    shared.lock().unwrap_or_else(PoisonError::into_inner).see(&pod, label, Instant::now());
                }
            }
        });
        Self { book, task }
    }

    /// The longest time for which the gang was bound in part, until now.
    pub fn longest_partial(&self, gang: &str) -> Duration {
        let book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.gangs.get(gang).map_or(Duration::ZERO, |gang| {
            let running = gang.partial_since.map_or(Duration::ZERO, |since| since.elapsed());
            gang.longest.max(running)
        })
    }

    /// How many of its Pods were ever bound.
    pub fn ever_bound(&self, gang: &str) -> usize {
        let book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.gangs.get(gang).map_or(0, |gang| gang.bound)
    }

    /// Pods seen on two nodes.
    pub fn rebound(&self) -> Vec<String> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner).rebound.clone()
    }
}

impl Drop for GangWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Book {
    fn see(&mut self, pod: &Pod, label: &str, now: Instant) {
        let Some(node) = node_of(pod) else { return };
        let uid = pod.uid().unwrap_or_default();
        if let Some(before) = self.nodes.get(&uid) {
            if before != node {
                self.rebound.push(pod.name_any());
            }
            return;
        }
        self.nodes.insert(uid, node.to_owned());
        let Some(gang) = pod.labels().get(label).and_then(|name| self.gangs.get_mut(name)) else { return };
        gang.bound += 1;
        if gang.bound < gang.size {
            gang.partial_since.get_or_insert(now);
        } else if let Some(since) = gang.partial_since.take() {
            gang.longest = gang.longest.max(now.duration_since(since));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, node: Option<&str>) -> Pod {
        let pod = json!({
            "metadata": { "name": uid, "uid": uid, "labels": { "gang": "a" } },
            "spec": { "nodeName": node, "containers": [] },
        });
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn time_in_part_is_from_the_first_to_the_last_binding() {
        let mut book = Book::default();
        book.gangs.insert("a".to_owned(), Gang { size: 2, ..Gang::default() });
        let start = Instant::now();
        book.see(&pod("p", None), "gang", start);
        book.see(&pod("p", Some("n1")), "gang", start + Duration::from_secs(1));
        book.see(&pod("p", Some("n1")), "gang", start + Duration::from_secs(2));
        book.see(&pod("q", Some("n1")), "gang", start + Duration::from_secs(4));
        assert_eq!(book.gangs["a"].longest, Duration::from_secs(3));
        assert!(book.rebound.is_empty());
        book.see(&pod("q", Some("n2")), "gang", start + Duration::from_secs(5));
        assert_eq!(book.rebound, ["q"]);
    }
}
