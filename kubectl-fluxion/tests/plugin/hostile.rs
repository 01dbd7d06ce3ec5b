//! Text that users wrote, with everything in it that could move a cursor, paint, begin a line or turn one round, through
//! every renderer, command and screen.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use fluxion_api::Role;
use fluxion_api::reason::NodesLeftOut;
use fluxion_api::{
    CancelAnswer, CancelOutcome, CancelTarget, FluxionAudit, FluxionExplanation, FluxionGraph, FluxionJob,
    FluxionNode, FluxionQueue,
};
use jiff::tz::TimeZone;
use kubectl_fluxion::cancel::Outcome;
use kubectl_fluxion::render::{self, Options, StatusReport};
use kubectl_fluxion::tui::{App, Message, update, view};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::mock::{Mock, failure};
use crate::sample;

/// What a name or message may hold. The style is none that the plugin uses.
const HOSTILE: &str = "\u{1b}[35;7mE\u{1b}]0;t\u{7}\u{9b}2J\r\nFAKE Running\t\u{2028}FAKE\u{202e}\u{2066}\u{200b}\u{feff}\u{e0001}結";

/// Fields that decide which way a renderer takes.
const DECIDING: [&str; 12] = [
    "apiVersion",
    "kind",
    "state",
    "outcome",
    "propagationPolicy",
    "uid",
    "role",
    "resourceVersion",
    "policy",
    "class",
    "message",
    "continue",
];
/// Fields whose keys users name.
const MAPS: [&str; 11] = [
    "request",
    "requests",
    "levels",
    "allocatable",
    "allocated",
    "capacity",
    "free",
    "foreign",
    "reserved",
    "deficit",
    "frees",
];

/// The object with hostile text at the end of every string. With `way`, what decides the renderer's way stays as it
/// is: states, times, quantities.
fn poisoned<T: Serialize + DeserializeOwned>(object: &T, way: bool) -> T {
    let mut value = serde_json::to_value(object).unwrap();
    poison(&mut value, way);
    serde_json::from_value(value).unwrap()
}

