//! Replays recorded sessions of flux-sched's `resource-query` where they are at hand: in the folder
//! `shared/conformance` beside the workspace, or the one that `FLUXION_CONFORMANCE` names.

#![allow(clippy::unwrap_used, reason = "a test that can't set up its files has failed")]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How many sessions are answered line for line; fewer is a step back.
const REACHED: usize = 645;

/// A session that takes longer has hung.
const PATIENCE: Duration = Duration::from_mins(2);

fn folder() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance");
    let folder = std::env::var_os("FLUXION_CONFORMANCE").map_or_else(beside, PathBuf::from);
    folder.canonicalize().unwrap()
}

/// Lines in a form in which the order of keys and white space at ends don't count.
fn normal(text: &str) -> Vec<String> {
    let line = |line: &str| {
        let trimmed = line.trim();
        match trimmed.starts_with('{').then(|| serde_json::from_str::<Value>(trimmed)) {
            Some(Ok(value)) => value.to_string(),
            _ => line.trim_end().to_owned(),
        }
    };
    text.lines().map(line).collect()
}

fn expected(case: &Value, folder: &Path) -> String {
    if let Some(text) = case["exp"].as_str() {
        return text.to_owned();
    }
    let file = folder.join("expected").join(case["exp"]["file"].as_str().unwrap());
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(file).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// Plays one session; an error says how it went wrong.
fn play(case: &Value, folder: &Path) -> Result<(), String> {
    let scratch = tempfile::tempdir().unwrap();
    let data = folder.join("data");
    let (data, cwd) = (data.to_str().unwrap(), scratch.path().to_str().unwrap());
    let put = |text: &str| text.replace("{DATA}", data).replace("{CWD}", cwd);
    for (name, body) in case["files"].as_object().unwrap() {
        std::fs::write(scratch.path().join(name), put(body.as_str().unwrap())).unwrap();
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_resource-query"))
        .args(case["argv"].as_array().unwrap().iter().map(|argument| put(argument.as_str().unwrap())))
        .current_dir(scratch.path())
        .stdin(Stdio::piped())
        .stdout(std::fs::File::create(scratch.path().join(".stdout")).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A session that fails at the start reads nothing: that the pipe breaks is no error here.
    let _ = child.stdin.take().unwrap().write_all(put(case["stdin"].as_str().unwrap()).as_bytes());
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if begun.elapsed() > PATIENCE => {
                child.kill().unwrap();
                return Err("no answer".to_owned());
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    if status.code().map(i64::from) != case["rc"].as_i64() {
        return Err(format!("{status}, expected {}", case["rc"]));
    }
    let name = if case["compare"] == "output" { case["out"].as_str().unwrap() } else { ".stdout" };
    let got = std::fs::read(scratch.path().join(name)).unwrap_or_default();
    let got = String::from_utf8_lossy(&got).replace(data, "{DATA}").replace(cwd, "{CWD}");
    let (want, got) = (normal(&expected(case, folder)), normal(&got));
    match want.iter().zip(&got).position(|(want, got)| want != got) {
        Some(at) => Err(format!("line {}:\n  - {}\n  + {}", at + 1, want[at], got[at])),
        None if want.len() != got.len() => Err(format!("{} lines, expected {}", got.len(), want.len())),
        None => Ok(()),
    }
}

/// Tells whoever runs the tests, also when they pass: what is printed by macro is kept back then.
fn say(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

#[test]
#[cfg_attr(
    not(recordings),
    ignore = "no recorded sessions: neither beside the workspace nor by FLUXION_CONFORMANCE"
)]
fn recorded_sessions_are_answered_line_for_line() {
    let folder = folder();
    let text = std::fs::read_to_string(folder.join("cases.jsonl")).unwrap();
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (next, passed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match play(case, &folder) {
                        Ok(()) => drop(passed.fetch_add(1, Ordering::Relaxed)),
                        Err(why) => {
                            let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                            failures.push(format!("{}: {why}", case["id"]));
                        }
                    }
                }
            });
        }
    });
    let passed = passed.into_inner();
    for failure in failures.into_inner().unwrap_or_else(PoisonError::into_inner) {
        say(&failure);
    }
    say(&format!("{passed} passed, {} failed of the recorded sessions", cases.len() - passed));
    assert!(passed >= REACHED, "{passed} sessions agree, {REACHED} did before");
}
