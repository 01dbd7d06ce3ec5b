use super::*;
use crate::queue::QueuePolicy;

const MACHINE: Machine = Machine { nodes: 2, cores: 2, whole_nodes: false };

fn config(policy: QueuePolicy) -> [QueueConfig; 1] {
    [QueueConfig { policy, ..QueueConfig::default() }]
}

fn starts(trace: &[TraceJob], machine: Machine, policy: QueuePolicy) -> Vec<Option<i64>> {
    let outcome = simulate(machine, trace, &config(policy), &mut |_| ()).unwrap();
    outcome.jobs.iter().map(|ran| ran.map(|ran| ran.start)).collect()
}

fn csv(text: &str) -> Vec<TraceJob> {
    read_csv(&format!("submit,cores,run,limit,priority\n{text}")).unwrap()
}

#[test]
fn a_short_job_passes_a_wide_one_where_the_policy_lets_it() {
    // Half of the cluster is busy for 100 s; the wide job waits for it; one short, one long job behind.
    let trace = csv("0,2,100,100,0\n1,4,50,50,0\n2,1,20,30,0\n3,1,300,300,0");
    assert_eq!(starts(&trace, MACHINE, QueuePolicy::Fcfs), [Some(0), Some(100), Some(150), Some(150)]);
    assert_eq!(starts(&trace, MACHINE, QueuePolicy::Easy), [Some(0), Some(100), Some(2), Some(150)]);
    assert_eq!(starts(&trace, MACHINE, QueuePolicy::Conservative), [Some(0), Some(100), Some(2), Some(150)]);
}

#[test]
fn a_job_that_ends_early_lets_the_next_start_early() {
    let trace = csv("0,4,10,100,0\n1,4,10,100,0");
    assert_eq!(starts(&trace, MACHINE, QueuePolicy::Easy), [Some(0), Some(10)]);
}

#[test]
fn a_job_is_ended_at_its_limit_and_priority_goes_first() {
    let trace = csv("0,4,1000,100,0\n1,4,10,10,0\n2,4,10,10,5");
    assert_eq!(starts(&trace, MACHINE, QueuePolicy::Easy), [Some(0), Some(110), Some(100)]);
}

#[test]
fn what_can_never_run_is_refused() {
    let trace = csv("0,5,10,10,0\n0,4,10,10,0");
    assert_eq!(starts(&trace, MACHINE, QueuePolicy::Easy), [None, Some(0)]);
    let report = Report::new(
        MACHINE,
        &trace,
        &simulate(MACHINE, &trace, &config(QueuePolicy::Easy), &mut |_| ()).unwrap(),
    );
    assert_eq!((report.ran, report.refused, report.makespan), (1, 1, 10));
    assert!((report.utilisation - 1.0).abs() < 1e-9);
    let none = Machine { cores: 0, ..MACHINE };
    assert_eq!(simulate(none, &trace, &config(QueuePolicy::Easy), &mut |_| ()), Err(SimError::NoCores));
}

#[test]
fn whole_nodes_are_not_shared() {
    let trace = csv("0,1,10,10,0\n0,1,10,10,0\n0,1,10,10,0");
    let machine = Machine { whole_nodes: true, ..MACHINE };
    assert_eq!(starts(&trace, machine, QueuePolicy::Easy), [Some(0), Some(0), Some(10)]);
}

#[test]
fn figures_are_what_one_adds_up() {
    let trace = csv("0,4,100,100,0\n0,4,100,100,0");
    let outcome = simulate(MACHINE, &trace, &config(QueuePolicy::Easy), &mut |_| ()).unwrap();
    let report = Report::new(MACHINE, &trace, &outcome);
    assert_eq!(report.wait, Spread { mean: 50.0, median: 0.0, p95: 100.0, max: 100.0 });
    assert_eq!(report.slowdown, Spread { mean: 1.5, median: 1.0, p95: 2.0, max: 2.0 });
    assert_eq!(report.makespan, 200);
}

#[test]
fn reads_the_standard_workload_format() {
    let text = "; UnixStartTime: 0\n  1 10 -1 60 8 -1 -1 -1 100 -1 1 1 1 1 1 -1 -1 -1\n\
        2 20 5 30 8 -1 -1 16 -1 -1 1 1 1 1 1 -1 -1 -1\n3 30 -1 -1 8 -1 -1 8 60 -1 5 1 1 1 1 -1 -1 -1\n";
    let (jobs, left_out) = read_swf(text).unwrap();
    assert_eq!(left_out, 1);
    assert_eq!(
        jobs[0],
        TraceJob { id: 1, submit: 10, cores: 8, limit: 100, run: 60, priority: 0, queue: Some("1".into()) }
    );
    assert_eq!(
        jobs[1],
        TraceJob { id: 2, submit: 20, cores: 16, limit: 30, run: 30, priority: 0, queue: Some("1".into()) }
    );
}

