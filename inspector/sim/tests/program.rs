//! The program as its users run it.

#![allow(clippy::unwrap_used, reason = "a test that can't run the program has failed")]

mod run;

use run::sim;
use serde_json::Value;

const TRACE: [&str; 5] = ["examples/traces/mixed.csv", "--nodes", "8", "--cores-per-node", "16"];

#[test]
fn policies_are_compared_side_by_side() {
    let output = sim(&TRACE);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let header: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["FCFS", "EASY", "CONSERVATIVE", "HYBRID"]);
    let line =
        |title: &str| text.lines().find(|line| line.trim_start().starts_with(title)).unwrap().to_owned();
    assert_eq!(line("jobs run").split_whitespace().filter(|word| *word == "120").count(), 4);
}

#[test]
fn json_has_figures_and_the_schedule_where_asked() {
    let mut arguments = TRACE.to_vec();
    arguments.extend([
        "-o",
        "json",
        "--schedule",
        "--policy",
        "easy",
        "--policy",
        "fcfs",
        "--policy",
        "easy",
    ]);
    let document: Value = serde_json::from_slice(&sim(&arguments).stdout).unwrap();
    let results = document["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    let wait = |index: usize| results[index]["wait"]["mean"].as_f64().unwrap();
    assert!(wait(0) < wait(1), "backfill shortens waiting: {} {}", wait(0), wait(1));
    for result in results {
        let mut used = Vec::new();
        for job in result["schedule"].as_array().unwrap() {
            assert!(job["start"].as_i64() >= job["submit"].as_i64());
            used.push((job["start"].as_i64().unwrap(), job["end"].as_i64().unwrap()));
        }
        assert_eq!(used.len(), 120);
        let end = used.iter().map(|(_, end)| *end).max();
        assert!(end >= result["makespan"].as_i64());
    }
}

#[test]
fn queues_have_policies_and_depths_of_their_own() {
    let trace = tempfile::NamedTempFile::with_suffix(".csv").unwrap();
    let text = "submit,cores,run,queue\n0,3,100,batch\n1,4,50,batch\n2,1,10,batch\n3,1,10,short\n";
    std::fs::write(trace.path(), text).unwrap();
    let file = trace.path().to_str().unwrap();
    let starts = |queues: &[&str]| {
        let mut arguments = vec![file, "--nodes", "2", "--cores-per-node", "2", "-o", "json", "--schedule"];
        arguments.extend(queues.iter().flat_map(|queue| ["--queue", queue]));
        let output = sim(&arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let results = document["results"].as_array().unwrap();
        let start = |result: &Value| {
            let jobs = result["schedule"].as_array().unwrap();
            let starts: Vec<i64> = jobs.iter().map(|job| job["start"].as_i64().unwrap()).collect();
            (result["policy"].as_str().unwrap().to_owned(), starts)
        };
        results.iter().map(start).collect::<Vec<_>>()
    };
    let own = starts(&["short:easy", "batch:fcfs"]);
    assert_eq!(own, [("own".to_owned(), vec![0, 100, 150, 3])]);
    let compared = starts(&["short:easy", "batch,queue-depth=5"]);
    assert_eq!(compared[0], ("fcfs".to_owned(), vec![0, 100, 150, 3]));
    assert_eq!(compared[1], ("easy".to_owned(), vec![0, 100, 2, 12]));
    assert_eq!(compared.len(), 4);
    let output = sim(&[file, "--nodes", "2", "--queue", "a", "--queue", "b"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("job 2 is for queue `batch`"), "{text}");
}

#[test]
fn mistakes_are_named() {
    for (arguments, status, message) in [
        (&["nowhere.swf", "--nodes", "1"][..], 1, "failed to read trace nowhere.swf"),
        (
            &["Cargo.toml", "--nodes", "1"],
            1,
            "as SWF (use --trace-format to specify another format): line 1: field 1",
        ),
        (&["examples/traces/mixed.csv", "--nodes", "0"], 2, "0 is not in 1..=1000000"),
        (&["examples/traces/mixed.csv"], 1, "--nodes is required: the trace has no header"),
        (&["examples/traces/mixed.csv", "--nodes", "1", "--seeds", "1"], 2, "1 is not in 2..=10000"),
        (&["examples/traces/mixed.csv", "--nodes", "1", "--shake", "9"], 2, "--seeds"),
        (&["examples/traces/mixed.csv", "--nodes", "1", "--warm-up", "1h"], 2, "must be a number of seconds"),
        (&["examples/traces/mixed.csv", "--nodes", "1", "--load-factor", "0"], 2, "between 0.001 and 1000"),
        (
            &["examples/traces/mixed.csv", "--nodes", "1", "-o", "swf", "--schedule"],
            1,
            "requires --schedule and a single --policy",
        ),
        (
            &["examples/traces/mixed.csv", "--nodes", "64", "--policy", "fcfs", "--gantt", "/no/x.svg"],
            1,
            "failed to write /no/x.svg",
        ),
        (
            &["examples/traces/mixed.csv", "--nodes", "1", "--queue-depth", "0"],
            2,
            "must be a positive integer",
        ),
        (&["examples/traces/mixed.csv", "--nodes", "-1"], 2, "-1 is not in 1..=1000000"),
        (&["examples/traces/mixed.csv", "--nodes", "1", "--jobs", "0"], 2, "must be a positive integer"),
        (&["examples/traces/mixed.csv", "--nodes", "1", "--schedule"], 1, "requires -o json, csv or swf"),
        (
            &["examples/traces/mixed.csv", "--nodes", "1", "--queue", "a:easy", "--policy", "fcfs"],
            1,
            "--policy has no effect",
        ),
        (&["examples/traces/mixed.csv", "--nodes", "1", "--queue", "a:fair"], 1, "`fair`"),
        (
            &["examples/traces/mixed.csv", "--nodes", "1", "--queue", "a", "--queue", "a"],
            1,
            "duplicate queue 'a'",
        ),
    ] {
        let output = sim(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(text.contains(message), "{text}");
    }
}

#[test]
fn jobs_larger_than_the_cluster_are_told_of() {
    let output = sim(&["examples/traces/mixed.csv", "--nodes", "63", "--policy", "easy"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert_eq!(
        text.trim(),
        "20 jobs request more resources than the cluster has and can never run: the widest is 64 processors"
    );
}

#[test]
fn nodes_are_chosen_as_a_queue_of_the_inspector_chooses_them() {
    let trace = tempfile::NamedTempFile::with_suffix(".csv").unwrap();
    std::fs::write(trace.path(), "submit,cores,run\n0,1,10\n0,1,10\n").unwrap();
    let file = trace.path().to_str().unwrap();
    let nodes = |chosen: &[&str]| {
        let machine = [file, "--nodes", "3", "--cores-per-node", "2", "-o", "json", "--schedule"];
        let output = sim(&[&machine, chosen].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let result = &document["results"][0]["schedule"];
        [0, 1].map(|job| result[job]["nodeList"].as_str().unwrap().to_owned())
    };
    for policy in ["easy", "hybrid", "conservative"] {
        let with = |more: &[&str]| nodes(&[&["--policy", policy], more].concat());
        assert_eq!(with(&[]), ["0", "0"], "{policy}");
        assert_eq!(with(&["--node-policy", "low"]), ["0", "0"], "{policy}");
        assert_eq!(with(&["--node-policy", "high"]), ["2", "2"], "{policy}");
        assert_eq!(with(&["--node-policy", "spread"]), ["0", "1"], "{policy}");
        assert_eq!(with(&["--queue", "all,node-policy=high"]), ["2", "2"], "{policy}");
    }
}
