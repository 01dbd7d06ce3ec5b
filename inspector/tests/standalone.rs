//! Standalone mode as a user runs it: a process, a state folder, and questions to its API.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use fluxion_api::client::{Call, Client, Direct, Method, Selection, Transport};
use fluxion_api::server_file::ServerFile;
use fluxion_api::{FluxionJob, JobState};
use futures::TryStreamExt as _;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_mins(1);

/// A server process; killed when dropped.
struct Server {
    process: Child,
    state: PathBuf,
}

impl Server {
    fn start(state: &Path, arguments: &[&str]) -> Self {
        // Left by a killed one: not to be taken for the new one's.
        let _ = fs::remove_file(state.join("server.json"));
        let process =
            command(state).args(["standalone"]).args(arguments).stderr(Stdio::null()).spawn().unwrap();
        Self { process, state: state.to_owned() }
    }

    async fn client(&mut self) -> Client {
        Client::new(self.transport().await, PATIENCE)
    }

    async fn transport(&mut self) -> Direct {
        let file = self.state.join("server.json");
        let began = Instant::now();
        let reached: ServerFile = loop {
            if let Some(reached) = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok()) {
                break reached;
            }
            assert!(self.process.try_wait().unwrap().is_none(), "the server ended");
            assert!(began.elapsed() < PATIENCE, "the server does not come up");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        Direct::new(&reached.url, Some(reached.token), None).unwrap()
    }

