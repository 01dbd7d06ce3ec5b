use super::*;
use crate::queue::{QueueConfig, QueuePolicy};
use crate::sim::{Group, GroupBy, NodeSpan, groups, read_csv, simulate};

const MACHINE: Machine =
    Machine { nodes: 2, cores: 2, whole_nodes: false, enforce_limits: true, each_node: false };

fn played(text: &str) -> (Vec<TraceJob>, Outcome) {
    let trace = read_csv(&format!("submit,cores,run,user\n{text}")).unwrap();
    let queue = [QueueConfig { policy: QueuePolicy::Fcfs, ..QueueConfig::default() }];
    let outcome = simulate(MACHINE, &trace, &queue, &mut |_| ()).unwrap();
    (trace, outcome)
}

#[test]
fn figures_are_what_one_adds_up() {
    let (trace, outcome) = played("0,4,100,\n0,4,100,");
    let report = Report::new(MACHINE, &trace, &outcome, &Measure::default());
    assert_eq!(report.wait, Spread { mean: 50.0, median: 50.0, p95: 100.0, max: 100.0 });
    assert_eq!(report.slowdown, Spread { mean: 1.5, median: 1.5, p95: 2.0, max: 2.0 });
    assert_eq!((report.makespan, report.measured, report.load), (200, 2, None));
    assert_eq!((report.queue_length_mean, report.queue_length_max), (0.5, 1));
    assert_eq!(*outcome.nodes[1], [NodeSpan { first: 0, last: 1, cores: 2 }]);
}

#[test]
fn the_median_of_an_odd_number_is_the_middle() {
    let of = |values: &[f64]| Spread::of(values.to_vec());
    assert_eq!(of(&[9.0, 1.0, 2.0]), Spread { mean: 4.0, median: 2.0, p95: 9.0, max: 9.0 });
    assert_eq!(of(&[9.0, 1.0, 2.0, 4.0]), Spread { mean: 4.0, median: 3.0, p95: 9.0, max: 9.0 });
    assert_eq!(Spread::of(Vec::new()), Spread::default());
}

#[test]
fn the_state_over_time_changes_with_every_event() {
    let (trace, outcome) = played("0,4,100,\n10,3,50,\n20,1,50,");
    let points: Vec<_> = series(MACHINE, &trace, &outcome)
        .iter()
        .map(|point| (point.time, point.cores, point.running, point.waiting))
        .collect();
    assert_eq!(points, [(0, 4, 1, 0), (10, 4, 1, 1), (20, 4, 1, 2), (100, 4, 2, 0), (150, 0, 0, 0)]);
}

#[test]
fn warm_up_and_cool_down_are_not_measured() {
    let (trace, outcome) = played("0,4,100,\n50,4,100,\n100,2,100,\n150,4,100,");
    let report = |warm_up, cool_down| {
        let measure = Measure { warm_up, cool_down, ..Measure::default() };
        Report::new(MACHINE, &trace, &outcome, &measure)
    };
    let all = report(Cut::Nothing, Cut::Nothing);
    assert_eq!((all.measured, all.wait.max, all.makespan), (4, 150.0, 400));
    // 1,400 core seconds in 150 s of 4 cores.
    assert_eq!(all.load.map(|load| (load * 600.0).round()), Some(1400.0));
    let middle = report(Cut::Seconds(50), Cut::Seconds(50));
    assert_eq!((middle.measured, middle.wait.mean), (2, 75.0));
    // From 50 to 100 all cores are busy, and the second job waits.
    assert_eq!((middle.utilization, middle.queue_length_mean), (1.0, 1.0));
    assert_eq!(report(Cut::Jobs(0.25), Cut::Jobs(0.25)), middle);
    let none = report(Cut::Seconds(1000), Cut::Nothing);
    assert_eq!((none.ran, none.measured, none.utilization), (4, 0, 0.0));
}

#[test]
fn the_slowdown_of_short_jobs_is_bounded() {
    let (trace, outcome) = played("0,4,100,\n90,4,5,");
    let slowdown = |slowdown_bound| {
        let measure = Measure { slowdown_bound, ..Measure::default() };
        Report::new(MACHINE, &trace, &outcome, &measure).slowdown.max
    };
    assert_eq!((slowdown(1), slowdown(10), slowdown(60)), (3.0, 1.5, 1.0));
}

#[test]
fn groups_have_their_own_figures() {
    let (trace, outcome) = played("0,4,100,10\n0,3,100,2\n0,1,100,10\n0,9,1,2\n0,1,10,");
    let of = |by| groups(&trace, &outcome, &Measure::default(), by);
    let short = |groups: Vec<Group>| {
        groups.into_iter().map(|group| (group.name, group.jobs, group.wait.mean)).collect::<Vec<_>>()
    };
    let row = |name: &str, jobs, wait| (name.to_owned(), jobs, wait);
    assert_eq!(short(of(GroupBy::User)), [row("2", 1, 100.0), row("10", 2, 50.0), row("-", 1, 200.0)]);
    assert_eq!(short(of(GroupBy::Width)), [row("1", 2, 150.0), row("3-4", 2, 50.0)]);
    assert_eq!(short(of(GroupBy::Queue)), [row("-", 4, 100.0)]);
}
