use super::*;
use crate::queue::QueuePolicy;

const MACHINE: Machine =
    Machine { nodes: 2, cores: 2, whole_nodes: false, enforce_limits: true, each_node: false };

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
fn an_idle_node_is_not_kept_for_a_job_that_waits_for_busy_ones() {
    let trace = csv("0,2,5,5,0\n0,2,100,100,0\n6,3,100,100,0\n7,1,1000,1000,0");
    let machine = Machine { nodes: 4, cores: 1, ..MACHINE };
    for policy in [QueuePolicy::Easy, QueuePolicy::Conservative] {
        assert_eq!(starts(&trace, machine, policy), [Some(0), Some(0), Some(100), Some(7)]);
    }
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
        &Measure::default(),
    );
    assert_eq!((report.ran, report.refused, report.makespan), (1, 1, 10));
    assert!((report.utilization - 1.0).abs() < 1e-9);
    let none = Machine { cores: 0, ..MACHINE };
    assert_eq!(simulate(none, &trace, &config(QueuePolicy::Easy), &mut |_| ()), Err(SimError::NoCores));
}

#[test]
fn a_run_beyond_its_limit_is_kept_where_limits_are_not_enforced() {
    let trace = csv("0,4,100,50,0\n1,4,10,10,0");
    assert_eq!(starts(&trace, MACHINE, QueuePolicy::Easy), [Some(0), Some(50)]);
    let machine = Machine { enforce_limits: false, ..MACHINE };
    for policy in [QueuePolicy::Fcfs, QueuePolicy::Easy, QueuePolicy::Conservative, QueuePolicy::Hybrid] {
        assert_eq!(starts(&trace, machine, policy), [Some(0), Some(100)]);
    }
}

#[test]
fn whole_nodes_are_not_shared() {
    let trace = csv("0,1,10,10,0\n0,1,10,10,0\n0,1,10,10,0");
    let machine = Machine { whole_nodes: true, ..MACHINE };
    assert_eq!(starts(&trace, machine, QueuePolicy::Easy), [Some(0), Some(0), Some(10)]);
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
