use super::*;

#[test]
fn the_example_is_the_defaults() {
    let example = parse("config.yaml", include_str!("../../../examples/config.yaml")).unwrap();
    let defaults = Settings::default();
    assert_eq!(example.queues, defaults.queues);
    assert_eq!(format!("{example:?}"), format!("{defaults:?}"));
    assert_eq!(format!("{:?}", parse("empty", "").unwrap()), format!("{defaults:?}"));
}

#[test]
fn what_is_set_wins_over_the_defaults() {
    let text = "queues:\n- {name: gpu, policy: hybrid, reservationDepth: 4, defaultDuration: 1h30m, assumedDuration: none, nodePolicy: high, onPartialBind: hold}\n\
                - {name: rest, policy: fcfs, queueDepth: 5, defaultDuration: 90, assumedDuration: 2h}\n\
                schedulerNames: [fluxion, fluence]\ntopologyKeys: [rack]\nbindDeadline: 10s\nonPartialBind: release\nlimits: {groupSizeMax: 7}\n";
    let settings = parse("c", text).unwrap();
    let gpu = &settings.queues[0];
    assert_eq!((&*gpu.name, gpu.policy, gpu.reservation_depth), ("gpu", QueuePolicy::Hybrid, 4));
    assert_eq!((gpu.default_duration, gpu.queue_depth), (Some(5400), 10_000));
    assert_eq!((gpu.assumed_duration, settings.queues[1].assumed_duration), (None, Some(7200)));
    assert_eq!((settings.queues[1].default_duration, settings.queues[1].queue_depth), (Some(90), 5));
    assert_eq!((settings.bind_deadline, settings.group_size_max), (10, 7));
    assert_eq!(settings.scheduler_names.len(), 2);
    let partial = (gpu.on_partial_bind, settings.queues[1].on_partial_bind, settings.on_partial_bind);
    assert_eq!(partial, (Some(OnPartialBind::Hold), None, Some(OnPartialBind::Release)));
    let flags = load(None, &["mine".to_owned()], false).unwrap().settings;
    assert_eq!(flags.scheduler_names, [Arc::from("mine")]);
}

#[test]
fn kube_schedulers_pods_are_taken_only_when_that_is_said() {
    let names = ["fluxion".to_owned(), "default-scheduler".to_owned()];
    let refused = load(None, &names, false).unwrap_err().to_string();
    assert!(
        refused.contains("--scheduler-name: Pods of default-scheduler are scheduled by kube-scheduler"),
        "{refused}"
    );
    assert!(refused.contains("--replace-default-scheduler"), "{refused}");
    assert_eq!(load(None, &names, true).unwrap().settings.scheduler_names.len(), 2);
    let text = "schedulerNames: [default-scheduler]\n";
    let refused = parse("c.yaml", text).unwrap_err().to_string();
    assert!(refused.starts_with("c.yaml: schedulerNames: ") && refused.contains("replaceDefaultScheduler"));
    let said = parse("c.yaml", &format!("{text}replaceDefaultScheduler: true\n")).unwrap();
    assert_eq!(said.scheduler_names, [Arc::from("default-scheduler")]);
}

#[test]
fn errors_name_the_line_the_field_and_what_is_allowed() {
    let cases: [(&str, &[&str]); 21] = [
        ("queues:\n- name: a\n  polcy: easy\n", &["c.yaml, line 3", "queues[0]", "polcy", "nodePolicy"]),
        ("queues:\n- name: a\n  policy: fair\n", &["line 3", "queues[0].policy", "fair", "conservative"]),
        ("queue: []\n", &["line 1", "queue", "schedulerNames"]),
        ("queues: []\n", &["c.yaml: queues: must have between 1 and 1000 queues"]),
        ("queues: [{name: A_b}]\n", &["queues[0].name", "invalid name 'A_b'"]),
        ("queues: [{name: a}, {name: a}]\n", &["queues[1].name", "duplicate queue 'a'"]),
        ("queues: [{name: a, queueDepth: 0}]\n", &["queues[0].queueDepth", "at least 1"]),
        (
            "queues: [{name: a, queueDepth: -1}]\n",
            &["line 1: queues[0].queueDepth: must be an integer, 0 or greater (see examples"],
        ),
        ("queues: 5\n", &["line 1: queues: must be a list, e.g. [a, b] (see examples"]),
        ("limits: 5\n", &["line 1: limits: must be a mapping"]),
        (
            "limits: {groupSizeMax: 99999999999}\n",
            &["limits.groupSizeMax: must be an integer between 0 and 4294967295"],
        ),
        (
            "bindDeadline: 0s\n",
            &["line 1: bindDeadline: invalid duration \"0s\": must be at least 1s (see examples"],
        ),
        (
            "limits: {keepEnded: inf}\n",
            &["limits.keepEnded: invalid duration \"inf\": must be e.g. 90s or 2d"],
        ),
        ("queues: [{name: a, reservationDepth: 0}]\n", &["queues[0].reservationDepth", "between 1 and max"]),
        (
            "queues: [{name: a, reservationDepth: 9, maxReservationDepth: 8}]\n",
            &["queues[0].reservationDepth", "(8)"],
        ),
        ("queues: [{name: a, maxReservationDepth: 0}]\n", &["queues[0].maxReservationDepth", "at least 1"]),
        ("queues: [{name: a, assumedDuration: never}]\n", &["queues[0].assumedDuration", "never"]),
        (
            "queues: [{name: a, nodePolicy: first}]\n",
            &["queues[0].nodePolicy", "first", "low", "high", "spread"],
        ),
        ("bindDeadline: soon\n", &["line 1", "bindDeadline", "soon"]),
        ("limits: {groupSizeMax: 0}\n", &["limits.groupSizeMax: must be at least 1"]),
        ("queues: [\n", &["c.yaml, line "]),
    ];
    for (text, wanted) in cases {
        let error = parse("c.yaml", text).unwrap_err().to_string();
        for part in wanted {
            assert!(error.contains(part), "{text:?} gives {error:?} without {part:?}");
        }
    }
}

#[test]
fn an_assumed_duration_counts_for_every_queue_that_gives_none() {
    let parsed =
        parse("c.yaml", "assumedDuration: none\nqueues: [{name: a}, {name: b, assumedDuration: 2h}]\n");
    let of = |settings: &Settings| -> Vec<_> {
        settings.queues.iter().map(|queue| queue.assumed_duration).collect()
    };
    assert_eq!(of(&parsed.unwrap()), [None, Some(7200)]);
    assert_eq!(of(&parse("c.yaml", "assumedDuration: 5m\n").unwrap()), [Some(300)]);
}
