//! What must never be, in any case: looked at after each step, by the API server's word and the inspector's.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use fluxion_api::FluxionJob;
use fluxion_api::client::Selection;
use http::Request;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use tokio::time::Instant;

use super::check::{ended, node_of};
use super::quantity::nanos;
use crate::inspector::Inspector;

/// An Event is not told oftener than this.
const TOLD_MAX: i32 = 20;
/// Bindings that are refused, in a second and for each Pod that was ever seen: about one.
const REFUSED_PER_SECOND: f64 = 1.2;
/// Seconds by which a planned start may lie behind: it is looked at between two passes.
const LATE_SECONDS: i64 = 5;

/// What was seen so far.
pub(super) struct Invariants {
    began: Instant,
    /// Refused bindings, as the API server counts them, at the start.
    refused: f64,
    /// The most that each node ever offered, in billionths.
    offered: BTreeMap<(String, String), i128>,
    /// What is wrong.
    wrong: Vec<String>,
}

impl Invariants {
    /// Before anything is done.
    pub(super) async fn start(client: &Client) -> Result<Self> {
        let refused = refused(client).await?;
        Ok(Self { began: Instant::now(), refused, offered: BTreeMap::new(), wrong: Vec::new() })
    }

    /// Looks at the cluster as it is now.
    pub(super) async fn look(&mut self, client: &Client, inspector: &Inspector) -> Result<()> {
        let everywhere = ListParams::default();
        let nodes = Api::<Node>::all(client.clone()).list(&everywhere).await?.items;
        let pods = Api::<Pod>::all(client.clone()).list(&everywhere).await?.items;
        self.nodes_hold(&nodes, &pods);
        for pod in &pods {
            self.pod(pod);
        }
        let jobs = inspector.client()?.list::<FluxionJob>(&Selection::default()).await;
        for job in jobs.map(|list| list.items).unwrap_or_default() {
            self.plan(&job)?;
        }
        Ok(())
    }

    /// The Pods that we bound fit the node as it was at its largest.
    fn nodes_hold(&mut self, nodes: &[Node], pods: &[Pod]) {
        for node in nodes {
            let status = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
            for (resource, amount) in status.into_iter().flatten() {
                let seen = self.offered.entry((node.name_any(), resource.clone())).or_default();
                *seen = (*seen).max(nanos(&amount.0).unwrap_or(0));
            }
        }
        let mut used: BTreeMap<(String, String), i128> = BTreeMap::new();
        for pod in pods.iter().filter(|pod| is_ours(pod) && !ended(pod)) {
            let Some(node) = node_of(pod) else { continue };
            for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
                let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
                for (resource, amount) in requests.into_iter().flatten() {
                    *used.entry((node.to_owned(), resource.clone())).or_default() +=
                        nanos(&amount.0).unwrap_or(0);
                }
            }
        }
        for (key, amount) in used {
            let offered = self.offered.get(&key).copied().unwrap_or(0);
            if amount > offered && nodes.iter().any(|node| node.name_any() == key.0) {
                self.wrong.push(format!("Pods of ours on {} ask for more {} than it ever had", key.0, key.1));
            }
        }
    }

    fn pod(&mut self, pod: &Pod) {
        let name = pod.name_any();
        if !is_ours(pod) && pod.annotations().keys().any(|key| key.starts_with(RECORD)) {
            self.wrong.push(format!("{name} is of another scheduler and was bound by us"));
        }
        let gated = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref());
        if gated.is_none_or(Vec::is_empty) || node_of(pod).is_some() {
            return;
        }
        let conditions =
            pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let of =
            conditions.iter().find(|one| one.type_ == "PodScheduled").and_then(|one| one.reason.as_deref());
        if let Some(other) = of.filter(|reason| *reason != "SchedulingGated") {
            self.wrong.push(format!("{name} is gated and its condition says {other}"));
        }
    }

    fn plan(&mut self, job: &FluxionJob) -> Result<()> {
        let Some(planned) = job.status.planned_start.as_deref().filter(|_| job.status.started_at.is_none())
        else {
            return Ok(());
        };
        let planned: Timestamp = planned.parse().with_context(|| format!("'{planned}' is no time"))?;
        let late = Timestamp::now().as_second() - planned.as_second();
        if late > LATE_SECONDS {
            self.wrong.push(format!("{} is planned to start {late} s ago", job.metadata.name));
        }
        Ok(())
    }

    /// After the last step: what was seen on the way, and a panic, an Event told again and again, bindings tried
    /// again and again, books that the audit finds wrong.
    pub(super) async fn held(&self, client: &Client, inspector: &mut Inspector) -> Result<()> {
        if let Some(wrong) = self.wrong.first() {
            bail!("{wrong}");
        }
        inspector.healthy()?;
        let findings = inspector.client()?.audit().await?.findings;
        if !findings.is_empty() {
            bail!("the audit finds {findings:?}");
        }
        for event in Api::<Event>::all(client.clone()).list(&ListParams::default()).await? {
            let ours = event.reporting_component.as_deref().is_some_and(|who| who.contains("fluxion"));
            let count = event.series.as_ref().and_then(|series| series.count).or(event.count).unwrap_or(1);
            if ours && count > TOLD_MAX {
                bail!("told {count} times: {:?}", event.message);
            }
        }
        let (tries, seconds) = (refused(client).await? - self.refused, self.began.elapsed().as_secs_f64());
        if tries > REFUSED_PER_SECOND * seconds.max(10.0) {
            bail!("{tries} bindings were refused in {seconds:.0} s");
        }
        Ok(())
    }
}

/// Where a Pod that we bound has its allocation.
const RECORD: &str = "fluxion.flux-framework.org/allocation";

fn is_ours(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref()) == Some("fluxion")
}

/// Bindings that the API server has refused so far.
async fn refused(client: &Client) -> Result<f64> {
    let request = Request::get("/metrics").body(Vec::new()).context("a request for /metrics")?;
    Ok(refusals(&client.request_text(request).await.context("asking for the API server's metrics")?))
}

/// The sum of the counters of bindings that did not answer with success.
fn refusals(metrics: &str) -> f64 {
    metrics
        .lines()
        .filter(|line| {
            line.starts_with("apiserver_request_total{") && line.contains(r#"subresource="binding""#)
        })
        .filter(|line| !line.contains(r#"code="2"#))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_those_of_bindings() {
        let text = "\
apiserver_request_total{code=\"201\",resource=\"pods\",subresource=\"binding\",verb=\"POST\"} 7\n\
apiserver_request_total{code=\"422\",resource=\"pods\",subresource=\"binding\",verb=\"POST\"} 3\n\
apiserver_request_total{code=\"403\",resource=\"pods\",subresource=\"binding\",verb=\"POST\"} 2\n\
apiserver_request_total{code=\"404\",resource=\"pods\",subresource=\"\",verb=\"GET\"} 9\n";
        assert!((refusals(text) - 5.0).abs() < f64::EPSILON);
    }
}
