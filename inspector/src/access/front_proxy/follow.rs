//! Reads the settings of the front proxy from the API server, again whenever they change.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};

use super::known::FrontProxy;
use super::trust::Trust;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
/// Trouble is logged no more often than this.
const COMPLAIN: Duration = Duration::from_mins(1);

/// Keeps the front proxy's settings current; never ends. While the API server is away those that were read last count.
pub async fn follow(client: Client, front_proxy: Arc<FrontProxy>) {
    let api: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    let one = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
    let mut events = pin!(watcher(api, one).default_backoff());
    let mut complained: Option<tokio::time::Instant> = None;
    let mut found = false;
    loop {
        match events.next().await {
            Some(Ok(watcher::Event::Init)) => found = false,
            Some(Ok(watcher::Event::InitApply(map) | watcher::Event::Apply(map))) => {
                found = true;
                apply(&front_proxy, &map);
            }
            Some(Ok(watcher::Event::InitDone)) if found => {}
            Some(Ok(watcher::Event::InitDone | watcher::Event::Delete(_))) => {
                tracing::warn!(
                    "ConfigMap {NAMESPACE}/{NAME} does not exist: requests through kube-apiserver are refused"
                );
                front_proxy.set(None);
            }
            Some(Err(error)) => {
                if complained.is_none_or(|at| at.elapsed() > COMPLAIN) {
                    tracing::warn!(%error, "failed to watch ConfigMap {NAMESPACE}/{NAME}");
                    complained = Some(tokio::time::Instant::now());
                }
            }
            None => return,
        }
    }
}

fn apply(front_proxy: &FrontProxy, map: &ConfigMap) {
    match Trust::read(map.data.as_ref().unwrap_or(&std::collections::BTreeMap::new())) {
        Ok(trust) => {
            tracing::info!("read the front proxy's settings");
            front_proxy.set(Some(trust));
        }
        Err(error) => {
            tracing::warn!(%error, "ConfigMap {NAMESPACE}/{NAME} is invalid: requests through kube-apiserver are refused");
            front_proxy.set(None);
        }
    }
}
