//! The text of tables and screens, as a reviewer reads it.

use fluxion_api::reason::NodesLeftOut;
use fluxion_api::{FluxionExplanation, JobState, NodeReasonClass, Reason};
use kubectl_fluxion::render::{self, Options, StatusReport};

use crate::sample;

fn options() -> Options {
    Options::plain(sample::NOW.parse().unwrap())
}

/// Without colours; a bar at each end of a line shows trailing blanks.
fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn tables_of_jobs() {
    let mut jobs = sample::jobs();
    insta::assert_snapshot!("jobs", plain(&render::jobs(&jobs, &options())));
    let wide = Options { wide: true, namespaces: true, ..options() };
    insta::assert_snapshot!("jobs_wide", plain(&render::jobs(&jobs, &wide)));
    jobs.retain(fluxion_api::FluxionJob::is_queued);
    insta::assert_snapshot!("queue", plain(&render::queue(&jobs, &options())));
    insta::assert_snapshot!("queue_wide", plain(&render::queue(&jobs, &wide)));
    let narrow = Options { width: Some(100), ..options() };
    insta::assert_snapshot!("queue_narrow", plain(&render::queue(&jobs, &narrow)));
}

#[test]
fn table_of_nodes() {
    insta::assert_snapshot!("nodes", plain(&render::nodes(&sample::nodes(), &options())));
    insta::assert_snapshot!(
        "nodes_wide",
        plain(&render::nodes(&sample::nodes(), &Options { wide: true, ..options() }))
    );
}

#[test]
fn status_screen() {
    let list = sample::list(sample::queues());
    let report = StatusReport::new(
        "http://127.0.0.1:8080",
        &list.metadata,
        &sample::nodes(),
        list.items,
        Some(sample::audit().findings),
    );
    insta::assert_snapshot!("status", plain(&render::status(&report, &options())));
    let empty = StatusReport::new("http://127.0.0.1:8080", &list.metadata, &[], Vec::new(), None);
    insta::assert_snapshot!("status_empty", plain(&render::status(&empty, &options())));
    let warning = Some("not the leader: API server unreachable since 2026-03-01T11:58:00Z".to_owned());
    let report = StatusReport { warning, observed_at: "2026-03-01T11:58:00Z".to_owned(), ..report };
    let text = plain(&render::status(&report, &options()));
    assert!(
        text.contains("2m old") && text.contains("\n         not the leader: API server unreachable"),
        "{text}"
    );
}

#[test]
fn explanations() {
    let show = |answer: &FluxionExplanation| plain(&render::explain(answer, &options()));
    let mut answer = FluxionExplanation { job: sample::reserved(), ..FluxionExplanation::default() };
    answer.nodes = vec![
        NodesLeftOut {
            class: NodeReasonClass::Insufficient,
            resource: Some("cpu".into()),
            requested: Some("8".into()),
            largest: Some("4".into()),
            count: 2,
            until: Some("2026-03-01T12:45:00Z".into()),
            until_assumed: false,
            ..NodesLeftOut::default()
        },
        NodesLeftOut { count: 1, reason: "had no nvidia.com/gpu".into(), ..NodesLeftOut::default() },
    ];
    answer.nearest = Some("2 of 4 members fit now".into());
    answer.suggestions = vec!["with 2 members instead of 4 it could start now".into()];
    insta::assert_snapshot!("explain_reserved", show(&answer));
    answer = FluxionExplanation { job: sample::running(), ..FluxionExplanation::default() };
    insta::assert_snapshot!("explain_running", show(&answer));
    answer.job.status.degraded = true;
    answer.job.status.planned_end = Some("2026-03-01T11:59:00Z".into());
    insta::assert_snapshot!("explain_overrun", show(&answer));
    let table = plain(&render::jobs(std::slice::from_ref(&answer.job), &options()));
    assert!(table.contains("overdue 60s"), "{table}");
    let mut job = sample::running();
    job.status.state = JobState::Failed;
    job.status.degraded = false;
    job.status.members.ended = 10;
    (job.status.state_since, job.status.ended_at) =
        ("2026-03-01T11:50:00Z".into(), Some("2026-03-01T11:50:00Z".into()));
    job.status.reason = Some(Reason {
        class: "PodFailed".into(),
        text: "container main of Pod lammps-0 exited with code 3".into(),
        ..Reason::default()
    });
    answer = FluxionExplanation { job, ..FluxionExplanation::default() };
    insta::assert_snapshot!("explain_failed", show(&answer));
}

#[test]
fn what_ends_a_job_is_told_from_what_is_planned() {
    for (planned, limit, head, end) in [
        (Some(3600), None, "planned duration 60m (not enforced)", "planned to end at 12:45:00"),
        (Some(3600), Some(3600), "time limit 60m (activeDeadlineSeconds)", "ends by 12:45:00"),
        (
            Some(1800),
            Some(3600),
            "planned duration 30m, time limit 60m (activeDeadlineSeconds)",
            "ends by 12:45:00",
        ),
        (None, None, "no time limit", "planned to end at 12:45:00"),
    ] {
        let mut job = sample::running();
        (job.spec.duration_seconds, job.spec.limit_seconds) = (planned, limit);
        let answer = FluxionExplanation { job, ..FluxionExplanation::default() };
        let page = plain(&render::explain(&answer, &options()));
        assert!(page.contains(head) && page.contains(end), "{page}");
        assert_eq!(page.contains("activeDeadlineSeconds"), limit.is_some(), "{page}");
    }
}

#[test]
fn reservations_and_graph() {
    let jobs = sample::jobs();
    insta::assert_snapshot!("reservations", plain(&render::reservations(&jobs, &options())));
    insta::assert_snapshot!("graph", plain(&render::graph(&sample::graph(), &options())));
}

#[test]
fn assumed_times_are_marked() {
    let mut job = sample::reserved();
    let reservation = job.status.reservation.as_mut().unwrap();
    (reservation.start_assumed, reservation.end_assumed) = (true, true);
    job.status.planned_start_assumed = true;
    job.status.waits_for[0].assumed = true;
    let table = plain(&render::reservations(std::slice::from_ref(&job), &options()));
    assert!(table.contains("45m (assumed)") && table.contains("14:45:00 (assumed)"), "{table}");
    let nodes = vec![NodesLeftOut {
        class: NodeReasonClass::Insufficient,
        resource: Some("cpu".into()),
        requested: Some("8".into()),
        largest: Some("4".into()),
        count: 2,
        until: Some("2026-03-01T12:45:00Z".into()),
        until_assumed: true,
        ..NodesLeftOut::default()
    }];
    let page = plain(&render::explain(
        &FluxionExplanation { job, nodes, ..FluxionExplanation::default() },
        &options(),
    ));
    for part in [
        "available), the earliest until 12:45:00 (assumed)",
        "(in 45m, assumed)",
        "assumed to end at 12:45:00 (in 45m)",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn a_hostile_reason_cannot_paint_the_terminal() {
    let mut job = sample::job("Job", "evil", "Pending");
    job.status.reason = Some(Reason {
        class: "Busy".into(),
        text: "\u{1b}[2J\u{7}\r\nnice".into(),
        details: vec!["\u{1b}]0;title\u{7}".into()],
        ..Reason::default()
    });
    job.status.warnings = vec!["\u{1b}[31m".into()];
    let table = plain(&render::queue(std::slice::from_ref(&job), &options()));
    let answer = FluxionExplanation { job, ..FluxionExplanation::default() };
    let page = plain(&render::explain(&answer, &options()));
    for text in [table, page] {
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    }
}
