use super::*;

/// A term that lasts for as long as a test.
fn lasting() -> Term {
    Term { number: 1, until: tokio::time::Instant::now() + Duration::from_mins(10) }
}

fn later(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

#[test]
fn an_idle_watch_is_neither_old_nor_a_problem_and_a_silent_one_is() {
    let health = Health::default();
    let nodes = health.watch("Node", "nodes");
    assert!(!health.synced());
    assert!(health.unready().unwrap().contains("nodes"));
    nodes.heard();
    nodes.listed();
    assert!(!health.synced(), "listed, but nobody tells of changes");
    nodes.stands();
    assert!(health.synced() && health.unready().is_none());
    assert_eq!((nodes.lag(later(35)), nodes.problem(later(35))), (None, None));
    assert!(nodes.lag(later(45)).unwrap() > Duration::from_secs(40));
    let problem = nodes.problem(later(75)).unwrap().text;
    assert!(problem.starts_with("the watch of nodes has received nothing for 7"), "{problem}");
}

#[test]
fn a_refused_watch_is_a_problem_at_once_and_names_the_verb() {
    let health = Health::default();
    let (nodes, pods) = (health.watch("Node", "nodes"), health.watch("Pod", "pods"));
    for watched in [&nodes, &pods] {
        watched.heard();
        watched.listed();
        watched.stands();
    }
    assert_eq!((health.synced(), health.warning()), (true, None));
    nodes.failed(Verb::Watch, true, "nodes is forbidden: no".to_owned());
    let text = "not allowed to watch nodes: nodes is forbidden: no";
    assert_eq!(health.problems(), [WatchProblem { resource: "nodes", text: text.to_owned() }]);
    assert_eq!(health.warning().unwrap(), format!("binding is paused: {text}"));
    assert!(health.synced(), "what was seen can still be read");
    nodes.stands();
    assert_eq!((health.problems(), health.unready()), (vec![], None));
}

#[test]
fn a_failure_that_may_pass_is_a_problem_when_the_data_is_too_old() {
    let health = Health::default();
    let nodes = health.watch("Node", "nodes");
    nodes.heard();
    nodes.failed(Verb::Watch, false, "connection refused".to_owned());
    assert_eq!(nodes.problem(later(50)), None);
    assert!(
        nodes.lag(later(5)).unwrap() >= Duration::from_secs(4),
        "the data ages from the first failure on"
    );
    let problem = nodes.problem(later(90)).unwrap().text;
    assert!(problem.contains("watch fails: connection refused"), "{problem}");
    // Granted and broken off again and again: never heard of.
    nodes.stands();
    assert!(nodes.problem(later(90)).is_some());
}

#[test]
fn a_kind_that_is_not_installed_has_no_age() {
    let health = Health::default();
    let sets = health.watch("JobSet", "jobsets");
    sets.absent();
    assert!(health.synced() && sets.age(later(900)).is_none() && sets.problem(later(900)).is_none());
}

#[test]
fn who_does_not_lead_says_why_and_the_data_is_as_old_as_the_last_answer() {
    let health = Health::default();
    assert_eq!((health.warning(), health.last_current(1_000)), (None, None));
    let trouble = Trouble { since: 940, unreachable: true, why: "connection refused".to_owned() };
    let leadership = Leadership { trouble: Some(trouble), ..Leadership::default() };
    health.set_leadership(leadership.clone());
    assert_eq!(
        health.warning().unwrap(),
        "not the leader: API server unreachable since 1970-01-01T00:15:40Z"
    );
    assert_eq!(health.last_current(1_000), Some(940));
    health.set_leadership(Leadership { held: Some(lasting()), ..leadership });
    assert_eq!(health.warning(), None);
    let holder = Some("b_1".to_owned());
    health.set_leadership(Leadership { holder, ..Leadership::default() });
    assert!(health.warning().unwrap().contains("b_1 is the leader"));
}
