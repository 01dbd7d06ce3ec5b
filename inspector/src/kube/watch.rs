//! The watches: every change in the cluster becomes an event for the engine.
//!
//! Each kind has its own task, which never waits for the engine. Kinds that may not be installed are checked
//! periodically and not waited for.

use std::sync::Arc;

use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::OwnerDetail;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Event as ApiEvent, Namespace, Node, Pod};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::sync::watch as signal;

use crate::engine::EngineHandle;
use crate::health::{Health, WATCH_SECONDS, Watched};
use crate::metrics::Metrics;
use crate::supervise::Tasks;

use super::suspendable;
use super::translate::{failures, group, namespace, node, owner, pod, sets};

mod follow;
mod known;
mod observe;
mod optional;
mod storage;

use follow::Follow;
use observe::observed;

/// Kinds of CRDs that create Pods or Jobs, of which only metadata is read: (group/version, kind, plural).
const OTHER_OWNERS: [(&str, &str, &str); 2] = [
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets"),
    ("flux-framework.org/v1alpha2", "MiniCluster", "miniclusters"),
];
const SIGS_GROUPS: (&str, &str, &str) = ("scheduling.x-k8s.io/v1alpha1", "PodGroup", "podgroups");
const NATIVE_GROUPS: &str = "scheduling.k8s.io/v1beta1";

/// Starts all watches; they report events to the engine and their state to `health`. Dropping the tasks ends them.
pub fn start(client: &Client, engine: &EngineHandle, metrics: &Arc<Metrics>, health: &Health) -> Tasks {
    let mut tasks = Tasks::default();
    let served = optional::discover(client.clone(), health, &mut tasks);
    let mut start = Starting { client, engine, metrics, health, served, tasks };
    start.core();
    start.claims();
    start.storage();
    start.owners();
    start.failures();
    start.optional();
    start.tasks
}

struct Starting<'a> {
    client: &'a Client,
    engine: &'a EngineHandle,
    metrics: &'a Arc<Metrics>,
    health: &'a Health,
    served: signal::Receiver<optional::ServedVersion>,
    tasks: Tasks,
}

/// Watch configuration: bookmarks are enabled by default.
fn config() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_SECONDS)
}

