//! The program as a researcher uses it: archive traces, schedules, charts and statistics.

#![allow(clippy::unwrap_used, reason = "a test that can't run the program has failed")]

mod run;

use std::fs;

use run::sim;
use serde_json::Value;
use tempfile::TempDir;

/// Standard output and standard error of a run that succeeds.
fn texts(arguments: &[&str]) -> (String, String) {
    let output = sim(arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    (String::from_utf8(output.stdout).unwrap(), error)
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&texts(&[arguments, &["-o", "json"]].concat()).0).unwrap()
}

/// A trace of two nodes with two cores: a job over its limit, a wide one, one in parts, one too wide, one that never
/// ran.
const ARCHIVE: &str = "\u{feff}; MaxNodes: 2\r\n; MaxProcs: 4\r\n\
    1 0 -1 100 2 -1 -1 2 50 -1 1 7 1 1 1 1 -1 -1\r\n\
    2 1 -1 .9 4 -1 -1 4 60 -1 1 8 1 1 2 2 1 500 ; remark\r\n\
    3 2 -1 10 1 -1 -1 1 20 -1 2 7 1 1 1 1 -1 -1\r\n\
    3 2 -1 30 1 -1 -1 1 40 -1 1 7 1 1 1 1 -1 -1\r\n\
    4 3 -1 10 8 -1 -1 8 20 -1 1 8 1 1 1 1 -1 -1\r\n\
    5 4 -1 -1 1 -1 -1 1 20 -1 5 8 1 1 1 1 -1 -1\r\n";

fn archive(directory: &TempDir) -> String {
    let path = directory.path().join("archive.swf");
    fs::write(&path, ARCHIVE).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn archive_traces_are_read_as_they_come() {
    let directory = TempDir::new().unwrap();
    let trace = archive(&directory);
    let easy = [trace.as_str(), "--policy", "easy", "-o", "csv", "--schedule"];
    let (text, notes) = texts(&easy);
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        [
            "policy,id,user,queue,submit,promised,start,end,wait,run,limit,processors,allocated,nodes,nodeList",
            "easy,1,7,1,0,,0,50,0,50,50,2,2,1,0",
            "easy,2,8,2,1,50,50,51,49,1,60,4,4,2,0-1",
            "easy,3,7,1,2,,2,32,0,30,40,1,1,1,1",
            "easy,4,8,1,3,,,,,,20,8,,,",
        ]
    );
    assert_eq!(
        notes.lines().collect::<Vec<_>>(),
        [
            "skipped 1 job without run time or processors",
            "1 line for parts of jobs (status 2 to 4): each job is simulated once, without interruption",
            "ignored partitions (field 16): the trace has 2",
            "ignored preceding jobs and think times (fields 17 and 18) of 1 job: submit times are those of the trace",
            "1 job runs beyond its time limit: ended there (use --allow-overruns to keep the run times)",
            "1 job requests more resources than the cluster has and can never run: the widest is 8 processors",
        ]
    );
    let (text, notes) = texts(&[&easy[..], &["--allow-overruns", "--nodes", "1"]].concat());
    assert!(text.contains("\neasy,1,7,1,0,,0,100,0,100,50,2,2,1,0\n"), "{text}");
    assert!(notes.contains("MaxProcs 4, but the simulated cluster has 1 node with 2 cores"), "{notes}");
}

#[test]
fn a_schedule_in_the_standard_workload_format_is_a_trace() {
    let directory = TempDir::new().unwrap();
    let trace = archive(&directory);
    let (text, _) = texts(&[&trace, "--policy", "easy", "-o", "swf", "--schedule"]);
    assert!(text.contains("\n1 0 0 50 2 -1 -1 2 50 -1 0 7 -1 -1 1 -1 -1 -1\n"), "{text}");
    assert!(text.ends_with("\n4 3 -1 -1 -1 -1 -1 8 20 -1 5 8 -1 -1 1 -1 -1 -1\n"), "{text}");
    let again = directory.path().join("again.swf");
    fs::write(&again, &text).unwrap();
    let (second, notes) = texts(&[again.to_str().unwrap(), "--policy", "easy", "-o", "swf", "--schedule"]);
    assert_eq!(notes, "skipped 1 job without run time or processors\n");
    assert!(second.contains("\n2 1 49 1 4 -1 -1 4 60 -1 1 8 -1 -1 2 -1 -1 -1\n"), "{second}");
}

