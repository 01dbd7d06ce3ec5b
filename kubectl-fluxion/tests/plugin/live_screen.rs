//! Keys pressed on the live screen, and the pictures that come of it.

use std::sync::{Arc, Mutex};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use fluxion_api::client::Error;
use fluxion_api::{CancelAnswer, CancelOutcome, CancelTarget, FluxionExplanation, FluxionJob, ListMeta};
use futures::stream;
use jiff::tz::TimeZone;
use kubectl_fluxion::cancel::Outcome;
use kubectl_fluxion::tui::{App, Effect, Message, Outside, Source, run_loop, update, view};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::sample;

struct Screen {
    app: App,
    terminal: Terminal<TestBackend>,
}

impl Screen {
    fn empty(width: u16, height: u16) -> Self {
        let app = App::new("http://127.0.0.1:8080", sample::NOW.parse().unwrap(), TimeZone::UTC);
        Self { app, terminal: Terminal::new(TestBackend::new(width, height)).unwrap() }
    }

    fn sample(width: u16, height: u16) -> Self {
        let mut screen = Self::empty(width, height);
        screen.send(Message::AllJobs(sample::jobs(), "standalone".into()));
        screen.send(Message::AllNodes(sample::nodes()));
        screen.send(Message::Overview(sample::queues(), Some(sample::audit().findings)));
        screen
    }

    fn send(&mut self, message: Message) -> Option<Effect> {
        let effect = update(&mut self.app, message);
        self.terminal.draw(|frame| view(frame, &mut self.app)).unwrap();
        effect
    }

