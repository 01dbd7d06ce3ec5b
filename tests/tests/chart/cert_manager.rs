//! The serving certificate from cert-manager: its own controllers, beside a real API server.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use fluxion_tests::apply::Applier;
use fluxion_tests::balancer::Balancer;
use fluxion_tests::deployed::{Deployed, lead_service_here};
use fluxion_tests::helm::{Helm, NAMESPACE, RELEASE, chart, path};
use fluxion_tests::nodes::{self, NodeSpec};
use fluxion_tests::registration::SecurePort;
use fluxion_tests::tools::{self, Tool};
use fluxion_tests::{Cluster, Options, wait};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::DeleteParams;
use kube::{Api, Client};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

const SECRET: &str = "fluxion-inspector-tls";
const MODULE: &str = "github.com/cert-manager/cert-manager";
const KINDS: [&str; 4] = ["certificaterequests", "certificates", "clusterissuers", "issuers"];
const SOON: Duration = Duration::from_mins(1);

/// A file of the Secret that cert-manager writes.
async fn issued(client: &Client, file: &str) -> Result<Vec<u8>> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let mut data = secrets.get(SECRET).await?.data.unwrap_or_default();
    let pem = data.remove(file).with_context(|| format!("no {file}"))?.0;
    ensure!(!pem.is_empty(), "{file} is empty");
    Ok(pem)
}

/// The certificate that the server shows, as DER.
async fn shown(port: &SecurePort) -> Result<Vec<u8>> {
    let http = reqwest::Client::builder().tls_info(true).tls_danger_accept_invalid_certs(true).no_proxy();
    let answer = http.build()?.get(format!("{}/livez", port.url())).send().await?;
    let shown = answer.extensions().get::<reqwest::tls::TlsInfo>().and_then(|tls| tls.peer_certificate());
    Ok(shown.context("no certificate")?.to_vec())
}

/// Waits until the server shows what cert-manager has issued.
async fn shows_what_was_issued(client: &Client, port: &SecurePort) -> Result<Vec<u8>> {
    let wanted = CertificateDer::from_pem_slice(&issued(client, "tls.crt").await?)?.to_vec();
    wait::until("the certificate is shown", SOON, || async {
        ensure!(shown(port).await? == wanted);
        Ok(())
    })
    .await?;
    Ok(wanted)
}

/// The real kinds, and the controllers.
async fn install_cert_manager(
    cluster: &Cluster,
    applier: &Applier,
) -> Result<fluxion_tests::cluster::Process> {
    let program = tokio::task::spawn_blocking(|| tools::ensure(Tool::CertManager)).await??;
    for kind in KINDS {
        let file = format!("deploy/crds/cert-manager.io_{kind}.yaml");
        let crd = tokio::task::spawn_blocking(move || tools::module_file(Tool::CertManager, MODULE, &file));
        applier.apply_yaml(&crd.await??).await?;
    }
    cluster.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]).await?;
    let mut command = Command::new(program);
    command.arg("--kubeconfig").arg(cluster.kubeconfig());
    cluster.run("cert-manager", command)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_issued_trusted_and_rotated() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = cluster.client().await.unwrap();
    nodes::create(&client, &[NodeSpec::new("n1")]).await.unwrap();
    let applier = Applier::new(client.clone());
    let mut cert_manager = install_cert_manager(&cluster, &applier).await.unwrap();

    let port = SecurePort::reserve().unwrap();
    let service = Balancer::start(vec![port.address()]).await.unwrap();
    let (chart, number) = (chart(), format!("service.port={}", service.port()));
    let install = ["install", RELEASE, path(&chart).unwrap(), "--create-namespace", "--set", &number];
    let helm = Helm::of(cluster.kubeconfig()).await.unwrap();
    helm.ask(&[&install[..], &["--set", "tls.certManager.enabled=true"]].concat()).await.unwrap();
    lead_service_here(&cluster).await.unwrap();
    let ready = ["wait", "--for=condition=Ready", "certificate", "--all", "--timeout=60s"];
    cluster.kubectl(&[&["--namespace", NAMESPACE], &ready[..]].concat()).await.unwrap();

    let deployed = Deployed::read(&cluster).await.unwrap();
    let mut inspector = deployed.start(&cluster, "inspector", port.address()).await.unwrap();
    port.becomes_available(&client, true).await.unwrap();
    let first = shows_what_was_issued(&client, &port).await.unwrap();
    let services: Api<APIService> = Api::all(client.clone());
    let trusted = services.get("v1alpha1.fluxion.flux-framework.org").await.unwrap().spec.unwrap().ca_bundle;
    assert_eq!(trusted.unwrap().0, issued(&client, "ca.crt").await.unwrap());
    let nodes = cluster.kubectl(&["get", "fluxionnodes", "-o", "name"]).await.unwrap();
    assert!(nodes.contains("n1"), "{nodes}");

    // Another one is issued, and kubelet updates the volume.
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    secrets.delete(SECRET, &DeleteParams::default()).await.unwrap();
    wait::until("it is issued again", SOON, || issued(&client, "tls.crt")).await.unwrap();
    deployed.update_volumes().await.unwrap();
    let second = shows_what_was_issued(&client, &port).await.unwrap();
    assert_ne!(first, second);
    port.becomes_available(&client, true).await.unwrap();
    cluster.kubectl(&["get", "fluxionnodes"]).await.unwrap();
    cert_manager.check().unwrap();
    inspector.healthy().unwrap();
}
