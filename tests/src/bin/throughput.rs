//! How many Pods a second get bound: gangs by the inspector, single Pods by kube-scheduler, on one control plane.
//!
//! All Pods are there before the scheduler starts; the rate is taken from its first binding to its last, as the
//! API server tells a watch. Binding and Event are in it for both, for the inspector its conditions too.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use fluxion_tests::inspector::{Inspector, Settings};
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::{self, NodeSpec};
use fluxion_tests::tools::Tool;
use fluxion_tests::{Cluster, Options};
use futures::{StreamExt as _, TryStreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};

/// Compares how many Pods a second the inspector and kube-scheduler bind (both without a limit on requests).
#[derive(Parser)]
struct Arguments {
    /// Nodes of 64 CPUs.
    #[arg(long, default_value_t = 200)]
    nodes: usize,
    /// Pods of 1 CPU.
    #[arg(long, default_value_t = 2000)]
    pods: usize,
    /// Members of each gang.
    #[arg(long, default_value_t = 8)]
    gang: usize,
    /// How often each is measured, in turns.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let cluster = Cluster::start(Options::default()).await?;
    let client = cluster.client().await?;
    let specs: Vec<NodeSpec> = (0..arguments.nodes)
        .map(|index| NodeSpec::new(format!("node-{index}")).with("cpu", "64").with("pods", "110"))
        .collect();
    nodes::create(&client, &specs).await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 1..=arguments.rounds {
        ours.push(inspector(&cluster, &client, &arguments).await.context("the inspector's turn")?);
        theirs.push(kube_scheduler(&cluster, &client, &arguments).await.context("kube-scheduler's turn")?);
        println!(
            "round {round}: inspector {:.0} Pods/s in gangs of {}, kube-scheduler {:.0} single Pods/s",
            ours[round - 1],
            arguments.gang,
            theirs[round - 1]
        );
    }
    let (ours, theirs) = (median(&mut ours), median(&mut theirs));
    println!(
        "{} Pods on {} nodes, median of {}: inspector {ours:.0}/s, kube-scheduler {theirs:.0}/s, ratio {:.2}",
        arguments.pods,
        arguments.nodes,
        arguments.rounds,
        ours / theirs
    );
    Ok(())
}

async fn inspector(cluster: &Cluster, client: &Client, arguments: &Arguments) -> Result<f64> {
    create(client, arguments, |index| {
        let gang = format!("gang-{}", index / arguments.gang);
        let size = arguments.gang.min(arguments.pods - index / arguments.gang * arguments.gang);
        PodManifest::new(&format!("ours-{index}")).group(&gang, size)
    })
    .await?;
    let bound = tokio::spawn(rate(client.clone(), arguments.pods));
    let mut inspector = Inspector::start(cluster, "throughput", &Settings::default()).await?;
    let rate = bound.await??;
    inspector.stop().await?;
    remove(client).await?;
    Ok(rate)
}

async fn kube_scheduler(cluster: &Cluster, client: &Client, arguments: &Arguments) -> Result<f64> {
    create(client, arguments, |index| PodManifest::new(&format!("theirs-{index}")).foreign()).await?;
    let bound = tokio::spawn(rate(client.clone(), arguments.pods));
    let mut command = Command::new(cluster.tools().path(Tool::Scheduler));
    command.arg(format!("--kubeconfig={}", cluster.kubeconfig().display())).args([
        "--leader-elect=false",
        "--kube-api-qps=5000",
        "--kube-api-burst=5000",
        "--secure-port=0",
    ]);
    let mut scheduler = cluster.run("kube-scheduler", command)?;
    let rate = bound.await??;
    scheduler.kill();
    remove(client).await?;
    Ok(rate)
}

async fn create(client: &Client, arguments: &Arguments, pod: impl Fn(usize) -> PodManifest) -> Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let manifests = (0..arguments.pods).map(|index| pod(index).request("cpu", "1").build());
    futures::stream::iter(manifests)
        .map(|manifest| {
            let pods = pods.clone();
            async move {
                let pod: Pod = serde_json::from_value(manifest)?;
                pods.create(&PostParams::default(), &pod).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(32)
        .try_collect()
        .await
}

/// Pods bound a second, from the first to the last of `wanted`.
async fn rate(client: Client, wanted: usize) -> Result<f64> {
    let events = watcher(Api::<Pod>::default_namespaced(client), watcher::Config::default());
    pin_mut!(events);
    let mut seen = std::collections::BTreeSet::new();
    let mut first = None;
    let look = async {
        while let Some(event) = events.next().await {
            let (Event::Apply(pod) | Event::InitApply(pod)) = event? else { continue };
            let bound = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
            if bound && seen.insert(pod.metadata.uid.unwrap_or_default()) {
                let first = *first.get_or_insert_with(Instant::now);
                if seen.len() == wanted {
                    #[allow(clippy::cast_precision_loss, reason = "a few thousand Pods")]
                    return anyhow::Ok((wanted - 1) as f64 / first.elapsed().as_secs_f64());
                }
            }
        }
        bail!("the watch ended")
    };
    match tokio::time::timeout(Duration::from_mins(5), look).await {
        Ok(rate) => rate,
        Err(_) => bail!("only {} of {wanted} Pods were bound in 5 minutes", seen.len()),
    }
}

async fn remove(client: &Client) -> Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.delete_collection(&DeleteParams::default().grace_period(0), &ListParams::default()).await?;
    fluxion_tests::wait::until("all Pods are gone", Duration::from_mins(3), || async {
        match pods.list(&ListParams::default().limit(1)).await?.items.len() {
            0 => Ok(()),
            _ => bail!("some are left"),
        }
    })
    .await
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
}
