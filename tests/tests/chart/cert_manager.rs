//! Certificates from cert-manager: its own controllers, beside a real API server.

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
use fluxion_tests::{Cluster, Options, admission, wait};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::DeleteParams;
use kube::{Api, Client};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

const SECRET: &str = "fluxion-inspector-tls";
const MODULE: &str = "github.com/cert-manager/cert-manager";
/// The authority that issues it.
const AUTHORITY: &str = "fluxion-inspector-ca";
const KINDS: [&str; 4] = ["certificaterequests", "certificates", "clusterissuers", "issuers"];
const SOON: Duration = Duration::from_mins(1);

/// A file of the Secret that cert-manager writes.
async fn issued(client: &Client, file: &str) -> Result<Vec<u8>> {
    file_of(client, SECRET, file).await
}

async fn file_of(client: &Client, secret: &str, file: &str) -> Result<Vec<u8>> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let mut data = secrets.get(secret).await?.data.unwrap_or_default();
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
    cluster.serves_all_kinds().await?;
    let mut command = Command::new(program);
    command.arg("--kubeconfig").arg(cluster.kubeconfig());
    cluster.run("cert-manager", command)
}

/// The chart, with a Service at this port, and the certificates.
async fn install(cluster: &Cluster, port: u16, values: &[&str]) -> Result<()> {
    let (chart, port) = (chart(), format!("service.port={port}"));
    let mut install = vec!["install", RELEASE, path(&chart)?, "--create-namespace"];
    for value in [&["tls.certManager.enabled=true", &port], values].concat() {
        install.extend(["--set", value]);
    }
    Helm::of(cluster.kubeconfig()).await?.ask(&install).await?;
    lead_service_here(cluster).await?;
    let ready = ["wait", "--for=condition=Ready", "certificate", "--all", "--timeout=60s"];
    cluster.kubectl(&[&["--namespace", NAMESPACE], &ready[..]].concat()).await.map(drop)
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
    install(&cluster, service.port(), &[]).await.unwrap();

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

/// Both inspectors answer requests to the API and to the webhook.
async fn both_answer(cluster: &Cluster) -> Result<()> {
    wait::until("both answer", SOON, || async {
        for _ in 0..4 {
            let nodes = cluster.kubectl(&["get", "fluxionnodes", "-o", "name"]).await?;
            ensure!(nodes.contains("n1"), "{nodes}");
            let scheduler = admission::probe(cluster, "default").await?;
            ensure!(scheduler == "fluxion ", "'{scheduler}'");
        }
        Ok(())
    })
    .await
}

/// What kube-apiserver trusts of the API, and of each webhook.
async fn trusted(client: &Client) -> Result<Vec<Vec<u8>>> {
    let services: Api<APIService> = Api::all(client.clone());
    let service = services.get("v1alpha1.fluxion.flux-framework.org").await?;
    let webhooks: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let webhooks = webhooks.get("fluxion-inspector").await?.webhooks.unwrap_or_default();
    let of_webhooks = webhooks.into_iter().map(|webhook| webhook.client_config.ca_bundle);
    let all = std::iter::once(service.spec.and_then(|spec| spec.ca_bundle)).chain(of_webhooks);
    Ok(all.map(|bundle| bundle.unwrap_or_default().0).collect())
}

fn contains(bundle: &[u8], authority: &[u8]) -> bool {
    bundle.windows(authority.len()).any(|part| part == authority)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_inspectors_and_the_webhook_change_to_another_authority() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = cluster.client().await.unwrap();
    nodes::create(&client, &[NodeSpec::new("n1")]).await.unwrap();
    let applier = Applier::new(client.clone());
    let mut cert_manager = install_cert_manager(&cluster, &applier).await.unwrap();
    let ports = [SecurePort::reserve().unwrap(), SecurePort::reserve().unwrap()];
    let service = Balancer::start(ports.iter().map(SecurePort::address).collect()).await.unwrap();
    let webhook = ["admission.enabled=true", "admission.via=webhook"];
    install(&cluster, service.port(), &webhook).await.unwrap();
    let deployed = Deployed::read(&cluster).await.unwrap();
    let mut inspectors = Vec::new();
    for (name, port) in ["replica-0", "replica-1"].iter().zip(&ports) {
        inspectors.push(deployed.start(&cluster, name, port.address()).await.unwrap());
    }
    ports[0].becomes_available(&client, true).await.unwrap();
    admission::label(&cluster, "default", "bind").await.unwrap();
    both_answer(&cluster).await.unwrap();
    let first = issued(&client, "ca.crt").await.unwrap();
    // The injector keeps earlier authorities, so that what they have issued is still trusted.
    let trusts = async |authority: &[u8]| {
        wait::until("kube-apiserver trusts the authority", SOON, || async {
            let trusted = trusted(&client).await?;
            let without = trusted.iter().filter(|bundle| !contains(bundle, authority)).count();
            ensure!(trusted.len() > 1 && without == 0, "{without} of {} don't have it", trusted.len());
            Ok(())
        })
        .await
        .unwrap();
    };
    trusts(&first).await;

    // Another authority; what the first one has issued is still trusted.
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    secrets.delete(AUTHORITY, &DeleteParams::default()).await.unwrap();
    let second = wait::until("there is another authority", SOON, || async {
        let authority = file_of(&client, AUTHORITY, "tls.crt").await?;
        ensure!(authority != first, "the first one");
        Ok(authority)
    })
    .await
    .unwrap();
    both_answer(&cluster).await.unwrap();

    // It issues the next certificate, which is shown once kubelet has updated the volumes.
    secrets.delete(SECRET, &DeleteParams::default()).await.unwrap();
    wait::until("it is issued again", SOON, || async {
        issued(&client, "tls.crt").await?;
        ensure!(issued(&client, "ca.crt").await? == second, "by the first authority");
        Ok(())
    })
    .await
    .unwrap();
    trusts(&second).await;
    both_answer(&cluster).await.unwrap();
    deployed.update_volumes().await.unwrap();
    for port in &ports {
        shows_what_was_issued(&client, port).await.unwrap();
    }
    both_answer(&cluster).await.unwrap();
    cert_manager.check().unwrap();
    for inspector in &mut inspectors {
        inspector.healthy().unwrap();
    }
}
