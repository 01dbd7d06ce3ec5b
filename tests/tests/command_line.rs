//! The plugin in scripts: pipes, names, exit codes, and what it says when something is wrong.

use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::plugin::ran;
use fluxion_tests::stage::Stage;
use serde_json::Value;

#[tokio::test]
async fn output_can_be_piped_and_exit_codes_are_as_published() {
    let stage = Stage::with_nodes(&[NodeSpec::new("n1")]).await.unwrap();
    stage.create([PodManifest::new("runs").request("cpu", "4").build()]).await.unwrap();
    stage.job_is("pod/runs", "Running").await.unwrap();
    stage
        .create(
            ["a", "b", "c"]
                .map(|name| PodManifest::new(name).request("cpu", "1").label("wave", "one").build()),
        )
        .await
        .unwrap();
    for job in ["pod/a", "pod/b", "pod/c"] {
        stage
            .job_becomes(job, "waiting", |job| ["Pending", "Reserved"].contains(&job.status.state.as_str()))
            .await
            .unwrap();
    }
    let plugin = stage.plugin().unwrap();

    let json: Value = serde_json::from_str(&plugin.ask(&["queue", "-o", "json"]).await.unwrap()).unwrap();
    let names: Vec<&str> = json["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["pod.a", "pod.b", "pod.c"]);
    assert!(json["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().is_ok());
    let table = plugin.ask(&["queue"]).await.unwrap();
    let header = table.lines().next().unwrap();
    for column in ["STATE", "MEMBERS", "PRIORITY", "AGE", "ETA", "REASON"] {
        assert!(header.contains(column), "{header}");
    }

    // A reader that goes away ends it quietly.
    let script = "kubectl-fluxion jobs -o yaml | head -n 1; echo ${PIPESTATUS:-}";
    let closed = ran(&mut plugin.shell(script).unwrap()).await.unwrap();
    assert_eq!((closed.code, closed.stderr.as_str()), (Some(0), ""));

    // The names it prints are names it takes.
    let script = "kubectl-fluxion queue -o name | xargs kubectl-fluxion cancel -y";
    let cancelled = ran(&mut plugin.shell(script).unwrap()).await.unwrap();
    assert_eq!(
        cancelled.stdout, "pod/a cancelled\npod/b cancelled\npod/c cancelled\n",
        "{}",
        cancelled.stderr
    );
    assert!(stage.pods("wave=one").await.unwrap().is_empty() || stage.stay_unbound("wave=one").await.is_ok());

    let unknown = plugin.run(&["explain", "job/nowhere"]).await.unwrap();
    assert_eq!(unknown.code, Some(3), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("nowhere"), "{}", unknown.stderr);
    let usage = plugin.run(&["queue", "--no-such-flag"]).await.unwrap();
    assert_eq!(usage.code, Some(2), "{}", usage.stderr);
    // Nobody listens on port 1.
    let dead = plugin.clone().at("http://127.0.0.1:1").run(&["status"]).await.unwrap();
    assert_eq!(dead.code, Some(5), "{}", dead.stderr);
    assert!(dead.stderr.contains("127.0.0.1:1"), "{}", dead.stderr);
    let wrong = stage.cluster.dir().join("wrong-token");
    std::fs::write(&wrong, "0000").unwrap();
    let refused = plugin.clone().with_token_file(&wrong).run(&["status"]).await.unwrap();
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    // The terminal view needs a terminal.
    let tui = plugin.run(&["tui"]).await.unwrap();
    assert!(!tui.stderr.is_empty());
    assert_ne!(tui.code, Some(0));
}

/// kubectl finds the plugin by its name.
#[tokio::test]
async fn it_is_a_kubectl_plugin() {
    let stage = Stage::with_nodes(&[NodeSpec::new("n1")]).await.unwrap();
    let kubectl = stage.cluster.tools().path(fluxion_tests::tools::Tool::Kubectl).display().to_string();
    let script = format!("{kubectl} fluxion nodes --no-headers");
    let listed = ran(&mut stage.plugin().unwrap().shell(&script).unwrap()).await.unwrap();
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    assert!(listed.stdout.starts_with("n1"), "{}", listed.stdout);
}