    /// As `kill -9` does.
    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn command(state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fluxion-inspector"));
    command.env("XDG_STATE_HOME", state.parent().unwrap()).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

fn example(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(path).display().to_string()
}

/// A folder whose child `fluxion` is the default state folder.
fn state() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join("fluxion");
    (home, state)
}

async fn jobs(client: &Client) -> Vec<FluxionJob> {
    match client.list::<FluxionJob>(&Selection::default()).await {
        Ok(list) => list.items,
        // Not ready yet.
        Err(_) => Vec::new(),
    }
}

/// Waits until the job fits.
async fn job_that(client: &Client, name: &str, what: impl Fn(&FluxionJob) -> bool) -> FluxionJob {
    let began = Instant::now();
    loop {
        let all = jobs(client).await;
        let found = all.iter().find(|job| job.metadata.name == name);
        if let Some(job) = found.filter(|job| what(job)) {
            return job.clone();
        }
        assert!(began.elapsed() < PATIENCE, "{name} is {:?}", found.map(|job| &job.status));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn manifest(folder: &Path, name: &str, pods: u32, run_time: u32) -> String {
    let path = folder.join(format!("{name}.yaml"));
    let text = format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations:\n    \
         fluxion.flux-framework.org/gang: 'true'\n    fluxion.flux-framework.org/run-time: {run_time}s\n\
         spec:\n  parallelism: {pods}\n  completions: {pods}\n  template:\n    spec:\n      \
         activeDeadlineSeconds: 600\n      containers:\n      - name: c\n        resources: {{requests: {{cpu: 7}}}}\n",
    );
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn text(output: &Output) -> (String, String) {
    let read = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (read(&output.stdout), read(&output.stderr))
}

#[test]
fn a_try_shows_the_examples_and_leaves_nothing() {
    let (_home, state) = state();
    let output = command(&state).output().unwrap();
    let (out, err) = text(&output);
    assert!(output.status.success(), "{err}");
    for wanted in [
        "job/weather",
        "Reserved",
        "pod/too-big",
        "Unsatisfiable",
        "podgroup.scheduling.x-k8s.io/evaluate",
        "3/4",
    ] {
        assert!(out.contains(wanted), "no {wanted} in:\n{out}");
    }
    let left: Vec<_> = fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"]);
}

#[tokio::test]
async fn a_killed_server_goes_on_where_it_was() {
    let (home, state) = state();
    let cluster = example("clusters/small.yaml");
    let (wide, next) = (manifest(home.path(), "a-wide", 4, 25), manifest(home.path(), "b-next", 4, 2));
    let arguments = ["--cluster", &cluster, "--jobs", &wide, "--jobs", &next];
    let mut server = Server::start(&state, &arguments);
    let before =
        job_that(&server.client().await, "job.a-wide", |job| job.status.state == JobState::Running).await;
    server.kill();

    // Killed in the midst of things a few times more, at different moments.
    for millis in [0, 30, 150, 600] {
        let mut server = Server::start(&state, &arguments);
        let _ = server.client().await;
        tokio::time::sleep(Duration::from_millis(millis)).await;
        server.kill();
    }

    let mut server = Server::start(&state, &arguments);
    let client = server.client().await;
    let after = job_that(&client, "job.a-wide", |_| true).await;
    assert_eq!(after.metadata.uid, before.metadata.uid);
    assert_eq!(after.status.started_at, before.status.started_at);
    assert_eq!(after.status.planned_end, before.status.planned_end);
    let ended = job_that(&client, "job.a-wide", |job| job.status.state == JobState::Completed).await;
    assert_eq!(ended.status.members.ended, 4);
    let next = job_that(&client, "job.b-next", |job| job.status.state == JobState::Completed).await;
    assert!(next.status.started_at >= ended.status.ended_at, "{next:?} overlaps {ended:?}");
    // Handed in by every one of the starts, run once.
    let all: Vec<String> = jobs(&client).await.into_iter().map(|job| job.metadata.name).collect();
    assert_eq!(all, ["job.a-wide", "job.b-next"]);
}

/// `late` has been promised its start before `early`, which is older, was whole: planned from nothing, `early` would start
/// first.
#[tokio::test]
async fn a_promised_start_survives_a_kill() {
    let (home, state) = state();
    let nodes = home.path().join("nodes.yaml");
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 4, pods: 9}, \
                conditions: [{type: Ready, status: 'True'}]}\n";
    fs::write(&nodes, node).unwrap();
    let config = home.path().join("config.yaml");
    fs::write(&config, "queues: [{name: default, policy: conservative}]\n").unwrap();
    let (nodes, config) = (nodes.display().to_string(), config.display().to_string());
    let arguments = ["--cluster", &*nodes, "--config", &*config];
    let mut server = Server::start(&state, &arguments);
    let (client, transport) = (server.client().await, server.transport().await);
    let submit = async |name: &str, cpu: u32, seconds: u32, labels: &str| {
        let call = Call {
            method: Method::Post,
            path: "/apis/fluxion.flux-framework.org/v1alpha1/namespaces/default/fluxionjobs".to_owned(),
            body: format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{{labels}}}}}\nspec: \
                 {{activeDeadlineSeconds: {seconds}, containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}\n"
            )
            .into_bytes(),
        };
        assert_eq!(transport.send(call).await.unwrap().status, 201, "{name}");
    };
    let reserved = |job: &FluxionJob| job.status.state == JobState::Reserved;
    let early = "fluxion.flux-framework.org/group: early, fluxion.flux-framework.org/group-size: '2'";
    submit("runs", 4, 3600, "").await;
    job_that(&client, "pod.runs", |job| job.status.members.bound == 1).await;
    submit("early-0", 2, 300, early).await;
    // It is older than what is submitted in the next second.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    submit("late", 4, 600, "").await;
    let late = job_that(&client, "pod.late", reserved).await.status.reservation.unwrap();
    submit("early-1", 2, 300, early).await;
    let planned = job_that(&client, "group.early", reserved).await.status.reservation.unwrap();
    assert_eq!(
        Some(&planned.start),
        late.end.as_ref(),
        "it is planned behind the one that was promised first"
    );
    // What was decided before this is accepted is stored with it.
    submit("last", 9, 1, "").await;
    server.kill();

    let mut server = Server::start(&state, &arguments);
    let client = server.client().await;
    for (name, before) in [("pod.late", &late), ("group.early", &planned)] {
        let after = job_that(&client, name, reserved).await.status.reservation;
        assert_eq!(after.as_ref(), Some(before), "{name}");
    }
}