impl Starting<'_> {
    /// For another kind, by its plural name: its follower, and the client for its watch.
    fn follow(&self, kind: &'static str, resource: &'static str) -> (Follow, Client) {
        self.report_to(kind, self.health.watch(kind, resource))
    }

    /// The same for a watch on which nothing depends.
    fn follow_aside(&self, kind: &'static str, resource: &'static str) -> (Follow, Client) {
        self.report_to(kind, Health::aside(kind, resource))
    }

    fn report_to(&self, kind: &'static str, watched: Arc<Watched>) -> (Follow, Client) {
        let client = observed(self.client, &watched);
        let (engine, metrics) = (self.engine.clone(), Arc::clone(self.metrics));
        (Follow::new(kind, engine, metrics, watched), client)
    }

    fn spawn(&mut self, resource: &str, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(&format!("the watch of {resource}"), task);
    }

    fn core(&mut self) {
        let (follow, client) = self.follow("Node", "nodes");
        let nodes = watcher(Api::<Node>::all(client), config());
        let follow = follow.run(
            nodes,
            |object| node::translate(object).map(|spec| vec![Event::Node(Box::new(spec))]),
            |gone| vec![Event::NodeGone(gone.name.clone())],
        );
        self.spawn("nodes", follow);
        let (follow, client) = self.follow("Namespace", "namespaces");
        let namespaces = watcher(Api::<PartialObjectMeta<Namespace>>::all(client), config());
        let follow = follow.run(
            namespaces,
            |object: &PartialObjectMeta<Namespace>| {
                namespace::translate(&object.metadata).map(|event| vec![event])
            },
            |gone| vec![Event::NamespaceGone(gone.name.clone())],
        );
        self.spawn("namespaces", follow);
        let (follow, client) = self.follow("Pod", "pods");
        let pods = watcher(Api::<Pod>::all(client), config());
        let follow = follow.run(
            pods,
            |object| pod::in_cluster(object).map(|spec| vec![Event::Pod(Box::new(spec))]),
            |gone| vec![Event::PodGone(gone.uid.clone())],
        );
        self.spawn("pods", follow);
    }

    fn owners(&mut self) {
        macro_rules! owners {
            ($kind:literal, $resource:literal, $object:ty, $translate:expr) => {
                let (follow, client) = self.follow($kind, $resource);
                let stream = watcher(Api::<$object>::all(client), config());
                let follow = follow.run(
                    stream,
                    |object: &$object| $translate(object).map(|spec| vec![Event::Owner(Box::new(spec))]),
                    |gone| vec![Event::OwnerGone(gone.uid.clone())],
                );
                self.spawn($resource, follow);
            };
        }
        owners!("Job", "jobs", Job, owner::job);
        owners!("StatefulSet", "statefulsets", StatefulSet, owner::stateful_set);
        owners!("ReplicaSet", "replicasets", ReplicaSet, owner::replica_set);
        owners!("Deployment", "deployments", Deployment, owner::deployment);
        let (follow, client) = self.follow("CronJob", "cronjobs");
        let crons = watcher(Api::<PartialObjectMeta<CronJob>>::all(client), config());
        let follow = follow.run(
            crons,
            |object: &PartialObjectMeta<CronJob>| {
                let spec = owner::owner(&object.metadata, "batch/v1", "CronJob", OwnerDetail::Other)?;
                Ok(vec![Event::Owner(Box::new(spec))])
            },
            |gone| vec![Event::OwnerGone(gone.uid.clone())],
        );
        self.spawn("cronjobs", follow);
    }

    /// Causes are only shown, so nothing waits for this watch, and nothing is held up if it fails.
    fn failures(&mut self) {
        let (follow, client) = self.follow_aside("Event", "events");
        let selector = format!("reason={}", failures::REASON);
        let events = watcher(Api::<ApiEvent>::all(client), config().fields(&selector));
        self.spawn("events", follow.run(events, failures::translate, |_| Vec::new()));
    }

    fn optional(&mut self) {
        let (follow, client) = self.follow("PodGroup", "podgroups.scheduling.k8s.io");
        let follow = optional::follow(
            follow,
            self.served.clone(),
            NATIVE_GROUPS,
            move || watcher(Api::<PodGroup>::all(client.clone()), config()),
            |object: &PodGroup| group::native(object).map(|spec| vec![Event::Group(Box::new(spec))]),
            |gone| vec![Event::GroupGone(gone.uid.clone())],
        );
        self.spawn("podgroups.scheduling.k8s.io", follow);
        let resource = api_resource(SIGS_GROUPS);
        let (follow, client) = self.follow("PodGroup.scheduling.x-k8s.io", "podgroups.scheduling.x-k8s.io");
        let follow = optional::follow(
            follow,
            self.served.clone(),
            SIGS_GROUPS.0,
            move || watcher(dynamic(&client, &resource), config()),
            |object: &DynamicObject| {
                group::scheduler_plugins(object).map(|spec| vec![Event::Group(Box::new(spec))])
            },
            |gone| vec![Event::GroupGone(gone.uid.clone())],
        );
        self.spawn("podgroups.scheduling.x-k8s.io", follow);
        for (api_version, kind, plural) in OTHER_OWNERS {
            let resource = api_resource((api_version, kind, plural));
            let (follow, client) = self.follow(kind, plural);
            let follow = optional::follow(
                follow.of_owners(api_version, kind),
                self.served.clone(),
                api_version,
                move || watcher(partial(&client, &resource), config()),
                move |object: &PartialObjectMeta<DynamicObject>| {
                    let spec = owner::owner(&object.metadata, api_version, kind, OwnerDetail::Other)?;
                    Ok(vec![Event::Owner(Box::new(spec))])
                },
                |gone| vec![Event::OwnerGone(gone.uid.clone())],
            );
            self.spawn(plural, follow);
        }
        for kind in &suspendable::KINDS {
            let resource = api_resource((kind.api_version, kind.kind, kind.plural));
            let (follow, client) = self.follow(kind.kind, kind.plural);
            let follow = optional::follow(
                follow.of_owners(kind.api_version, kind.kind),
                self.served.clone(),
                kind.api_version,
                move || watcher(dynamic(&client, &resource), config()),
                move |object: &DynamicObject| {
                    sets::translate(kind, object).map(|spec| vec![Event::Owner(Box::new(spec))])
                },
                |gone| vec![Event::OwnerGone(gone.uid.clone())],
            );
            self.spawn(kind.plural, follow);
        }
    }
}

fn api_resource((api_version, kind, plural): (&str, &str, &str)) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

fn partial(client: &Client, resource: &ApiResource) -> Api<PartialObjectMeta<DynamicObject>> {
    Api::all_with(client.clone(), resource)
}

fn dynamic(client: &Client, resource: &ApiResource) -> Api<DynamicObject> {
    Api::all_with(client.clone(), resource)
}

#[cfg(test)]
mod tests;