    fn press(&mut self, code: KeyCode) -> Option<Effect> {
        self.send(Message::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    fn type_in(&mut self, text: &str) {
        for letter in text.chars() {
            self.press(KeyCode::Char(letter));
        }
    }

    fn picture(&self) -> String {
        self.terminal.backend().to_string()
    }
}

fn answer() -> CancelAnswer {
    CancelAnswer {
        api_version: fluxion_api::API_VERSION.into(),
        kind: "CancelAnswer".into(),
        metadata: sample::reserved().metadata,
        outcome: CancelOutcome::DryRun,
        message: String::new(),
        targets: vec![CancelTarget {
            api_version: "scheduling.k8s.io/v1beta1".into(),
            kind: "PodGroup".into(),
            name: "train".into(),
            ..CancelTarget::default()
        }],
        also_deletes: Vec::new(),
        frees: sample::reserved().status.request,
        starts_next: vec!["job/sweep".into()],
        pods: 4,
    }
}

#[test]
fn all_panes_side_by_side() {
    insta::assert_snapshot!(Screen::sample(140, 30).picture());
}

#[test]
fn panes_below_each_other() {
    insta::assert_snapshot!(Screen::sample(80, 36).picture());
}

#[test]
fn a_small_terminal_shows_the_focused_pane() {
    let mut screen = Screen::sample(40, 10);
    insta::assert_snapshot!("small_queue", screen.picture());
    screen.press(KeyCode::BackTab);
    insta::assert_snapshot!("small_nodes", screen.picture());
}

#[test]
fn no_size_and_no_key_breaks_it() {
    let keys = [
        KeyCode::Down,
        KeyCode::Up,
        KeyCode::Tab,
        KeyCode::Enter,
        KeyCode::Char('G'),
        KeyCode::Esc,
        KeyCode::Char('?'),
        KeyCode::Char('x'),
        KeyCode::Char('c'),
        KeyCode::Char('n'),
        KeyCode::Char('/'),
        KeyCode::Char('é'),
        KeyCode::Backspace,
        KeyCode::Enter,
        KeyCode::Char('s'),
        KeyCode::Char('a'),
        KeyCode::PageDown,
        KeyCode::Home,
    ];
    for (width, height) in [(1, 1), (2, 3), (10, 4), (40, 10), (109, 19), (110, 20), (300, 100)] {
        for mut screen in [Screen::empty(width, height), Screen::sample(width, height)] {
            for key in keys.into_iter().cycle().take(100) {
                screen.press(key);
                screen.send(Message::Planned(1, Box::new(sample::reserved()), Ok(Box::new(answer()))));
            }
        }
    }
}

#[test]
fn nothing_is_known_at_first() {
    let mut screen = Screen::empty(80, 24);
    screen.send(Message::Tick(sample::NOW.parse().unwrap()));
    insta::assert_snapshot!(screen.picture());
}

#[test]
fn enter_shows_all_about_a_job() {
    let mut screen = Screen::sample(90, 28);
    let effect = screen.press(KeyCode::Enter);
    assert_eq!(effect, Some(Effect::Explain(1, ("default".into(), "podgroup.train".into()))));
    let explanation = FluxionExplanation {
        job: sample::reserved(),
        nearest: Some("2 of 4 members fit now".into()),
        ..FluxionExplanation::default()
    };
    screen.send(Message::Explained(1, ("default".into(), "podgroup.train".into()), Box::new(explanation)));
    insta::assert_snapshot!(screen.picture());
    screen.press(KeyCode::Esc);
    assert!(screen.picture().contains("Planned starts"));
}

#[test]
fn enter_shows_the_books_of_a_node() {
    let mut screen = Screen::sample(90, 20);
    screen.press(KeyCode::BackTab);
    assert_eq!(screen.press(KeyCode::Enter), None);
    insta::assert_snapshot!(screen.picture());
}

#[test]
fn a_filter_is_typed_and_cleared() {
    let mut screen = Screen::sample(80, 10);
    screen.press(KeyCode::Char('/'));
    screen.type_in("swq");
    screen.press(KeyCode::Backspace);
    assert!(screen.picture().contains("filter: sw▏"));
    screen.press(KeyCode::Enter);
    let picture = screen.picture();
    assert!(picture.contains("job/sweep") && !picture.contains("podgroup/train"), "{picture}");
    // Keys are keys again, and q would quit.
    assert!(picture.contains("filter 'sw'"));
    screen.press(KeyCode::Esc);
    assert!(screen.picture().contains("podgroup/train"));
}

#[test]
fn the_order_of_the_queue_and_what_it_shows_can_be_changed() {
    let mut screen = Screen::sample(80, 12);
    screen.press(KeyCode::Char('s'));
    let picture = screen.picture();
    assert!(picture.contains("by name"), "{picture}");
    assert!(picture.find("pod/huge") < picture.find("podgroup/train"), "{picture}");
    screen.press(KeyCode::Char('a'));
    let picture = screen.picture();
    assert!(picture.contains("Running: 1") && picture.contains("job/lammps"), "{picture}");
    screen.press(KeyCode::Char('a'));
    assert!(screen.picture().contains("All jobs: 7"));
}

#[test]
fn a_cancel_is_asked_for_and_confirmed() {
    let mut screen = Screen::sample(80, 24);
    let Some(Effect::Plan(question, job)) = screen.press(KeyCode::Char('c')) else {
        panic!("nothing was asked")
    };
    assert_eq!(job.metadata.name, "podgroup.train");
    screen.send(Message::Planned(question, job, Ok(Box::new(answer()))));
    insta::assert_snapshot!("confirm", screen.picture());
    assert_eq!(screen.press(KeyCode::Enter), None, "only y is a yes");
    let Some(Effect::Cancel(job, _)) = screen.press(KeyCode::Char('y')) else { panic!("not cancelled") };
    screen.send(Message::Cancelled(job.reference().to_string(), Outcome::Cancelled));
    assert!(screen.picture().contains("default/podgroup/train cancelled"));
}

#[test]
fn a_cancel_can_be_called_off_and_refused() {
    let mut screen = Screen::sample(100, 24);
    let Some(Effect::Plan(question, job)) = screen.press(KeyCode::Char('c')) else {
        panic!("nothing was asked")
    };
    screen.send(Message::Planned(question, job.clone(), Ok(Box::new(answer()))));
    assert_eq!(screen.press(KeyCode::Char('n')), None);
    assert!(screen.picture().contains("not cancelled"));
    let Some(Effect::Plan(question, _)) = screen.press(KeyCode::Char('c')) else {
        panic!("nothing was asked")
    };
    screen.send(Message::Planned(
        question,
        job.clone(),
        Err(Outcome::Forbidden("jane may not delete jobs".into())),
    ));
    assert!(screen.picture().contains("default/podgroup/train forbidden: jane may not delete jobs"));
    screen.press(KeyCode::Char('c'));
    screen.press(KeyCode::Esc);
    screen.send(Message::Planned(question, job, Ok(Box::new(answer()))));
    assert!(!screen.picture().contains("y cancel the job"), "an answer that nobody waits for asks nothing");
}

#[test]
fn a_late_answer_is_not_taken_for_the_answer_to_another_question() {
    let mut screen = Screen::sample(100, 24);
    let Some(Effect::Plan(first, train)) = screen.press(KeyCode::Char('c')) else {
        panic!("nothing was asked")
    };
    screen.press(KeyCode::Esc);
    screen.press(KeyCode::Down);
    let Some(Effect::Plan(second, sweep)) = screen.press(KeyCode::Char('c')) else {
        panic!("nothing was asked")
    };
    assert_eq!((&*train.metadata.name, &*sweep.metadata.name), ("podgroup.train", "job.sweep"));
    for late in [Ok(Box::new(answer())), Err(Outcome::AlreadyEnded)] {
        screen.send(Message::Planned(first, train.clone(), late));
        let picture = screen.picture();
        assert!(picture.contains("checking what cancelling default/job/sweep would delete"), "{picture}");
        assert!(!picture.contains("Cancel default/podgroup/train?"), "{picture}");
    }
    assert_eq!(screen.press(KeyCode::Char('y')), None, "nothing was confirmed");
    let Some(Effect::Plan(third, _)) = screen.press(KeyCode::Char('c')) else { panic!("nothing was asked") };
    screen.send(Message::Planned(second, sweep.clone(), Ok(Box::new(answer()))));
    assert!(!screen.picture().contains("y cancel the job"), "an older answer about the same job is as late");
    screen.send(Message::Planned(third, sweep, Ok(Box::new(answer()))));
    let Some(Effect::Cancel(job, _)) = screen.press(KeyCode::Char('y')) else { panic!("not cancelled") };
    assert_eq!(job.metadata.name, "job.sweep");
}

#[test]
fn a_late_explanation_replaces_no_newer_one() {
    let explained = |job: FluxionJob, nearest: &str| {
        let key = (job.metadata.namespace.clone().unwrap(), job.metadata.name.clone());
        let answer =
            FluxionExplanation { job, nearest: Some(nearest.into()), ..FluxionExplanation::default() };
        (key, Box::new(answer))
    };
    let mut screen = Screen::sample(100, 40);
    let Some(Effect::Explain(first, _)) = screen.press(KeyCode::Enter) else { panic!("nothing was asked") };
    screen.press(KeyCode::Esc);
    screen.press(KeyCode::Down);
    let Some(Effect::Explain(second, key)) = screen.press(KeyCode::Enter) else {
        panic!("nothing was asked")
    };
    assert_eq!(key.1, "job.sweep");
    let sweep = sample::jobs().into_iter().find(|job| job.metadata.name == "job.sweep").unwrap();
    let (key, answer) = explained(sweep.clone(), "the right one");
    screen.send(Message::Explained(second, key, answer));
    let (key, answer) = explained(sample::reserved(), "a late one");
    screen.send(Message::Explained(first, key, answer));
    assert!(screen.picture().contains("the right one"), "{}", screen.picture());
    // A job that was made anew under the same name is another job.
    let mut again = sweep;
    again.metadata.uid = "another".into();
    screen.send(Message::Job(Box::new(again)));
    assert!(!screen.picture().contains("the right one"), "{}", screen.picture());
}

#[test]
fn what_is_read_about_is_what_is_cancelled() {
    let mut screen = Screen::sample(100, 24);
    screen.press(KeyCode::Enter);
    screen.send(Message::JobGone(("default".into(), "podgroup.train".into())));
    assert_eq!(screen.press(KeyCode::Char('c')), None, "the next job in the list was not asked about");
    assert!(screen.picture().contains("the job no longer exists"), "{}", screen.picture());
}

#[test]
fn a_lost_inspector_is_told_with_the_age_of_what_is_shown() {
    let mut screen = Screen::sample(120, 24);
    let error =
        Error::Unreachable { server: "http://127.0.0.1:8080".into(), why: "connection refused".into() };
    screen.send(Message::Lost(Source::Jobs, error));
    screen.send(Message::Tick("2026-03-01T12:00:42Z".parse().unwrap()));
    insta::assert_snapshot!("stale", screen.picture());
    screen.send(Message::Server("http://127.0.0.1:9090".into()));
    screen.send(Message::AllJobs(sample::jobs(), "leader".into()));
    let picture = screen.picture();
    assert!(!picture.contains("STALE") && picture.contains("http://127.0.0.1:9090 (leader)"), "{picture}");
}

#[test]
fn what_the_server_says_of_its_data_stands_above_it() {
    let mut screen = Screen::sample(120, 24);
    let warning = "not the leader: API server unreachable since 2026-03-01T11:58:00Z";
    let standing = |role: &str, at: &str, warning: Option<&str>| {
        let warning = warning.map(str::to_owned);
        Message::Standing(ListMeta {
            role: role.into(),
            observed_at: at.into(),
            warning,
            ..ListMeta::default()
        })
    };
    screen.send(standing("follower", "2026-03-01T11:58:00Z", Some(warning)));
    let picture = screen.picture();
    assert!(picture.contains("(follower)"), "{picture}");
    assert!(picture.contains(&format!(" data 2m old: {warning}")), "{picture}");
    screen.send(standing("leader", sample::NOW, None));
    let picture = screen.picture();
    assert!(picture.contains("(leader)") && !picture.contains("not the leader"), "{picture}");
}

#[test]
fn a_filter_that_selects_nothing_says_so_in_every_pane() {
    let mut screen = Screen::sample(140, 30);
    screen.press(KeyCode::Char('/'));
    screen.type_in("no such thing");
    let picture = screen.picture();
    assert_eq!(picture.matches("nothing matches the filter").count(), 4, "{picture}");
}

#[test]
fn who_may_not_see_anything_is_told_so_and_leaves() {
    let mut screen = Screen::empty(80, 24);
    let error = Error::Forbidden { message: "jane may not list fluxionjobs in all namespaces".into() };
    assert_eq!(screen.send(Message::Lost(Source::Jobs, error)), Some(Effect::Quit));
}

#[test]
fn objects_come_change_and_go() {
    let mut screen = Screen::sample(80, 12);
    screen.press(KeyCode::Down);
    let mut new = sample::job("Job", "first", "Pending");
    new.status.position = Some(0);
    screen.send(Message::Job(Box::new(new)));
    screen.send(Message::JobGone(("default".into(), "group.sim".into())));
    let picture = screen.picture();
    assert!(picture.contains("job/first") && !picture.contains("group/sim"), "{picture}");
    let Some(Effect::Plan(_, job)) = screen.press(KeyCode::Char('c')) else { panic!("nothing was asked") };
    assert_eq!(job.metadata.name, "job.sweep", "the cursor stays on its job");
}

#[tokio::test]
async fn the_loop_draws_carries_out_and_ends() {
    let key = |code| Message::Key(KeyEvent::new(code, KeyModifiers::NONE));
    let messages = vec![
        Message::AllJobs(sample::jobs(), "leader".into()),
        key(KeyCode::Char('c')),
        key(KeyCode::Esc),
        Message::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)),
        Message::Resized,
    ];
    let effects = Arc::new(Mutex::new(Vec::new()));
    let seen = effects.clone();
    let outside =
        Outside { messages: stream::iter(messages), effect: move |effect| seen.lock().unwrap().push(effect) };
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    let app = App::new("s", sample::NOW.parse().unwrap(), TimeZone::UTC);
    run_loop(&mut terminal, app, outside).await.unwrap();
    assert!(matches!(effects.lock().unwrap().as_slice(), [Effect::Plan(1, _)]));
    assert!(terminal.backend().to_string().contains("podgroup/train"));
}