#[test]
fn state_over_time_and_gantt_chart_are_written() {
    let directory = TempDir::new().unwrap();
    let (trace, chart) = (archive(&directory), directory.path().join("chart.svg"));
    let timeline = directory.path().join("timeline.csv");
    let files = ["--timeline", timeline.to_str().unwrap(), "--gantt", chart.to_str().unwrap()];
    texts(&[&[trace.as_str(), "--policy", "easy", "--policy", "fcfs"][..], &files].concat());
    let text = fs::read_to_string(timeline).unwrap();
    let easy: Vec<&str> = text.lines().filter(|line| !line.starts_with("fcfs")).collect();
    assert_eq!(
        easy,
        [
            "policy,time,cores,utilization,running,waiting",
            "easy,0,2,0.5,1,0",
            "easy,1,2,0.5,1,1",
            "easy,2,3,0.75,2,1",
            "easy,32,2,0.5,1,1",
            "easy,50,4,1.0,1,0",
            "easy,51,0,0.0,0,0",
        ]
    );
    let text = fs::read_to_string(chart).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let titles: Vec<&str> = document
        .descendants()
        .filter(|node| node.has_tag_name("title"))
        .filter_map(|node| node.text())
        .collect();
    assert_eq!(titles.len(), 6);
    assert_eq!(titles[2], "job 2: 4 processors, submitted 1, start 50, end 51");
}

const MIXED: [&str; 7] =
    ["examples/traces/mixed.csv", "--nodes", "8", "--cores-per-node", "16", "--policy", "easy"];

#[test]
fn metrics_leave_out_warm_up_and_cool_down() {
    let all = &json(&MIXED)["results"][0];
    let cut = &json(&[&MIXED[..], &["--warm-up", "10%", "--cool-down", "25%"]].concat())["results"][0];
    assert_eq!((all["measured"].as_u64(), cut["measured"].as_u64()), (Some(120), Some(78)));
    assert_eq!(all["makespan"], cut["makespan"]);
    let slow = &json(&[&MIXED[..], &["--slowdown-bound", "1000000"]].concat())["results"][0];
    assert_eq!(slow["slowdown"]["max"].as_f64(), Some(1.0));
}

#[test]
fn load_scales_with_the_time_between_submissions() {
    let load = |factor| {
        json(&[&MIXED[..], &["--load-factor", factor]].concat())["results"][0]["load"].as_f64().unwrap()
    };
    let (half, whole) = (load("0.5"), load("1"));
    assert!((half * 2.0 / whole - 1.0).abs() < 0.01, "{half} {whole}");
}

#[test]
fn seeds_give_the_same_confidence_interval_again() {
    let run = || json(&[&MIXED[..], &["--seeds", "4", "--shake", "30"]].concat());
    let document = run();
    assert_eq!(document, run());
    let confidence = &document["results"][0]["confidence"];
    assert_eq!(confidence["seeds"], 4);
    assert!(confidence["wait"]["halfWidth"].as_f64().unwrap() > 0.0);
    let (text, _) = texts(&[&MIXED[..], &["--seeds", "2"]].concat());
    assert!(text.contains("wait, mean, 2 seeds") && text.contains(" ± "), "{text}");
}

#[test]
fn policies_are_compared_by_user_and_width() {
    let directory = TempDir::new().unwrap();
    let trace = archive(&directory);
    let by = [trace.as_str(), "--by", "user", "--by", "width", "--policy", "fcfs", "--policy", "easy"];
    let (text, _) = texts(&by);
    let line = |start: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("USER"), "USER JOBS FCFS WAIT FCFS SLOWDOWN EASY WAIT EASY SLOWDOWN");
    assert_eq!(line("7 "), "7 2 24.5s 1.82 0s 1.00");
    assert_eq!(line("3-4 "), "3-4 1 49s 5.00 49s 5.00");
    let document = json(&by);
    assert_eq!(document["results"][1]["by"]["user"][0]["name"], "7");
    let (text, _) = texts(&[&by[..], &["-o", "csv"]].concat());
    assert!(text.contains("\neasy,,width,3-4,1,,,,,,,49,49,49,49,5,5,5,5\n"), "{text}");
}

#[test]
fn help_tells_of_archive_traces_and_determinism() {
    let (text, _) = texts(&["--help"]);
    for part in ["--nodes 1 --cores-per-node PROCESSORS", "deterministic", "run time of 0 counts as 1 s"] {
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(part), "{text}");
    }
}
