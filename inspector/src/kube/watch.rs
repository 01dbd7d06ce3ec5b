//! The watches: whatever changes in the cluster becomes an event of the engine.
//!
//! Each kind has a task of its own that never waits for the engine. Kinds that may not be installed are looked for
//! again and again, and not waited for.

use std::sync::Arc;

use fluxion_core::event::Event;
use fluxion_core::model::OwnerDetail;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::sync::watch as signal;
use tokio::task::JoinSet;

use crate::engine::EngineHandle;
use crate::metrics::Metrics;

use super::translate::{group, node, owner};

mod follow;
mod known;
mod optional;
mod volumes;

use follow::{Follow, Initial};
use volumes::Volumes;

/// Kinds of CRDs that make Pods or Jobs, read by their metadata: (group/version, kind, plural).
const OTHER_OWNERS: [(&str, &str, &str); 4] = [
    ("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets"),
    ("kubeflow.org/v2beta1", "MPIJob", "mpijobs"),
    ("flux-framework.org/v1alpha2", "MiniCluster", "miniclusters"),
];
const SIGS_GROUPS: (&str, &str, &str) = ("scheduling.x-k8s.io/v1alpha1", "PodGroup", "podgroups");
const NATIVE_GROUPS: &str = "scheduling.k8s.io/v1beta1";

/// The running watches; dropping them ends them.
pub struct Watches {
    _tasks: JoinSet<()>,
    initial: Vec<signal::Receiver<bool>>,
}

impl Watches {
    /// Starts all of them.
    pub fn start(client: &Client, engine: &EngineHandle, metrics: &Arc<Metrics>) -> Self {
        let mut start = Starting {
            client: client.clone(),
            engine: engine.clone(),
            metrics: Arc::clone(metrics),
            served: signal::channel(optional::Served::default()).1,
            tasks: JoinSet::new(),
            initial: Vec::new(),
        };
        start.served = optional::discover(client.clone(), &mut start.tasks);
        start.core();
        start.owners();
        start.optional();
        Self { _tasks: start.tasks, initial: start.initial }
    }

    /// Returns when every watch has delivered what there was (and kinds that aren't installed are known not to be).
    pub async fn synced(&mut self) {
        for initial in &mut self.initial {
            // A sender is dropped only when the inspector ends; then nobody waits for this any more.
            if initial.wait_for(|done| *done).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

struct Starting {
    client: Client,
    engine: EngineHandle,
    metrics: Arc<Metrics>,
    served: signal::Receiver<optional::Served>,
    tasks: JoinSet<()>,
    initial: Vec<signal::Receiver<bool>>,
}

impl Starting {
    fn follow(&mut self, kind: &'static str) -> Follow {
        let (initial, done) = Initial::new();
        self.initial.push(done);
        Follow { kind, engine: self.engine.clone(), metrics: Arc::clone(&self.metrics), initial }
    }

    fn core(&mut self) {
        let follow = self.follow("Node");
        let nodes = watcher(Api::<Node>::all(self.client.clone()), watcher::Config::default());
        self.tasks.spawn(follow.run(
            nodes,
            |object| node::translate(object).map(|spec| vec![Event::Node(Box::new(spec))]),
            |gone| vec![Event::NodeGone(gone.name.clone())],
        ));
        let volumes = Arc::new(Volumes::default());
        let follow = self.follow("Pod");
        let pods = watcher(Api::<Pod>::all(self.client.clone()), watcher::Config::default());
        self.tasks.spawn(volumes::follow_pods(follow, pods, Arc::clone(&volumes)));
        let follow = self.follow("PersistentVolumeClaim");
        let claims =
            watcher(Api::<PersistentVolumeClaim>::all(self.client.clone()), watcher::Config::default());
        self.tasks.spawn(volumes::follow_claims(follow, claims, Arc::clone(&volumes)));
        let follow = self.follow("PersistentVolume");
        let persistent =
            watcher(Api::<PersistentVolume>::all(self.client.clone()), watcher::Config::default());
        self.tasks.spawn(volumes::follow_volumes(follow, persistent, volumes));
    }

    fn owners(&mut self) {
        let config = watcher::Config::default();
        macro_rules! owners {
            ($kind:literal, $object:ty, $translate:expr) => {
                let follow = self.follow($kind);
                let stream = watcher(Api::<$object>::all(self.client.clone()), config.clone());
                self.tasks.spawn(follow.run(
                    stream,
                    |object: &$object| $translate(object).map(|spec| vec![Event::Owner(Box::new(spec))]),
                    |gone| vec![Event::OwnerGone(gone.uid.clone())],
                ));
            };
        }
        owners!("Job", Job, owner::job);
        owners!("StatefulSet", StatefulSet, owner::stateful_set);
        owners!("ReplicaSet", ReplicaSet, owner::replica_set);
        owners!("Deployment", Deployment, owner::deployment);
        let follow = self.follow("CronJob");
        let crons = watcher(Api::<PartialObjectMeta<CronJob>>::all(self.client.clone()), config);
        self.tasks.spawn(follow.run(
            crons,
            |object: &PartialObjectMeta<CronJob>| {
                let spec = owner::owner(&object.metadata, "batch/v1", "CronJob", OwnerDetail::Other)?;
                Ok(vec![Event::Owner(Box::new(spec))])
            },
            |gone| vec![Event::OwnerGone(gone.uid.clone())],
        ));
    }

    fn optional(&mut self) {
        let client = self.client.clone();
        let follow = self.follow("PodGroup");
        self.tasks.spawn(optional::follow(
            follow,
            self.served.clone(),
            NATIVE_GROUPS,
            move || watcher(Api::<PodGroup>::all(client.clone()), watcher::Config::default()),
            |object: &PodGroup| group::native(object).map(|spec| vec![Event::Group(Box::new(spec))]),
            |gone| vec![Event::GroupGone(gone.uid.clone())],
        ));
        let (client, resource) = (self.client.clone(), api_resource(SIGS_GROUPS));
        let follow = self.follow("PodGroup.scheduling.x-k8s.io");
        self.tasks.spawn(optional::follow(
            follow,
            self.served.clone(),
            SIGS_GROUPS.0,
            move || watcher(dynamic(&client, &resource), watcher::Config::default()),
            |object: &DynamicObject| group::sigs(object).map(|spec| vec![Event::Group(Box::new(spec))]),
            |gone| vec![Event::GroupGone(gone.uid.clone())],
        ));
        for (api_version, kind, plural) in OTHER_OWNERS {
            let (client, resource) = (self.client.clone(), api_resource((api_version, kind, plural)));
            let follow = self.follow(kind);
            self.tasks.spawn(optional::follow(
                follow,
                self.served.clone(),
                api_version,
                move || watcher(partial(&client, &resource), watcher::Config::default()),
                move |object: &PartialObjectMeta<DynamicObject>| {
                    let spec = owner::owner(&object.metadata, api_version, kind, OwnerDetail::Other)?;
                    Ok(vec![Event::Owner(Box::new(spec))])
                },
                |gone| vec![Event::OwnerGone(gone.uid.clone())],
            ));
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