#[tokio::test]
async fn a_restart_leaves_the_past_as_it_was() {
    let (home, state) = state();
    let cluster = example("clusters/small.yaml");
    let killed = home.path().join("killed.yaml");
    let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: killed\n  annotations: \
               {fluxion.flux-framework.org/run-time: 1h}\nspec:\n  activeDeadlineSeconds: 1\n  containers:\n  - \
               {name: c, resources: {requests: {cpu: 1}}}\n";
    fs::write(&killed, pod).unwrap();
    let arguments = [manifest(home.path(), "done", 2, 1), manifest(home.path(), "cut", 2, 600)];
    let arguments: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .chain([killed.to_str().unwrap()])
        .flat_map(|job| ["--jobs", job])
        .collect();
    let arguments = [&["--cluster", &cluster], &arguments[..]].concat();
    let mut server = Server::start(&state, &arguments);
    let (client, transport) = (server.client().await, server.transport().await);
    job_that(&client, "job.cut", |job| job.status.state == JobState::Running).await;
    let path =
        "/apis/fluxion.flux-framework.org/v1alpha1/namespaces/default/fluxionjobs/job.cut/cancel".to_owned();
    let call = Call { method: Method::Post, path, body: Vec::new() };
    assert_eq!(transport.send(call).await.unwrap().status, 200);
    for name in ["job.done", "job.cut", "pod.killed"] {
        job_that(&client, name, FluxionJob::has_ended).await;
    }
    // What is told of jobs is written right after.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let told = |jobs: Vec<FluxionJob>| -> Vec<Value> {
        let told = |job: FluxionJob| json!({"spec": job.spec, "status": job.status, "uid": job.metadata.uid});
        jobs.into_iter().map(told).collect()
    };
    let before = told(jobs(&client).await);
    assert_eq!(before.len(), 3);
    let [cut, done, killed] = &before[..] else { panic!("{before:?}") };
    assert_eq!(cut["status"]["reason"]["class"], "Cancelled");
    assert!(cut["status"]["reason"]["text"].as_str().unwrap().starts_with("cancelled by "), "{cut}");
    assert_eq!(done["status"]["members"]["bound"], 2);
    assert_eq!(killed["status"]["reason"]["class"], "DeadlineExceeded");
    assert_eq!(
        (&killed["status"]["exit"]["reason"], &killed["spec"]["durationSeconds"]),
        (&json!("DeadlineExceeded"), &json!(1))
    );
    for job in &before {
        assert_eq!(job["status"]["allocation"]["nodes"].as_array().map(Vec::is_empty), Some(false), "{job}");
    }
    server.kill();

    tokio::time::sleep(Duration::from_millis(1500)).await;
    let mut server = Server::start(&state, &arguments);
    let client = server.client().await;
    job_that(&client, "job.done", |_| true).await;
    assert_eq!(told(jobs(&client).await), before);
}

#[tokio::test]
async fn manifests_are_taken_in_while_it_runs() {
    let (_home, state) = state();
    let mut server = Server::start(&state, &[]);
    let (client, transport) = (server.client().await, server.transport().await);
    job_that(&client, "podgroup.scheduling.x-k8s.io.evaluate", |job| job.status.state == JobState::Gathering)
        .await;
    let api = "/apis/fluxion.flux-framework.org/v1alpha1";
    let discovery = Call { method: Method::Get, path: api.to_owned(), body: Vec::new() };
    let chunks: Vec<_> = transport.send(discovery).await.unwrap().body.try_collect().await.unwrap();
    let resources: Value = serde_json::from_slice(&chunks.concat()).unwrap();
    assert_eq!(resources["resources"][0]["verbs"], json!(["create", "get", "list", "watch"]));
    let body = fs::read(example("late-member.yaml")).unwrap();
    let path = format!("{api}/namespaces/default/fluxionjobs");
    let call = Call { method: Method::Post, path, body };
    assert_eq!(transport.send(call.clone()).await.unwrap().status, 201);
    assert_eq!(transport.send(call.clone()).await.unwrap().status, 409, "it is there already");
    job_that(&client, "podgroup.scheduling.x-k8s.io.evaluate", |job| job.status.state == JobState::Running)
        .await;
    let call = Call { body: b"kind: Pod".to_vec(), ..call };
    assert_eq!(transport.send(call).await.unwrap().status, 400);
}

