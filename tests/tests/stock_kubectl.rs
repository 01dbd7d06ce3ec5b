//! What kubectl makes of the inspector's API when it knows nothing of Fluxion.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::stage::Stage;
use fluxion_tests::tools::{self, Tool};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

/// Standard output, and standard error where it fails.
async fn ran(mut command: Command) -> Result<String, String> {
    let output = command.output().await.map_err(|error| error.to_string())?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

#[tokio::test]
async fn kubectl_lists_watches_and_explains_without_a_plugin() {
    let stage = Stage::with_nodes(&[NodeSpec::new("n1")]).await.unwrap();
    stage.create([PodManifest::new("runs").request("cpu", "4").build()]).await.unwrap();
    stage.job_is("pod/runs", "Running").await.unwrap();
    stage.create([PodManifest::new("waits").request("cpu", "3").build()]).await.unwrap();
    stage.job_becomes("pod/waits", "waiting", fluxion_api::job::FluxionJob::is_queued).await.unwrap();
    let old = tokio::task::spawn_blocking(|| tools::ensure(Tool::OldKubectl)).await.unwrap().unwrap();
    for program in [stage.cluster.tools().path(Tool::Kubectl), &old] {
        lists_watches_and_explains(&stage, program).await;
    }
}

async fn lists_watches_and_explains(stage: &Stage, program: &Path) {
    let version = Command::new(program).args(["version", "--client"]).output().await.unwrap();
    println!("{}", String::from_utf8_lossy(&version.stdout));
    let door = stage.inspector.server().door().await.unwrap();
    // What one has learnt of the API is not for the other to know.
    let home = stage.cluster.dir().join("homes").join(program.file_name().unwrap());
    let kubectl = |args: &[&str]| {
        let mut command = Command::new(program);
        command.env("KUBECONFIG", "/dev/null").env("HOME", &home).stdin(Stdio::null()).kill_on_drop(true);
        command.arg("--server").arg(door.url()).args(args);
        command
    };

    let table = ran(kubectl(&["get", "fj", "-A"])).await.unwrap();
    let header: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["NAMESPACE", "NAME", "STATE", "MEMBERS", "REQUEST", "PRIORITY", "ETA", "AGE"]);
    assert!(table.contains("pod.runs") && table.contains("pod.waits"), "{table}");
    let wide = ran(kubectl(&["get", "fj", "-A", "-o", "wide", "--sort-by", ".metadata.name"])).await.unwrap();
    assert!(wide.contains("REASON") && wide.contains("insufficient cpu"), "{wide}");
    let names = ran(kubectl(&["get", "fluxion", "-A", "-o", "name"])).await.unwrap();
    for name in
        ["fluxionjob.fluxion.flux-framework.org/pod.runs", "fluxiongraph.fluxion.flux-framework.org/live"]
    {
        assert!(names.contains(name), "{names}");
    }
    let state = ran(kubectl(&["get", "fj", "pod.runs", "-o", "jsonpath={.status.state}"])).await.unwrap();
    assert_eq!(state, "Running");
    assert!(ran(kubectl(&["get", "fn"])).await.unwrap().contains("Ready"));
    assert!(ran(kubectl(&["get", "fq", "default", "-o", "yaml"])).await.unwrap().contains("policy: easy"));
    assert!(
        ran(kubectl(&["get", "fluxiongraphs", "live", "-o", "yaml"]))
            .await
            .unwrap()
            .contains("kind: FluxionGraph")
    );
    let resources = ran(kubectl(&["api-resources", "--api-group=fluxion.flux-framework.org"])).await.unwrap();
    assert!(resources.contains("fluxionqueues") && resources.contains("fq"), "{resources}");

    let explained = ran(kubectl(&["explain", "fluxionjobs.status"])).await.unwrap();
    assert!(explained.contains("plannedStart") && explained.contains("FluxionJob"), "{explained}");
    let metadata = ran(kubectl(&["explain", "fluxionnodes.metadata"])).await.unwrap();
    assert!(metadata.contains("resourceVersion"), "{metadata}");

    let deleted = ran(kubectl(&["delete", "fj", "pod.waits"])).await.unwrap_err();
    assert!(deleted.contains("kubectl fluxion cancel"), "{deleted}");
    let waited =
        ran(kubectl(&["wait", "fj/pod.runs", "--for=jsonpath={.status.state}=Running", "--timeout=20s"]))
            .await;
    assert!(waited.as_ref().is_ok_and(|text| text.contains("condition met")), "{waited:?}");

    let mut watching = kubectl(&["get", "fj", "-w"]);
    let mut watching = watching.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let late = format!("late-for-{}", program.file_name().unwrap().to_string_lossy());
    for expected in ["NAME", "pod.runs", "pod.waits", &format!("pod.{late}")] {
        if expected.ends_with(&late) {
            stage.create([PodManifest::new(&late).request("cpu", "1").build()]).await.unwrap();
        }
        loop {
            let line = tokio::time::timeout(Duration::from_secs(20), lines.next_line()).await;
            let line = line.expect("a line in time").unwrap().unwrap();
            if line.starts_with(expected) {
                break;
            }
            // That of the other kubectl.
            assert!(line.starts_with("pod.late-for-"), "{line}, not {expected}");
        }
    }
    watching.kill().await.unwrap();
}
