//! What the chart renders, and which values it takes.

use std::path::Path;

use fluxion_tests::apply::{Applier, documents};
use fluxion_tests::helm::{Helm, NAMESPACE, chart, path, plain_manifests_file};
use fluxion_tests::programs::{self, Program};
use fluxion_tests::{Cluster, Options};
use serde_json::{Value, json};

use super::EVERYTHING;

/// Sets of values, each with what it must change in the number of objects of some kind.
const MATRIX: [(&[&str], &str, usize); 21] = [
    (&[], "Deployment", 1),
    (&["leaderElection.leaseSeconds=30"], "ValidatingAdmissionPolicy", 1),
    (&["leaderElection.fence=false"], "ValidatingAdmissionPolicyBinding", 0),
    (&["admission.enabled=true"], "MutatingAdmissionPolicy", 16),
    (&["admission.enabled=true", "admission.modes={bind}"], "MutatingAdmissionPolicyBinding", 1),
    (&["admission.enabled=true", "admission.via=webhook"], "MutatingWebhookConfiguration", 1),
    (
        &[
            "admission.enabled=true",
            "admission.failurePolicy=Ignore",
            "admission.schedulerNames={default-scheduler,other}",
            "admission.excludeNamespaces={one,two}",
            "admission.namespaceSelector.matchLabels.team=hpc",
            "admission.namespaceSelector.matchExpressions[0].key=stage",
            "admission.namespaceSelector.matchExpressions[0].operator=Exists",
            "admission.objectSelector.matchLabels.batch=yes",
            "admission.objectSelector.matchExpressions[0].key=size",
            "admission.objectSelector.matchExpressions[0].operator=DoesNotExist",
        ],
        "ValidatingAdmissionPolicy",
        2,
    ),
    (&EVERYTHING, "PrometheusRule", 1),
    (&["tls.certManager.enabled=true"], "Certificate", 2),
    (&["tls.certManager.enabled=true", "tls.certManager.issuerRef.name=ours"], "Issuer", 0),
    (&["apiService.enabled=false"], "APIService", 0),
    (&["rbac.create=false", "serviceAccount.create=false", "serviceAccount.name=mine"], "ServiceAccount", 1),
    (&["rbac.userRoles=false"], "ClusterRole", 2),
    (&["podDisruptionBudget.enabled=false"], "PodDisruptionBudget", 0),
    (&["priorityClass.create=false", "priorityClass.name=system-cluster-critical"], "PriorityClass", 0),
    (&["flowSchema.enabled=false"], "FlowSchema", 0),
    (&["networkPolicy.enabled=false"], "NetworkPolicy", 0),
    (
        &[
            "networkPolicy.egressPorts={443,6443}",
            "networkPolicy.ingressFrom[0].ipBlock.cidr=10.0.0.0/8",
            "networkPolicy.ingressFrom[1].namespaceSelector.matchLabels.name=monitoring",
        ],
        "NetworkPolicy",
        1,
    ),
    (
        &[
            "journal.existingSecret.name=history",
            "journal.caSecret.name=history",
            "journal.caSecret.key=root.pem",
            "tracing.endpoint=http://collector.monitoring:4318",
            "networkPolicy.egressPorts={6443,5432,4318}",
        ],
        "Deployment",
        1,
    ),
    (
        &[
            "fullnameOverride=batch",
            "image.tag=1.2.3",
            "image.pullSecrets={one,two}",
            "extraArgs={--step-limit=30}",
            "extraEnv[0].name=A",
            "extraEnv[0].value=b",
            "commonLabels.team=hpc",
            "podLabels.a=b",
            "podAnnotations.a=b",
            "serviceAccount.annotations.a=b",
            "service.annotations.a=b",
            "schedulerName=other",
            "nodeSelector.disk=ssd",
            "tolerations[0].key=control",
            "tolerations[0].operator=Exists",
            "topologySpreadConstraints[0].maxSkew=1",
            "topologySpreadConstraints[0].topologyKey=rack",
            "topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule",
            "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1",
            "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].key=metadata.name",
            "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].operator=In",
            "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].values={a}",
        ],
        "Pod",
        1,
    ),
    (
        &[
            "replicas=1",
            "image.digest=sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "logFormat=text",
            "podDisruptionBudget.maxUnavailable=50%",
            "config.queues[0].name=default",
            "config.queues[0].policy=conservative",
            "config.limits.groupSizeMax=64",
        ],
        "Deployment",
        1,
    ),
];