#[tokio::test]
async fn one_folder_has_one_server() {
    let (_home, state) = state();
    let mut server = Server::start(&state, &[]);
    let _ = server.client().await;
    let output = command(&state).args(["standalone"]).output().unwrap();
    let (_, err) = text(&output);
    assert!(!output.status.success());
    let wanted = format!("another inspector (process {}) is using this state directory", server.process.id());
    assert!(err.contains(&wanted), "{err}");
    // Nor may another folder's take its port; where it is announced, it is named.
    let reached: ServerFile = serde_json::from_slice(&fs::read(state.join("server.json")).unwrap()).unwrap();
    let address = reached.url.strip_prefix("http://").unwrap();
    let other = tempfile::tempdir().unwrap();
    let arguments = ["standalone", "--listen", address, "--state-dir", other.path().to_str().unwrap()];
    let (_, err) = text(&command(&state).args(arguments).output().unwrap());
    let wanted =
        format!("{address} is already in use by another inspector (process {})", server.process.id());
    assert!(err.contains(&wanted) && err.contains("--listen"), "{err}");
}

#[cfg(debug_assertions)]
#[tokio::test]
async fn a_panic_and_a_hang_of_its_parts_end_it_with_an_error() {
    let cases = [
        ("engine=panic", "error: the engine panicked: planted"),
        ("engine=hang", "error: the engine has not responded for "),
        ("keeper=panic", "planted at failpoint keeper"),
    ];
    for (fault, wanted) in cases {
        let (home, state) = state();
        let trigger = home.path().join("now");
        let mut command = command(&state);
        command.env("FLUXION_FAILPOINTS", format!("{fault}:{}", trigger.display()));
        command.args(["standalone", "--step-limit", "2"]).stderr(Stdio::piped());
        let mut server = Server { process: command.spawn().unwrap(), state };
        let _ = server.client().await;
        fs::write(&trigger, "").unwrap();
        let began = Instant::now();
        let status = loop {
            if let Some(status) = server.process.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "{fault}: it goes on");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let mut told = String::new();
        std::io::Read::read_to_string(&mut server.process.stderr.take().unwrap(), &mut told).unwrap();
        assert!(!status.success() && told.contains(wanted), "{fault}: {status}: {told}");
    }
}

#[test]
fn what_is_wrong_is_said_before_anything_begins() {
    let (home, state) = state();
    let bad = home.path().join("bad.yaml");
    fs::write(&bad, "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: 3}\n").unwrap();
    let unknown = home.path().join("config.yaml");
    fs::write(&unknown, "queues:\n- name: a\n  polcy: easy\n").unwrap();
    let (bad, unknown) = (bad.display().to_string(), unknown.display().to_string());
    let jobs = example("gang.yaml");
    let cases: [(&[&str], &[&str]); 6] = [
        (&["--jobs", &bad], &["bad.yaml, document 1 (Pod/p)", "spec.containers"]),
        (&["--cluster", &jobs], &["gang.yaml", "contains no Nodes"]),
        (&["--cluster", "/nowhere.yaml"], &["/nowhere.yaml", "No such file"]),
        (&["--config", &unknown], &["config.yaml, line 3", "polcy", "queueDepth"]),
        (&["--listen", "0.0.0.0:0"], &["127.0.0.1"]),
        (&["--speed", "0"], &["must be between 1 and 1000"]),
    ];
    for (arguments, wanted) in cases {
        let output = command(&state).arg("standalone").args(arguments).output().unwrap();
        let (_, err) = text(&output);
        assert!(!output.status.success(), "{arguments:?}");
        for part in wanted {
            assert!(err.contains(part), "{arguments:?} says {err:?} without {part:?}");
        }
        assert!(!err.contains("panicked"), "{err}");
    }
    // In a folder of its own: beside the log of an earlier database, SQLite would repair it.
    let (_own, state) = self::state();
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("state.db"), "no database at all ".repeat(500)).unwrap();
    let output = command(&state).arg("standalone").output().unwrap();
    let (_, err) = text(&output);
    assert!(!output.status.success());
    assert!(err.contains("state.db") && err.contains("--state-dir"), "{err}");
}