fn poison(value: &mut Value, way: bool) {
    match value {
        Value::String(text) => {
            let is_number_or_time = text.starts_with(|c: char| c.is_ascii_digit());
            if !(way && is_number_or_time) {
                text.push_str(HOSTILE);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| poison(item, way)),
        Value::Object(fields) => {
            for (name, field) in fields {
                if DECIDING.contains(&name.as_str())
                    && (way || matches!(name.as_str(), "outcome" | "continue"))
                {
                    continue;
                }
                if let (true, Value::Object(map)) = (MAPS.contains(&name.as_str()), &mut *field) {
                    *map = std::mem::take(map).into_iter().map(|(key, it)| (key + HOSTILE, it)).collect();
                }
                poison(field, way);
            }
        }
        _ => {}
    }
}

/// Nothing in a text acts on the terminal but line feeds and our own styles; nothing forged a line.
#[track_caller]
fn assert_safe(what: &str, text: &str) {
    assert!(!text.contains("\u{1b}[35;7m"), "{what}: {text:?}");
    let plain = anstream::adapter::strip_str(text).to_string();
    let acts = |c: char| c != '\n' && fluxion_text::is_unsafe(c);
    assert!(!plain.contains(acts), "{what}: {plain:?}");
    assert!(!plain.lines().any(|line| line.starts_with("FAKE")), "{what}: {plain}");
}

fn explanation(job: FluxionJob) -> FluxionExplanation {
    FluxionExplanation {
        metadata: job.metadata.clone(),
        job,
        nodes: vec![NodesLeftOut {
            count: 2,
            reason: "full".into(),
            until: Some("2026-03-01T12:45:00Z".into()),
            until_assumed: true,
            ..NodesLeftOut::default()
        }],
        nearest: Some("2 of 4 members fit now".into()),
        suggestions: vec!["ask for 2 members".into()],
        ..FluxionExplanation::default()
    }
}

fn plan() -> CancelAnswer {
    CancelAnswer {
        metadata: sample::reserved().metadata,
        targets: vec![CancelTarget {
            kind: "PodGroup".into(),
            name: "train".into(),
            ..CancelTarget::default()
        }],
        also_deletes: vec!["job/other".into()],
        frees: sample::reserved().status.request,
        starts_next: vec!["job/sweep".into()],
        message: "no".into(),
        api_version: fluxion_api::API_VERSION.into(),
        kind: "CancelAnswer".into(),
        outcome: CancelOutcome::DryRun,
        pods: 4,
    }
}

/// All states a job can be shown in, and one of which everything is hostile.
fn jobs() -> Vec<FluxionJob> {
    let mut jobs: Vec<FluxionJob> = sample::jobs().iter().map(|job| poisoned(job, true)).collect();
    jobs.push(poisoned(&sample::reserved(), false));
    jobs.push(poisoned(&sample::running(), false));
    jobs
}

fn nodes() -> Vec<FluxionNode> {
    let mut node = sample::nodes().remove(0);
    node.status.deficit = node.status.allocated.clone();
    sample::nodes()
        .iter()
        .chain([&node])
        .flat_map(|node| [poisoned(node, true), poisoned(node, false)])
        .collect()
}

fn queues() -> Vec<FluxionQueue> {
    sample::queues().iter().flat_map(|queue| [poisoned(queue, true), poisoned(queue, false)]).collect()
}

fn audit() -> FluxionAudit {
    poisoned(&sample::audit(), true)
}

#[test]
fn no_renderer_lets_it_through() {
    let (jobs, nodes) = (jobs(), nodes());
    let plain = Options::plain(sample::NOW.parse().unwrap());
    for options in [
        plain.clone(),
        Options { wide: true, namespaces: true, ..plain.clone() },
        Options { width: Some(90), ..plain },
    ] {
        assert_safe("jobs", &render::jobs(&jobs, &options));
        assert_eq!(render::jobs(&jobs, &options).lines().count(), jobs.len() + 1);
        assert_safe("queue", &render::queue(&jobs, &options));
        assert_safe("reservations", &render::reservations(&jobs, &options));
        assert_safe("nodes", &render::nodes(&nodes, &options));
        assert_eq!(render::nodes(&nodes, &options).lines().count(), nodes.len() + 1);
        for whole in [true, false] {
            let graph: FluxionGraph = poisoned(&sample::graph(), whole);
            assert_safe("graph", &render::graph(&graph, &options));
        }
        for job in sample::jobs() {
            for way in [true, false] {
                let answer = poisoned(&explanation(job.clone()), way);
                assert_safe("explain", &render::explain(&answer, &options));
            }
        }
        let mut list = sample::list(queues()).metadata;
        list.role = format!("leader{HOSTILE}").into();
        let findings = Some(audit().findings);
        let report = StatusReport::new(&format!("http://{HOSTILE}"), &list, &nodes, queues(), findings);
        assert_safe("status", &render::status(&report, &options));
    }
}

/// A server whose every string is hostile, and its refusals too.
fn server(refuses: bool) -> Mock {
    let answer = move |request: Request| async move {
        let path = request.uri().path().to_owned();
        if refuses {
            return failure(403, "Forbidden", &format!("you may not {HOSTILE}"));
        }
        match path.rsplit('/').next().unwrap() {
            "fluxionjobs" => list(jobs()),
            "fluxionnodes" => list(nodes()),
            "fluxionqueues" => list(queues()),
            "live" if path.contains("graphs") => Json(poisoned(&sample::graph(), true)).into_response(),
            "live" => Json(audit()).into_response(),
            "explain" => Json(poisoned(&explanation(sample::reserved()), true)).into_response(),
            "cancel" => Json(poisoned(&plan(), true)).into_response(),
            "version" => Json(serde_json::json!({"version": HOSTILE})).into_response(),
            _ => Json(poisoned(&sample::reserved(), true)).into_response(),
        }
    };
    Mock::serve(Router::new().fallback(answer))
}

fn list<T: Serialize>(items: Vec<T>) -> Response {
    Json(sample::list(items)).into_response()
}

#[test]
fn no_command_lets_it_through() {
    let commands: [&[&str]; 10] = [
        &["status"],
        &["queue", "-A"],
        &["jobs", "-A"],
        &["nodes"],
        &["reservations", "-A"],
        &["graph"],
        &["explain", "default/podgroup/train"],
        &["cancel", "default/podgroup/train", "--with-others", "--dry-run"],
        &["cancel", "default/podgroup/train", "-y"],
        &["version"],
    ];
    for refuses in [false, true] {
        let mock = server(refuses);
        for command in commands {
            for format in ["", "wide", "name", "json", "yaml"] {
                let takes_format = !matches!(command[0], "cancel" | "version");
                if !format.is_empty() && !takes_format {
                    continue;
                }
                let mut words = command.to_vec();
                if !format.is_empty() {
                    words.extend(["-o", format]);
                }
                let ran = mock.run(&words);
                let what = format!("{words:?} ended with {}", ran.code);
                assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'), "{what}");
                assert_safe(&what, &ran.out);
                assert_safe(&what, &ran.err);
                assert!(!refuses || ran.err.lines().count() <= 1, "{what}: {}", ran.err);
            }
        }
    }
}

#[test]
fn documents_keep_it_as_it_was() {
    let mock = server(false);
    let name = |list: &Value| list["items"][0]["spec"]["group"]["name"].as_str().unwrap().to_owned();
    let json: Value = serde_json::from_str(&mock.run(&["jobs", "-A", "-o", "json"]).out).unwrap();
    let yaml: Value = serde_saphyr::from_str(&mock.run(&["jobs", "-A", "-o", "yaml"]).out).unwrap();
    assert_eq!(name(&json), format!("lammps{HOSTILE}"));
    assert_eq!(json, yaml);
}

#[test]
fn no_screen_lets_it_through() {
    let pressed = |code| Message::Key(KeyEvent::new(code, KeyModifiers::NONE));
    for (width, height) in [(40, 10), (80, 36), (160, 50)] {
        let mut app = App::new(&format!("http://{HOSTILE}"), sample::NOW.parse().unwrap(), TimeZone::UTC);
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let answer = poisoned(&explanation(sample::reserved()), true);
        let job = poisoned(&sample::reserved(), true);
        let key = (job.metadata.namespace.clone().unwrap(), job.metadata.name.clone());
        let why = format!("no {HOSTILE}");
        let mut messages = vec![
            Message::Server(format!("http://{HOSTILE}")),
            Message::AllJobs(jobs(), Role::Unknown(HOSTILE.to_owned())),
            Message::AllNodes(nodes()),
            Message::Overview(queues(), Some(audit().findings)),
            Message::Explained(1, key, Box::new(answer)),
            pressed(KeyCode::Enter),
            pressed(KeyCode::Esc),
            pressed(KeyCode::Char('c')),
            Message::Planned(2, Box::new(job), Ok(Box::new(poisoned(&plan(), true)))),
            pressed(KeyCode::Char('y')),
            Message::Cancelled(format!("job/{HOSTILE}"), Outcome::Refused(why.clone())),
            pressed(KeyCode::Char('/')),
        ];
        messages.extend(HOSTILE.chars().map(|c| pressed(KeyCode::Char(c))));
        messages.extend([KeyCode::Enter, KeyCode::Esc, KeyCode::BackTab, KeyCode::Enter].map(pressed));
        messages.push(Message::Lost(
            kubectl_fluxion::tui::Source::Jobs,
            fluxion_api::client::Error::Unreachable { server: HOSTILE.to_owned(), why },
        ));
        for message in messages {
            let what = format!("{message:?}");
            update(&mut app, message);
            terminal.draw(|frame| view(frame, &mut app)).unwrap();
            for cell in &terminal.backend().buffer().content {
                assert!(!cell.symbol().contains(fluxion_text::is_unsafe), "{what}: {:?}", cell.symbol());
            }
        }
    }
}
