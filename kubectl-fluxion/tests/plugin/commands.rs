//! What the commands write, and with which code they end.

use axum::http::Uri;
use axum::response::IntoResponse;
use axum::routing::any;
use axum::{Json, Router};
use fluxion_api::API_VERSION;
use serde_json::{Value, json};

use crate::mock::{Mock, Ran, failure, plugin};

/// The first words of each line, and nothing of what moves with the clock.
fn columns(text: &str, count: usize) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().take(count).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn queue_shows_what_waits_in_order() {
    let ran = Mock::sample().run(&["queue"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(
        columns(&ran.out, 5),
        [
            "NAME STATE MEMBERS REQUEST PRIORITY",
            "podgroup/train Reserved 4/4 cpu=32,mem=64Gi,gpu=4 100",
            "job/sweep Pending 4/4 cpu=8,mem=16Gi 0",
            "group/sim Gathering 3/4 cpu=8,mem=16Gi 0",
            "pod/huge Unsatisfiable 1/1 cpu=512.5 0",
        ]
    );
    assert!(!ran.out.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn queue_of_all_namespaces() {
    let mock = Mock::sample();
    let ran = mock.run(&["queue", "-A", "--no-headers", "--state", "pending"]);
    assert_eq!(columns(&ran.out, 3), ["default job/sweep Pending", "team-b job/lammps Pending"]);
    assert!(mock.requests.lock().unwrap()[0].contains("fieldSelector=status.state%3DPending"));
}

#[test]
fn names_can_be_handed_on() {
    let mock = Mock::sample();
    assert_eq!(mock.run(&["jobs", "-o", "name", "-n", "team-b"]).out, "job/lammps\n");
    assert_eq!(mock.run(&["jobs", "-o", "name", "--kind", "podgroup"]).out, "podgroup/train\n");
    let all = mock.run(&["jobs", "-A", "-o", "name"]).out;
    assert_eq!(all.lines().last(), Some("team-b/job/lammps"));
    assert_eq!(mock.run(&["nodes", "-o", "name"]).out, "node/n1\nnode/n2\nnode/n10\n");
}

#[test]
fn json_is_one_document_with_all_pages() {
    let ran = Mock::sample().run(&["queue", "-o", "json"]);
    let list: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 4);
    assert_eq!(list["items"][0]["status"]["plannedStart"], "2026-03-01T12:45:00Z");
    assert_eq!(list["metadata"]["role"], "standalone");
    assert!(list["metadata"].get("continue").is_none());
}

#[test]
fn yaml_is_yaml() {
    let ran = Mock::sample().run(&["nodes", "-o", "yaml"]);
    assert!(ran.out.contains("\n  role: standalone\n"), "{}", ran.out);
    assert!(ran.out.contains("cpu: 500m"), "{}", ran.out);
}

#[test]
fn status_on_one_screen() {
    let ran = Mock::sample().run(&["status"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for expected in [
        "(standalone)",
        "2 of 3 schedulable  (1 cordoned)",
        "8.5 of 48",
        "1 Running, 1 Reserved, 2 Pending, 1 Gathering, 1 Unsatisfiable, 1 Completed",
        "1 problem",
        "Overcommitted node/n1",
    ] {
        assert!(ran.out.contains(expected), "{expected}:\n{}", ran.out);
    }
    let json: Value = serde_json::from_str(&Mock::sample().run(&["status", "-o", "json"]).out).unwrap();
    assert_eq!(json["usage"]["cpu"]["allocated"], "8.5");
    assert_eq!(json["nodes"]["eligible"], 2);
}

#[test]
fn graph_as_a_table_and_as_bare_jgf() {
    let mock = Mock::sample();
    let table = mock.run(&["graph"]).out;
    assert_eq!(
        columns(&table, 3)[..3],
        ["LEVEL VERTICES RESOURCE", "cluster 1 cpu", "nvidia.com/gpu ················ 0"]
    );
    let jgf: Value = serde_json::from_str(&mock.run(&["graph", "-o", "json"]).out).unwrap();
    assert!(jgf["graph"]["nodes"].is_array());
}

#[test]
fn reservations_soonest_first() {
    let ran = Mock::sample().run(&["reservations"]);
    assert!(ran.out.contains("podgroup/train"), "{}", ran.out);
    assert!(ran.out.contains("n[1-2]"), "{}", ran.out);
    assert_eq!(ran.out.lines().count(), 2);
}

#[test]
fn explain_answers_in_sentences() {
    let ran = Mock::sample().run(&["explain", "train"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.starts_with("Job: default/podgroup/train\nState: Reserved for "), "{}", ran.out);
    assert!(ran.out.contains("Waiting for:\n  job/lammps"), "{}", ran.out);
}

/// Jobs of these namespaces and names, and nothing else.
fn only(jobs: &'static [(&'static str, &'static str)]) -> Mock {
    let answer = move |uri: Uri| async move {
        let here = |namespace: &str| uri.path().contains(&format!("/namespaces/{namespace}/"));
        let all = !uri.path().contains("/namespaces/");
        let job = |(namespace, name): &(&str, &str)| {
            let metadata = json!({"name": format!("pod.{name}"), "namespace": namespace});
            json!({"metadata": metadata, "spec": {"group": {"kind": "Pod", "name": name}}})
        };
        if !uri.path().ends_with("/fluxionjobs") {
            return failure(404, "NotFound", "there is no such object");
        }
        let items: Vec<Value> =
            jobs.iter().filter(|(namespace, _)| all || here(namespace)).map(job).collect();
        Json(json!({"apiVersion": API_VERSION, "kind": "FluxionJobList", "metadata": {}, "items": items}))
            .into_response()
    };
    Mock::serve(Router::new().fallback(any(answer)))
}

#[test]
fn explain_finds_a_name_that_is_unique_over_all_namespaces() {
    let mock = only(&[("shop", "web-0"), ("a", "twin"), ("b", "twin"), ("default", "near"), ("a", "near")]);
    let ran = mock.run(&["explain", "web-0"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.starts_with("Job: shop/pod/web-0\n"), "{}", ran.out);
    assert!(mock.run(&["explain", "pod/web-0"]).out.starts_with("Job: shop/pod/web-0\n"));
    // The own namespace comes first.
    assert!(mock.run(&["explain", "near"]).out.starts_with("Job: default/pod/near\n"));
    for (arguments, wanted) in [
        (&["explain", "twin"][..], "a/pod/twin, b/pod/twin"),
        (&["explain", "-n", "team", "web-0"], "no job named web-0 in namespace team"),
        (&["explain", "team/pod/web-0"], "in namespace team"),
        (&["explain", "nobody"], "no job named nobody in namespace default"),
        // What is deleted is named in full, or is here.
        (&["cancel", "-y", "web-0"], "no job named web-0 in namespace default"),
    ] {
        let ran = mock.run(arguments);
        assert_eq!(ran.code, 3, "{arguments:?}: {}", ran.err);
        // What became of each job is cancel's output.
        let told = if arguments[0] == "cancel" { &ran.out } else { &ran.err };
        assert!(told.contains(wanted), "{arguments:?}: {told}");
    }
}

#[test]
fn versions_of_both_sides() {
    assert_eq!(
        Mock::sample().run(&["version"]).out,
        format!("Client Version: {}\nServer Version: 9.9.9\n", env!("CARGO_PKG_VERSION"))
    );
    let alone = Ran::of(plugin().arg("version"));
    assert_eq!(alone.code, 0);
    assert!(alone.out.contains("Server Version: unknown (no inspector found"), "{}", alone.out);
}

#[test]
fn completion_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = Ran::of(plugin().args(["completion", shell]));
        assert_eq!(ran.code, 0);
        assert!(ran.out.contains("reservations"), "{shell}");
    }
}

#[test]
fn kubectl_completes_commands_flags_and_jobs() {
    let mock = Mock::sample();
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("kubectl_complete-fluxion");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kubectl-fluxion"), &program).unwrap();
    let token = token_file();
    let suggest = |words: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command
            .env_clear()
            .env("FLUXION_SERVER", &mock.url)
            .env("FLUXION_TOKEN_FILE", token.path())
            .args(words);
        Ran::of(&mut command).out
    };
    assert_eq!(suggest(&["res"]), "reservations\tList jobs with a planned start, soonest first\n:4\n");
    assert_eq!(suggest(&["explain", "job/"]), "job/lammps\njob/sweep\n:4\n");
    assert_eq!(suggest(&["cancel", "-y", "-A", "team"]), "team-b/job/lammps\n:4\n");
    assert_eq!(suggest(&["queue", "--kubeconfig", ""]), ":0\n");
}

#[test]
fn the_standalone_inspector_is_found_by_its_file() {
    let mock = Mock::sample();
    let state = tempfile::tempdir().unwrap();
    std::fs::create_dir(state.path().join("fluxion")).unwrap();
    let file = serde_json::json!({"url": mock.url, "pid": 1, "clusterId": "https://10.0.0.1:6443", "token": crate::mock::TOKEN});
    std::fs::write(state.path().join("fluxion/server.json"), file.to_string()).unwrap();
    let run = |command: &mut std::process::Command| {
        Ran::of(command.env("XDG_STATE_HOME", state.path()).arg("status"))
    };
    let ran = run(&mut plugin());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let ran = run(plugin().env("KUBECONFIG", "/somewhere"));
    assert_eq!(ran.code, 0);
    assert!(ran.err.contains("instead of the cluster in KUBECONFIG"), "{}", ran.err);
    let kubeconfig = state.path().join("kubeconfig");
    std::fs::write(&kubeconfig, "clusters: [{cluster: {server: 'https://10.0.0.1:6443'}}]").unwrap();
    let ran = run(plugin().env("KUBECONFIG", &kubeconfig));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "it is that cluster's inspector");
    let ran = run(plugin().args(["--server", &mock.url]));
    assert_eq!(ran.code, 0, "the token beside the address is used: {}", ran.err);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mock = Mock::sample();
    let token = token_file();
    let mut child = plugin()
        .args(["jobs", "-A", "-o", "json", "--server", &mock.url])
        .env("FLUXION_TOKEN_FILE", token.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(ran.stderr.is_empty());
}

fn token_file() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), crate::mock::TOKEN).unwrap();
    file
}