/// A Pod with these resources, as a file of manifests.
fn pod_with(folder: &Path, name: &str, resources: &str) -> String {
    let path = folder.join(format!("{name}.yaml"));
    let text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  containers:\n  - name: c\n    \
         image: pause\n    resources: {resources}\n"
    );
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn what_an_api_server_refuses_is_refused_with_its_field() {
    let (home, state) = state();
    let cluster = example("clusters/small.yaml");
    let refused = |arguments: &[&str], wanted: &str| {
        let output = command(&state).arg("standalone").args(arguments).output().unwrap();
        let (_, err) = text(&output);
        assert!(!output.status.success(), "{wanted}");
        assert!(err.contains(wanted), "{err}\nwant {wanted}");
    };
    let container = "spec.containers[0].resources";
    for (resources, wanted) in [
        (
            "{limits: {nvidia.com/gpu: '0.5'}}",
            "limits[nvidia.com/gpu]: Invalid value: \"500m\": must be an integer",
        ),
        (
            "{requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}",
            "requests: Invalid value: \"1\": must be equal to nvidia.com/gpu limit of 2",
        ),
        (
            "{requests: {cpu: 2}, limits: {cpu: 1}}",
            "requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
        ),
        (
            "{requests: {nvidia.com/gpu: 1, cpu: 1}}",
            "limits: Required value: Limit must be set for non overcommitable resources",
        ),
    ] {
        let file = pod_with(home.path(), "bad", resources);
        let wanted = format!(
            "Pod default/bad is invalid: {}{container}.{wanted}",
            if resources.contains("0.5") { "[" } else { "" }
        );
        refused(&["--cluster", &cluster, "--jobs", &file], &wanted);
    }
    // What comes later is looked at now.
    let later = home.path().join("later.yaml");
    let annotations = "{fluxion.flux-framework.org/submit-at: 1h}";
    fs::write(&later, format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p, annotations: {annotations}}}\nspec: {{containers: [{{name: C}}]}}\n")).unwrap();
    refused(
        &["--cluster", &cluster, "--jobs", &later.display().to_string()],
        "spec.containers[0].name: Invalid value: \"C\"",
    );
    let node = |gpus: &str| {
        let path = home.path().join("nodes.yaml");
        fs::write(&path, format!("apiVersion: v1\nkind: Node\nmetadata: {{name: n1}}\nstatus: {{allocatable: {{nvidia.com/gpu: {gpus}}}}}\n")).unwrap();
        path.display().to_string()
    };
    let wanted = "nodes.yaml: Node n1 is invalid: status.allocatable.nvidia.com/gpu: Invalid value: \"1500m\": must be an integer";
    refused(&["--cluster", &node("1.5")], wanted);
}