#[test]
fn says_which_line_of_a_trace_is_wrong() {
    for text in ["1 2 3", "1 x 3 4 5 6 7 8 9", "1 -5 0 4 5 6 7 8 9", "1 5 0 4 5 6 7 8 99999999999999999"] {
        assert_eq!(read_swf(&format!(";\n{text}")).unwrap_err().line, 2, "{text}");
    }
    for text in [
        "",
        "submit,cores",
        "submit,cores,run,colour",
        "submit,cores,run\n1,0,3",
        "submit,cores,run\n1,2",
        "submit,cores,run\n1,2,x",
    ] {
        assert!(read_csv(text).is_err(), "{text}");
    }
    for (line, part) in [
        ("0,1,-7,", "run time -7"),
        ("0,1,7,-9", "time limit -9"),
        ("0,1,,9", "run is empty"),
        (",1,7,9", "submit is empty"),
        ("0,1,1e3,", "run: invalid number `1e3`"),
        ("0,1,1.x,", "run: invalid number `1.x`"),
        ("0,-4,1,", "processors -4"),
    ] {
        let error = read_csv(&format!("submit,cores,run,limit\n{line}")).unwrap_err();
        assert_eq!(error.line, 2);
        assert!(error.what.contains(part), "{error}");
    }
    assert!(read_csv("submit,cores,cores,run\n").unwrap_err().what.contains("duplicate column cores"));
    assert!(read_swf("1 5 0 4 5 x 7 8 9").unwrap_err().what.contains("field 6: invalid number `x`"));
}

#[test]
fn reads_what_spreadsheets_write() {
    let jobs = read_csv("\u{feff}submit,cores,run,limit\r\n\r\n0.5,1,10.25,-1\r\n").unwrap();
    assert_eq!(jobs, [TraceJob { id: 3, submit: 0, cores: 1, limit: 10, run: 10, priority: 0, queue: None }]);
}

#[test]
fn queues_share_the_cluster_each_by_its_own_rule() {
    let queue = |name: &str, policy| QueueConfig { name: name.into(), policy, ..QueueConfig::default() };
    let text = "submit,cores,run,queue\n0,3,100,batch\n1,4,50,batch\n2,1,10,batch\n3,1,10,short\n4,4,10,short\n5,1,10,\n";
    let trace = read_csv(text).unwrap();
    let starts = |queues: &[QueueConfig]| {
        let outcome = simulate(MACHINE, &trace, queues, &mut |_| ()).unwrap();
        outcome.jobs.iter().map(|ran| ran.unwrap().start).collect::<Vec<_>>()
    };
    // In order alone nobody of batch passes its second job; short goes first wherever both could start.
    let queues = [queue("short", QueuePolicy::Easy), queue("batch", QueuePolicy::Fcfs)];
    assert_eq!(starts(&queues), [0, 110, 160, 3, 100, 13]);
    // What batch promises its second job binds short, too, when batch is asked first.
    let queues = [queue("batch", QueuePolicy::Easy), queue("short", QueuePolicy::Fcfs)];
    assert_eq!(starts(&queues), [0, 100, 2, 22, 150, 12]);
    // A single queue takes them all.
    assert_eq!(starts(&[queue("other", QueuePolicy::Fcfs)]), [0, 100, 150, 150, 160, 170]);
    let unknown = [queue("batch", QueuePolicy::Easy), queue("long", QueuePolicy::Easy)];
    let error = simulate(MACHINE, &trace, &unknown, &mut |_| ()).unwrap_err();
    assert_eq!(error, SimError::UnknownQueue { job: 5, name: "short".into() });
    assert_eq!(simulate(MACHINE, &trace, &[], &mut |_| ()), Err(SimError::NoQueue));
}

#[test]
fn a_depth_is_no_limit_to_what_starts_at_one_moment() {
    let trace = csv("0,1,10,10,0\n0,1,10,10,0\n0,1,10,10,0\n0,1,10,10,0");
    for policy in [QueuePolicy::Fcfs, QueuePolicy::Easy] {
        let queue = [QueueConfig { queue_depth: 1, policy, ..QueueConfig::default() }];
        let outcome = simulate(MACHINE, &trace, &queue, &mut |_| ()).unwrap();
        assert!(outcome.jobs.iter().all(|ran| ran.unwrap().start == 0), "{policy:?}");
    }
}
