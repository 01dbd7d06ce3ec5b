//! The history of jobs in a `PostgreSQL` database that the inspectors of an installed release share, over TLS.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Result, ensure};
use fluxion_api::Role;
use fluxion_tests::apply::Applier;
use fluxion_tests::balancer::Balancer;
use fluxion_tests::deployed::{Deployed, lead_service_here};
use fluxion_tests::helm::{Helm, NAMESPACE, RELEASE, chart, path};
use fluxion_tests::inspector::Inspector;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::{self, NodeSpec};
use fluxion_tests::plugin::ran;
use fluxion_tests::postgres::PostgresServer;
use fluxion_tests::programs::{self, Program};
use fluxion_tests::registration::SecurePort;
use fluxion_tests::{Cluster, Options, wait};
use serde_json::json;
use tokio::process::Command;

const SECRET: &str = "fluxion-journal";
/// How long it takes until a database is tried again, or another inspector leads.
const LATER: Duration = Duration::from_mins(2);

/// A certificate authority that has issued nothing.
fn another_authority() -> Result<String> {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    Ok(params.self_signed(&rcgen::KeyPair::generate()?)?.pem())
}

/// Two inspectors of a release with a database, behind one Service.
struct Release {
    cluster: Cluster,
    applier: Applier,
    deployed: Deployed,
    all: [Inspector; 2],
    _ports: [SecurePort; 2],
    _service: Balancer,
}

impl Release {
    /// Installs it with a database whose certificate is that of kube-apiserver, and trusts `authority` for it.
    async fn install(cluster: Cluster, url: &str, authority: &str) -> Result<Self> {
        let client = cluster.client().await?;
        nodes::create(&client, &[NodeSpec::new("n1"), NodeSpec::new("n2")]).await?;
        let applier = Applier::new(client.clone());
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": SECRET, "namespace": NAMESPACE },
            "stringData": { "url": url, "ca.crt": authority },
        });
        for object in [namespace, secret] {
            applier.create(object).await?;
        }
        let ports = [SecurePort::reserve()?, SecurePort::reserve()?];
        let service = Balancer::start(ports.iter().map(SecurePort::address).collect()).await?;
        let chart = chart();
        let port = format!("service.port={}", service.port());
        let names = format!("journal.existingSecret.name={SECRET},journal.caSecret.name={SECRET}");
        let install = ["install", RELEASE, path(&chart)?, "--set", &port, "--set", &names];
        Helm::of(cluster.kubeconfig()).await?.ask(&install).await?;
        lead_service_here(&cluster).await?;
        let deployed = Deployed::read(&cluster).await?;
        let first = deployed.start(&cluster, "inspector-0", ports[0].address()).await?;
        let second = deployed.start(&cluster, "inspector-1", ports[1].address()).await?;
        ports[0].becomes_available(&client, true).await?;
        let all = [first, second];
        Ok(Self { cluster, applier, deployed, all, _ports: ports, _service: service })
    }

    /// What `kubectl fluxion` says through kube-apiserver.
    async fn fluxion(&self, arguments: &[&str]) -> Result<String> {
        let mut plugin = Command::new(programs::path(Program::Plugin)?);
        plugin.args(arguments).env("KUBECONFIG", self.cluster.kubeconfig()).env("HOME", self.cluster.dir());
        plugin.env_remove("XDG_STATE_HOME").env_remove("FLUXION_SERVER").stdin(Stdio::null());
        let ran = ran(&mut plugin).await?;
        ensure!(ran.code == Some(0), "{ran:?}");
        Ok(ran.stdout)
    }

    /// Waits until `kubectl fluxion` says this, or does not.
    async fn says(&self, arguments: &[&str], part: &str, it: bool) -> Result<String> {
        wait::until(&format!("{arguments:?} says {part}: {it}"), LATER, || async {
            let said = self.fluxion(arguments).await?;
            ensure!(said.contains(part) == it, "{said}");
            Ok(said)
        })
        .await
    }

    /// Runs a gang until it has ended, and deletes it: from then on, the API server knows nothing of it.
    async fn run(&self, name: &str) -> Result<()> {
        let job = PodManifest::new("t").request("cpu", "100m").runs_for(1).gang_job(name, 3);
        self.applier.create(job).await?;
        self.says(&["explain", &format!("job/{name}")], "State: Completed", true).await?;
        self.cluster.kubectl(&["delete", "job", name, "--wait", "--cascade=foreground"]).await?;
        Ok(())
    }

    /// Waits until this one leads and the other one does not.
    async fn leads(&self, index: usize) -> Result<()> {
        wait::until(&format!("inspector {index} leads"), LATER, || async {
            let role = self.all[index].standing().await?.role;
            ensure!(role == Role::Leader, "{role:?}");
            Ok(())
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_each_leader_recorded_is_known_to_the_next_ones() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let pki = |file: &str| std::fs::read_to_string(cluster.dir().join("pki").join(file)).unwrap();
    let (certificate, key, right) = (pki("apiserver.crt"), pki("apiserver.key"), pki("ca.crt"));
    let server = PostgresServer::start_with_tls(&certificate, &key).unwrap();
    let url = format!("{}?sslmode=verify-full", server.url());
    let mut release = Release::install(cluster, &url, &another_authority().unwrap()).await.unwrap();

    // Scheduling goes on without the history.
    release.leads(0).await.unwrap();
    release.run("first").await.unwrap();
    let status = release.says(&["status"], "history is not recorded since", true).await.unwrap();
    assert!(status.contains("it is not signed by a trusted certificate authority"), "{status}");
    assert!(!status.contains("s3cret"), "{status}");

    // The authority is corrected, in the volume of running Pods. What happened before is recorded too.
    let patch = json!({ "stringData": { "ca.crt": right } }).to_string();
    let command = ["--namespace", NAMESPACE, "patch", "secret", SECRET, "--type=merge", "--patch", &patch];
    release.cluster.kubectl(&command).await.unwrap();
    release.deployed.update_volumes().await.unwrap();
    release.says(&["status"], "history is not recorded", false).await.unwrap();

    // Each inspector that is killed comes back without what it has seen, as a Pod does whose volume is deleted.
    release.all[0].kill();
    release.leads(1).await.unwrap();
    release.run("second").await.unwrap();
    release.all[0].restart_without_state(&release.cluster).await.unwrap();
    for job in ["job/first", "job/second"] {
        release.all[0].job("default", job).await.unwrap();
    }
    release.all[1].kill();
    release.leads(0).await.unwrap();
    for job in ["job/first", "job/second"] {
        let told = release.says(&["explain", job], "State: Completed", true).await.unwrap();
        let (_, history) = told.split_once("History:").unwrap();
        for state in ["Pending", "Binding", "Running", "Completed"] {
            assert!(history.contains(state), "{told}");
        }
    }
    let raw = "/apis/fluxion.flux-framework.org/v1alpha1/namespaces/default/fluxionjobs/job.first";
    let raw = release.cluster.kubectl(&["get", "--raw", raw]).await.unwrap();
    assert!(raw.contains("\"Completed\""), "{raw}");
    release.all[0].healthy().unwrap();
}