const WEBHOOK: [&str; 2] = ["admission.enabled=true", "admission.via=webhook"];

/// `--set` before each value that has none.
fn flags<'a>(values: &[&'a str]) -> Vec<&'a str> {
    let bare = values.iter().filter(|value| **value != "--set");
    bare.flat_map(|value| ["--set", value]).collect()
}

#[tokio::test]
async fn lint_finds_nothing() {
    let helm = Helm::new().await.unwrap();
    helm.ask(&["lint", "--strict", path(&chart()).unwrap()]).await.unwrap();
}

/// With `UPDATE_MANIFESTS=1` the file is written anew.
#[tokio::test]
async fn plain_manifests_are_current() {
    let wanted = Helm::new().await.unwrap().plain_manifests().await.unwrap();
    let file = plain_manifests_file();
    if std::env::var_os("UPDATE_MANIFESTS").is_some() {
        std::fs::write(&file, &wanted).unwrap();
    }
    let is = std::fs::read_to_string(&file).unwrap();
    assert!(
        is == wanted,
        "{} is not what the chart renders; its first lines say how to update it",
        file.display()
    );
}

#[tokio::test]
async fn every_setting_of_the_configuration_file_is_a_value_and_arrives_as_it_is() {
    let helm = Helm::new().await.unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/config.yaml");
    let config: Value = serde_saphyr::from_str(&std::fs::read_to_string(example).unwrap()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let values = dir.path().join("values.yaml");
    std::fs::write(&values, json!({ "config": config }).to_string()).unwrap();
    let rendered = helm.template(&["--values", path(&values).unwrap()]).await.unwrap();
    let objects = documents(&rendered).unwrap();
    let map = objects.iter().find(|one| one["kind"] == "ConfigMap" && one["data"]["config.yaml"].is_string());
    let text = map.unwrap()["data"]["config.yaml"].as_str().unwrap();
    // Helm leaves out what is null, which is what the inspector takes for it.
    fn without_nulls(value: Value) -> Value {
        match value {
            Value::Object(map) => {
                map.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, without_nulls(v))).collect()
            }
            Value::Array(list) => list.into_iter().map(without_nulls).collect(),
            other => other,
        }
    }
    let read: Value = serde_saphyr::from_str(text).unwrap();
    assert_eq!(without_nulls(read), without_nulls(config));
}