#[tokio::test]
async fn whole_numbers_are_whole_however_they_are_written_and_known_nodes_are_checked_too() {
    let (home, state) = state();
    let nodes = home.path().join("nodes.yaml");
    let write = |gpus: &str| {
        fs::write(
            &nodes,
            format!(
                "apiVersion: v1\nkind: Node\nmetadata: {{name: g1}}\nstatus:\n  allocatable: {{cpu: 16, memory: 32Gi, \
                 pods: 20, nvidia.com/gpu: {gpus}}}\n  conditions: [{{type: Ready, status: 'True'}}]\n"
            ),
        )
        .unwrap();
    };
    write("8");
    let files: Vec<String> = [("one", "'2.0'"), ("two", "2000m"), ("three", "1e0")]
        .map(|(name, gpus)| pod_with(home.path(), name, &format!("{{limits: {{nvidia.com/gpu: {gpus}}}}}")))
        .into();
    let nodes = nodes.display().to_string();
    let arguments = ["--cluster", &nodes, "--jobs", &files[0], "--jobs", &files[1], "--jobs", &files[2]];
    let mut server = Server::start(&state, &arguments);
    let client = server.client().await;
    for (name, gpus) in [("pod.one", "2"), ("pod.two", "2"), ("pod.three", "1")] {
        let job = job_that(&client, name, |job| job.status.state == JobState::Running).await;
        assert_eq!(job.status.request.get("nvidia.com/gpu").map(String::as_str), Some(gpus), "{name}");
    }
    server.kill();
    write("'0.5'");
    let output = command(&state).args(["standalone", "--cluster", &nodes]).output().unwrap();
    assert!(text(&output).1.contains("Node g1 is invalid: status.allocatable.nvidia.com/gpu"), "{output:?}");
}

/// A small file system in memory; unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(dir.path()).output();
        let mount = mount.expect("mount is installed");
        let why = String::from_utf8_lossy(&mount.stderr);
        assert!(mount.status.success(), "this test mounts a tmpfs, which requires root: {why}");
        Self(dir)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

/// Nothing is acknowledged that is not on disk.
#[tokio::test]
async fn on_a_full_disk_a_submission_is_refused_and_what_was_accepted_is_not_lost() {
    let disk = SmallDisk::mount();
    let state = disk.0.path().join("fluxion");
    let nodes = example("clusters/small.yaml");
    let arguments = ["--cluster", &*nodes, "--jobs", &*example("gang.yaml")];
    let mut server = Server::start(&state, &arguments);
    let transport = server.transport().await;
    let submit = |name: String| Call {
        method: Method::Post,
        path: "/apis/fluxion.flux-framework.org/v1alpha1/namespaces/default/fluxionjobs".to_owned(),
        body: format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, annotations: {{x: {}}}}}\n\
             spec: {{containers: [{{name: c, resources: {{requests: {{cpu: 99}}}}}}]}}\n",
            "y".repeat(20_000)
        )
        .into_bytes(),
    };
    assert_eq!(transport.send(submit("accepted".to_owned())).await.unwrap().status, 201);
    let ballast = disk.0.path().join("ballast");
    let full = fs::write(&ballast, vec![7; 16 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    let mut refused = None;
    for number in 0..1_000 {
        match transport.send(submit(format!("more-{number}"))).await {
            Ok(answer) if answer.status == 201 => {}
            other => {
                refused = Some((number, other.map(|answer| answer.status)));
                break;
            }
        }
    }
    let (accepted, status) = refused.expect("the disk is full");
    assert!(status.is_err() || status.as_ref().is_ok_and(|status| *status >= 500), "{status:?}");
    let began = Instant::now();
    let ended = loop {
        if let Some(ended) = server.process.try_wait().unwrap() {
            break ended;
        }
        assert!(began.elapsed() < PATIENCE, "the server goes on without its state");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(ended.code(), Some(1));

    fs::remove_file(&ballast).unwrap();
    let mut again = Server::start(&state, &arguments);
    let client = again.client().await;
    job_that(&client, "pod.accepted", |_| true).await;
    let there = jobs(&client).await;
    let there = there.iter().filter(|job| job.metadata.name.starts_with("pod.more-")).count();
    assert_eq!(there, accepted, "what was accepted, and nothing else");
}
