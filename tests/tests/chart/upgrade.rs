//! `helm upgrade` from an earlier version of the chart under load: its two inspectors are replaced one by one, as a
//! Deployment replaces Pods, and nothing is lost or done twice.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use fluxion_api::Role;
use fluxion_tests::apply::Applier;
use fluxion_tests::balancer::Balancer;
use fluxion_tests::deployed::{Deployed, lead_service_here};
use fluxion_tests::helm::{Helm, NAMESPACE, RELEASE, chart, path};
use fluxion_tests::inspector::Inspector;
use fluxion_tests::nodes::{self, NodeSpec};
use fluxion_tests::registration::SecurePort;
use fluxion_tests::trial::{Load, Prober, Witness};
use fluxion_tests::{Cluster, Options, wait};
use serde_json::{Value, json};

/// What only the earlier version has.
const LEGACY: &str = "
apiVersion: v1
kind: ConfigMap
metadata:
  name: fluxion-inspector-legacy
  namespace: {{ .Release.Namespace }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: fluxion-inspector-legacy
rules: []
";
const NODES: usize = 8;
const BIND_DEADLINE: Duration = Duration::from_secs(45);
const PATIENCE: Duration = Duration::from_mins(3);
/// Longest time without an answer: a takeover, on a busy machine.
const GAP: Duration = Duration::from_secs(15);

/// The text of values without one of its sections.
fn without_section(values: &str, section: &str) -> Result<String> {
    let start = values.find(&format!("\n{section}:\n")).with_context(|| format!("no section {section}"))?;
    let rest = &values[start + 1..];
    let end = rest.find("\n\n").map_or(rest.len(), |end| end + 1);
    Ok([&values[..=start], &rest[end..]].concat())
}

/// The chart with the differences that an earlier version may have: another image, fewer permissions, an object that is
/// no longer there, and two that are not yet there, without their values.
fn earlier_version(dir: &Path) -> Result<PathBuf> {
    let status = std::process::Command::new("cp").arg("-R").arg(chart()).arg(dir).status()?;
    ensure!(status.success());
    let earlier = dir.join("fluxion");
    let edit = |file: &str, change: &dyn Fn(&str) -> Result<String>| {
        let file = earlier.join(file);
        let text = std::fs::read_to_string(&file)?;
        let changed = change(&text)?;
        ensure!(changed != text, "{} is not changed", file.display());
        anyhow::Ok(std::fs::write(&file, changed)?)
    };
    edit("Chart.yaml", &|text| Ok(text.replace("ersion: 0.1.0", "ersion: 0.0.1")))?;
    edit("templates/rbac.yaml", &|text| Ok(text.replace("[create, get, patch, update]", "[get, update]")))?;
    edit("values.yaml", &|text| {
        without_section(&without_section(text, "podDisruptionBudget")?, "networkPolicy")
    })?;
    for file in ["pdb.yaml", "networkpolicy.yaml"] {
        std::fs::remove_file(earlier.join("templates").join(file))?;
    }
    std::fs::write(earlier.join("templates/NOTES.txt"), "Installed.\n")?;
    std::fs::write(earlier.join("templates/legacy.yaml"), LEGACY)?;
    Ok(earlier)
}

/// Names of the objects of these kinds and names that are there.
async fn there(cluster: &Cluster, objects: &[&str]) -> Result<String> {
    let get = ["--namespace", NAMESPACE, "get", "--ignore-not-found", "-o", "name"];
    cluster.kubectl(&[&get[..], objects].concat()).await
}

/// The place of the one that leads.
async fn leader(inspectors: &[Inspector]) -> Result<Option<usize>> {
    for (index, inspector) in inspectors.iter().enumerate() {
        if inspector.standing().await?.role == Role::Leader {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// An installed earlier version, whose two inspectors run beside it, as `kube-proxy` would make them reachable.
struct Release {
    cluster: Cluster,
    helm: Helm,
    ports: Vec<SecurePort>,
    service: Balancer,
    inspectors: Vec<Inspector>,
}

impl Release {
    async fn install(earlier: &Path) -> Result<Self> {
        let cluster = Cluster::start(Options::default().with_scheduler()).await?;
        let client = cluster.client().await?;
        // The Deployment's Pods have a node of their own, on which no Pod of a gang fits: two schedulers may give the same
        // cores away.
        let mut specs: Vec<NodeSpec> = (0..NODES).map(|index| NodeSpec::new(format!("n{index}"))).collect();
        specs.push(NodeSpec::new("system").with("cpu", "400m").label("role", "system"));
        nodes::create(&client, &specs).await?;
        let helm = Helm::of(cluster.kubeconfig()).await?;
        let ports: Vec<SecurePort> = (0..4).map(|_| SecurePort::reserve()).collect::<Result<_>>()?;
        let service = Balancer::start(ports.iter().map(SecurePort::address).collect()).await?;
        let port = format!("service.port={}", service.port());
        let mut install = vec!["install", RELEASE, path(earlier)?, "--create-namespace", "--wait"];
        install.extend(["--timeout", "90s", "--set", &port, "--set", "nodeSelector.role=system"]);
        install.extend(["--set", "resources.requests.cpu=100m", "--set", "config.bindDeadline=45s"]);
        helm.ask(&install).await?;
        lead_service_here(&cluster).await?;
        let deployed = Deployed::read(&cluster).await?;
        let mut inspectors = Vec::new();
        for (index, port) in ports.iter().take(2).enumerate() {
            inspectors.push(deployed.start(&cluster, &format!("earlier-{index}"), port.address()).await?);
        }
        ports[0].becomes_available(&client, true).await?;
        Ok(Self { cluster, helm, ports, service, inspectors })
    }

    /// As a Deployment does that may have no Pod less than it should: another one becomes ready, then one of the old ones is
    /// stopped; the leader first. How long each took to stop.
    async fn replace(&mut self) -> Result<Vec<Duration>> {
        let deployed = Deployed::read(&self.cluster).await?;
        let (mut new, mut took) = (Vec::new(), Vec::new());
        for (index, port) in self.ports.iter().skip(2).enumerate() {
            new.push(deployed.start(&self.cluster, &format!("later-{index}"), port.address()).await?);
            let mut old = self.inspectors.remove(leader(&self.inspectors).await?.unwrap_or(0));
            let began = Instant::now();
            old.stop_within(Duration::from_secs(30)).await?;
            took.push(began.elapsed());
            ensure!(!old.log()?.contains("panicked at"));
        }
        self.inspectors = new;
        Ok(took)
    }

    /// What the upgrade has changed, and what not.
    async fn is_upgraded(&self) -> Result<()> {
        let legacy = ["configmap/fluxion-inspector-legacy", "clusterrole/fluxion-inspector-legacy"];
        ensure!(there(&self.cluster, &legacy).await?.is_empty());
        let new = there(&self.cluster, &["pdb/fluxion-inspector", "networkpolicy/fluxion-inspector"]).await?;
        ensure!(new.lines().count() == 2, "{new}");
        let output = ["--namespace", NAMESPACE, "get", "role,deployment,configmap", "fluxion-inspector"];
        let role = self.cluster.kubectl(&[&output[..], &["-o", "json"]].concat()).await?;
        let objects: Value = serde_json::from_str(&role)?;
        let text = objects.to_string();
        for part in ["\"patch\"", "inspector:0.1.0", "bindDeadline: 45s", "\"role\":\"system\""] {
            ensure!(text.contains(part), "no {part} in {text}");
        }
        let values = self.helm.ask(&["get", "values", RELEASE, "-o", "json"]).await?;
        let values: Value = serde_json::from_str(&values)?;
        let expected = json!({
            "config": { "bindDeadline": "45s" },
            "nodeSelector": { "role": "system" },
            "resources": { "requests": { "cpu": "100m" } },
            "service": { "port": self.service.port() },
        });
        ensure!(values == expected, "{values}");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_under_load_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut release = Release::install(&earlier_version(dir.path()).unwrap()).await.unwrap();
    let client = release.cluster.client().await.unwrap();
    let witness = Witness::start(client.clone(), 4000);
    let prober = Prober::start(client.clone());
    let mut load = Load::start(Applier::new(client.clone()), Duration::from_millis(900));
    witness.works(3, PATIENCE).await.unwrap();
    let authority = SecurePort::authority(&client).await.unwrap();

    prober.since_now();
    let began = Instant::now();
    let chart = chart();
    let upgrade = ["upgrade", RELEASE, path(&chart).unwrap(), "--reset-then-reuse-values", "--wait"];
    release.helm.ask(&[&upgrade[..], &["--timeout", "90s"]].concat()).await.unwrap();
    release.is_upgraded().await.unwrap();
    let upgraded = began.elapsed();
    witness.works(1, PATIENCE).await.unwrap();
    let took = release.replace().await.unwrap();
    let gap = prober.probed().longest_gap;
    witness.works(3, PATIENCE).await.unwrap();
    assert_eq!(SecurePort::authority(&client).await.unwrap(), authority);

    load.finish().await;
    assert_eq!(load.failed(), 0);
    wait::until("every gang has been bound", PATIENCE, || async {
        let gangs = (0..load.created()).map(|number| format!("load-{number}"));
        let missing: Vec<String> = gangs.filter(|gang| witness.bound_of(gang) != Load::SIZE).collect();
        ensure!(missing.is_empty(), "{missing:?}");
        Ok(())
    })
    .await
    .unwrap();
    let (seen, probed) = (witness.seen(), prober.probed());
    println!(
        "{} gangs, {} Pods bound, longest in part {:.1?}; helm upgrade {upgraded:.1?}, stopped within {took:.1?}; {} answers, \
         {} failures ({}), longest without an answer {gap:.1?}",
        load.created(),
        seen.bound,
        seen.longest_partial,
        probed.answers,
        probed.failures,
        probed.last_failure
    );
    assert_eq!((seen.wrong, probed.wrong), (Vec::<String>::new(), Vec::<String>::new()));
    assert!(seen.longest_partial < BIND_DEADLINE && gap < GAP);
    let leading = leader(&release.inspectors).await.unwrap().expect("one of the new ones leads");
    wait::until("the audit is clean", Duration::from_secs(30), || async {
        let findings = release.inspectors[leading].client()?.audit().await?.findings;
        if findings.is_empty() { Ok(()) } else { bail!("{findings:?}") }
    })
    .await
    .unwrap();
    for inspector in &mut release.inspectors {
        inspector.healthy().unwrap();
    }
}