#[tokio::test]
async fn the_inspector_knows_every_flag_that_it_is_given() {
    let program = tokio::task::spawn_blocking(|| programs::path(Program::Inspector)).await.unwrap().unwrap();
    let help = std::process::Command::new(program).args(["cluster", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let helm = Helm::new().await.unwrap();
    for values in [vec![], flags(&["tls.certManager.enabled=true"]), flags(&WEBHOOK)] {
        let objects = documents(&helm.template(&values).await.unwrap()).unwrap();
        let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
        let arguments = deployment.pointer("/spec/template/spec/containers/0/args").unwrap();
        for argument in arguments.as_array().unwrap().iter().skip(1) {
            let flag = argument.as_str().unwrap().split('=').next().unwrap();
            let known = |end: &str| help.contains(&format!("{flag}{end}"));
            assert!(known(" ") || known("\n"), "{flag} is not in {help}");
        }
    }
}

#[tokio::test]
async fn values_that_make_no_sense_are_rejected() {
    let helm = Helm::new().await.unwrap();
    for (value, told) in [
        ("replica=3", "replica"),
        ("replicas=0", "replicas"),
        ("config.queue=default", "queue"),
        ("config.queues[0].policy=easy", "name"),
        ("image.digest=sha256:12", "digest"),
        ("containerPort=80", "containerPort"),
        ("admission.modes={other}", "modes"),
        ("admission.via=magic", "via"),
        ("config.schedulerNames={default-scheduler}", "set schedulerName to another scheduler"),
    ] {
        let ran = helm.run(&["template", "fluxion", path(&chart()).unwrap(), "--set", value]).await.unwrap();
        assert!(ran.code != Some(0) && ran.stderr.contains(told), "{value}: {}", ran.stderr);
    }
}

/// A port that is left out is easily overlooked: without it, only the history or the traces are missing.
#[tokio::test]
async fn notes_say_which_ports_must_be_open() {
    let helm = Helm::new().await.unwrap();
    let values = flags(&["journal.existingSecret.name=history", "tracing.endpoint=http://collector:4318"]);
    let chart = chart();
    let install = ["install", "fluxion", path(&chart).unwrap(), "--dry-run=client"];
    let notes = async |more: &[&str]| {
        let told = helm.ask(&[&install[..], &values, &flags(more)].concat()).await.unwrap();
        told.split_once("NOTES:").unwrap().1.to_owned()
    };
    assert!(!notes(&[]).await.contains("restricted"));
    let told = notes(&["networkPolicy.egressPorts={6443,5432}"]).await;
    for part in [
        "restricted to the ports 6443, 5432",
        "PostgreSQL server in the Secret history",
        "http://collector:4318",
    ] {
        assert!(told.contains(part), "{told}");
    }
    assert!(
        !notes(&["networkPolicy.egressPorts={6443}", "networkPolicy.enabled=false"])
            .await
            .contains("restricted")
    );
}

#[tokio::test]
async fn an_api_server_accepts_what_any_values_render() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let applier = Applier::new(cluster.client().await.unwrap());
    for crds in [include_str!("../../crds/monitoring.yaml"), include_str!("../../crds/cert-manager.yaml")] {
        applier.apply_yaml(crds).await.unwrap();
    }
    cluster.serves_all_kinds().await.unwrap();
    cluster.kubectl(&["create", "namespace", NAMESPACE]).await.unwrap();
    // A Pod is rejected, even in a dry run, where its ServiceAccount does not exist.
    for account in ["fluxion-inspector-test", "batch-test"] {
        cluster.kubectl(&["--namespace", NAMESPACE, "create", "serviceaccount", account]).await.unwrap();
    }
    let helm = Helm::new().await.unwrap();
    for (values, kind, count) in MATRIX {
        let rendered = helm.template(&flags(values)).await.unwrap();
        let objects = documents(&rendered).unwrap();
        let found = objects.iter().filter(|object| object["kind"] == kind).count();
        assert_eq!(found, count, "{kind} with {values:?}");
        let file = cluster.dir().join("rendered.yaml");
        std::fs::write(&file, &rendered).unwrap();
        let dry_run = [
            "apply",
            "--server-side",
            "--dry-run=server",
            "--validate=strict",
            "-o",
            "name",
            "-f",
            path(&file).unwrap(),
        ];
        let accepted =
            cluster.kubectl(&dry_run).await.unwrap_or_else(|error| panic!("{values:?}: {error:#}"));
        assert_eq!(accepted.lines().count(), objects.len(), "{values:?}");
    }
}

/// The namespace may enforce the strictest Pod security standard.
#[tokio::test]
async fn every_pod_meets_the_restricted_standard() {
    let helm = Helm::new().await.unwrap();
    let objects = documents(&helm.template(&[]).await.unwrap()).unwrap();
    let pods: Vec<&Value> = objects
        .iter()
        .filter_map(|object| match object["kind"].as_str()? {
            "Deployment" => Some(&object["spec"]["template"]["spec"]),
            "Pod" => Some(&object["spec"]),
            _ => None,
        })
        .collect();
    assert_eq!(pods.len(), 2);
    for pod in pods {
        let context = &pod["securityContext"];
        assert_eq!(context["runAsNonRoot"], true);
        assert_eq!(context["runAsUser"], 65532);
        assert_eq!(context["seccompProfile"]["type"], "RuntimeDefault");
        for container in pod["containers"].as_array().unwrap() {
            let context = &container["securityContext"];
            assert_eq!(context["readOnlyRootFilesystem"], true);
            assert_eq!(context["allowPrivilegeEscalation"], false);
            assert_eq!(context["capabilities"], json!({ "drop": ["ALL"] }));
            assert!(container["resources"]["limits"]["memory"].is_string());
        }
    }
}
