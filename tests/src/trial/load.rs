//! Gangs that come without a pause, run for a few seconds, and end. Pods that have ended are deleted some time later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams};

use crate::apply::Applier;
use crate::manifests::PodManifest;

/// Seconds that they run.
const RUNS: u32 = 4;
/// Ended Pods are deleted once so many gangs have followed.
const KEPT: usize = 50;

/// A running source of gangs; ended on drop.
pub struct Load {
    created: Arc<AtomicUsize>,
    failed: Arc<AtomicUsize>,
    enough: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl Load {
    /// Members of a gang.
    pub const SIZE: usize = 8;

    /// A gang of 8 Pods with half a core each, in each such time.
    pub fn start(applier: Applier, every: Duration) -> Self {
        let (created, failed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let enough = Arc::new(AtomicBool::new(false));
        let (made, missed, ends) = (Arc::clone(&created), Arc::clone(&failed), Arc::clone(&enough));
        let task = tokio::spawn(async move {
            let pods: Api<Pod> = Api::default_namespaced(applier.client().clone());
            let ended = ListParams::default().fields("status.phase=Succeeded");
            for number in 0_usize.. {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                if number % KEPT == KEPT - 1 {
                    // Those that could not be deleted are deleted next time.
                    let _ = pods.delete_collection(&DeleteParams::default(), &ended).await;
                }
                let gang = format!("load-{number}");
                if create(&applier, &gang).await {
                    made.fetch_add(1, Ordering::Relaxed);
                } else {
                    missed.fetch_add(1, Ordering::Relaxed);
                }
                tokio::time::sleep(every).await;
            }
        });
        Self { created, failed, enough, task }
    }

    /// Creates no further gang, and waits until the last one is created as a whole. The gangs are `load-0` and so on.
    pub async fn finish(&mut self) {
        self.enough.store(true, Ordering::Relaxed);
        // It never panics, and nobody else ends it.
        let _ = (&mut self.task).await;
    }

    /// Gangs created as a whole.
    pub fn created(&self) -> usize {
        self.created.load(Ordering::Relaxed)
    }

    /// Gangs of which not all Pods could be created.
    pub fn failed(&self) -> usize {
        self.failed.load(Ordering::Relaxed)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A gang of Pods that run for some seconds. Whether all of them were created.
async fn create(applier: &Applier, gang: &str) -> bool {
    let pod = PodManifest::new("member").request("cpu", "500m").group(gang, Load::SIZE).runs_for(RUNS);
    let mut whole = true;
    for index in 0..Load::SIZE {
        let name = format!("{gang}-{index}");
        // The API server may be away for longer than a request waits.
        let mut left = 60;
        while let Err(error) = applier.create(pod.named(&name).build()).await {
            if format!("{error:#}").contains("AlreadyExists") || left == 0 {
                whole &= left > 0;
                break;
            }
            left -= 1;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
    whole
}
