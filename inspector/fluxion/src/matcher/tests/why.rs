//! Why a request is not met: one known answer per reason.

use super::support::*;
use crate::graph::Graph;
use crate::jobspec::Jobspec;
use crate::matcher::why::{Reason, Refused, Shortage, Verdict, WhyNot};
use crate::matcher::{Engine, Operation, Quirks};

const WHOLE_NODE: &str = "[{type: slot, count: 1, label: a, with: [{type: node, count: 1}]}]";
const TWO_CORES: &str =
    "[{type: node, count: 1, with: [{type: slot, count: 1, label: a, with: [{type: core, count: 2}]}]}]";

fn engine_of(graph: Graph) -> Engine {
    engine(graph, "low", Quirks::default())
}

fn why(engine: &Engine, resources: &str, duration: u32) -> WhyNot {
    engine.why_not(&spec(resources, duration), 0).unwrap()
}

fn booked(engine: &mut Engine, resources: &str, duration: u32, job: u64) {
    assert!(run(engine, Operation::Allocate, resources, duration, job).0.is_ok());
}

/// `TYPE REASON COUNT/OF[ UNTIL]` per group.
fn groups(report: &WhyNot) -> Vec<String> {
    let one = |refused: &Refused| {
        let until = refused.until.map_or(String::new(), |until| format!(" {until}"));
        format!("{} {:?} {}/{}{until}", refused.type_name, refused.reason, refused.count, refused.of)
    };
    report.refused.iter().map(one).collect()
}

fn missing(type_name: &str, wanted: u64, found: u64) -> Shortage {
    Shortage { type_name: type_name.to_owned(), wanted, found }
}

#[test]
fn what_fits_has_no_reasons() {
    let engine = engine_of(machine(1, 2, 2, 0, 0));
    let report = why(&engine, TWO_CORES, 10);
    assert_eq!((report.verdict, report.earliest), (Verdict::Fits, Some(0)));
    assert_eq!((report.missing, report.refused), (vec![], vec![]));
    let shared = why(&engine, "[{type: node, count: 1, with: [{type: core, count: 1}]}]", 10);
    assert_eq!(shared.verdict, Verdict::NothingExclusive);
}

#[test]
fn held_until_the_first_of_them_ends() {
    let mut engine = engine_of(machine(1, 3, 1, 0, 0));
    booked(&mut engine, WHOLE_NODE, 300, 1);
    booked(&mut engine, WHOLE_NODE, 100, 2);
    booked(&mut engine, WHOLE_NODE, 200, 3);
    let report = why(&engine, WHOLE_NODE, 50);
    assert_eq!((report.verdict, report.earliest), (Verdict::Busy, Some(100)));
    assert_eq!(groups(&report), ["cluster Aggregate 1/1 100", "node Held 3/3 100", "rack Aggregate 1/1 100"]);
    assert_eq!(report.missing, [missing("slot", 1, 0)]);
    assert_eq!(report.refused[1].examples[0], "/cluster0/rack0/node0");
    // Two nodes are free together only later than the first of them.
    let two = why(&engine, "[{type: slot, count: 2, label: a, with: [{type: node, count: 1}]}]", 50);
    assert_eq!((two.verdict, two.earliest), (Verdict::Busy, Some(200)));
    assert_eq!(groups(&two)[1], "node Held 3/3 100");
}

#[test]
fn a_gap_before_a_reservation_counts_only_when_the_job_fits_into_it() {
    let mut engine = engine_of(machine(1, 1, 1, 0, 0));
    booked(&mut engine, WHOLE_NODE, 100, 1);
    let later = |engine: &mut Engine, job, duration| {
        run(engine, Operation::AllocateOrElseReserve, WHOLE_NODE, duration, job).0.unwrap().at
    };
    assert_eq!(later(&mut engine, 2, 100), 100);
    assert_eq!(later(&mut engine, 3, 50), 200);
    engine.cancel(2).unwrap();
    assert_eq!(why(&engine, WHOLE_NODE, 100).refused[1].until, Some(100));
    assert_eq!(why(&engine, WHOLE_NODE, 101).refused[1].until, Some(250));
    assert_eq!(why(&engine, WHOLE_NODE, 101).earliest, Some(250));
}

#[test]
fn what_never_ends_has_no_time() {
    let mut engine = engine_of(machine(1, 1, 1, 0, 0));
    booked(&mut engine, WHOLE_NODE, 0, 1);
    let report = why(&engine, WHOLE_NODE, 10);
    assert_eq!((report.verdict, report.earliest), (Verdict::Busy, None));
}

#[test]
fn down_is_told_from_busy() {
    let mut engine = engine_of(machine(1, 3, 1, 0, 0));
    booked(&mut engine, WHOLE_NODE, 100, 1);
    down(&mut engine, "/cluster0/rack0/node2");
    let two = "[{type: slot, count: 2, label: a, with: [{type: node, count: 1}]}]";
    let three = "[{type: slot, count: 3, label: a, with: [{type: node, count: 1}]}]";
    let report = why(&engine, two, 10);
    assert_eq!((report.verdict, report.earliest), (Verdict::Busy, Some(100)));
    assert_eq!(report.missing, [missing("slot", 2, 1)]);
    assert_eq!(groups(&report), ["node Down 1/3", "node Held 1/3 100"]);
    let report = why(&engine, three, 10);
    assert_eq!((report.verdict, report.earliest), (Verdict::Down, None));
    let four = why(&engine, "[{type: slot, count: 4, label: a, with: [{type: node, count: 1}]}]", 10);
    assert_eq!(four.verdict, Verdict::Unsatisfiable);
    assert_eq!(groups(&four), Vec::<String>::new(), "each of them is fine, they are just too few");
    assert_eq!(four.missing, [missing("slot", 4, 3)]);
}

#[test]
fn a_constraint_rules_nodes_out() {
    let mut engine = engine_of(machine(1, 3, 1, 0, 0));
    assert_eq!(engine.set_property("/cluster0/rack0/node1", "fast", ""), 1);
    let text = |count: u32, property: &str| {
        format!(
            "{{version: 9999, tasks: [], resources: [{{type: slot, count: {count}, label: a, with: [{{type: node, count: 1}}]}}], \
             attributes: {{system: {{duration: 10, constraints: {{properties: [\"{property}\"]}}}}}}}}"
        )
    };
    let ask = |engine: &Engine, count, property| {
        let spec = Jobspec::parse(&text(count, property), &|_| true).unwrap();
        engine.why_not(&spec, 0).unwrap()
    };
    assert_eq!(ask(&engine, 1, "fast").verdict, Verdict::Fits);
    let report = ask(&engine, 2, "fast");
    assert_eq!(report.verdict, Verdict::Unsatisfiable);
    assert_eq!(groups(&report), ["node Constraint 2/3"]);
    assert_eq!(report.missing, [missing("slot", 2, 1)]);
    booked(&mut engine, WHOLE_NODE, 10, 1);
    booked(&mut engine, WHOLE_NODE, 40, 2);
    let report = ask(&engine, 1, "fast");
    assert_eq!((report.verdict, report.earliest), (Verdict::Busy, Some(40)));
    assert_eq!(groups(&report), ["node Constraint 2/3", "node Held 1/3 40", "rack Below 1/1"]);
}

#[test]
fn exclusive_use_waits_for_everybody_below() {
    let mut engine = engine_of(machine(1, 1, 2, 0, 0));
    let core = "[{type: slot, count: 1, label: a, with: [{type: core, count: 1}]}]";
    booked(&mut engine, core, 70, 1);
    let report = why(&engine, WHOLE_NODE, 10);
    assert_eq!((report.verdict, report.earliest), (Verdict::Busy, Some(70)));
    assert_eq!(groups(&report), ["node Exclusive 1/1 70", "rack Below 1/1"]);
}

#[test]
fn too_small_is_not_too_full() {
    let mut engine = engine_of(machine(1, 2, 2, 0, 0));
    let three =
        "[{type: node, count: 1, with: [{type: slot, count: 1, label: a, with: [{type: core, count: 3}]}]}]";
    let report = why(&engine, three, 10);
    assert_eq!(report.verdict, Verdict::Unsatisfiable);
    assert_eq!(groups(&report), ["node TooSmall 2/2"]);
    booked(&mut engine, "[{type: slot, count: 1, label: a, with: [{type: core, count: 1}]}]", 30, 1);
    let report = why(
        &engine,
        "[{type: node, count: 2, with: [{type: slot, count: 1, label: a, with: [{type: core, count: 2}]}]}]",
        10,
    );
    assert_eq!((report.verdict, report.earliest), (Verdict::Busy, Some(30)));
    assert_eq!(groups(&report), ["core Held 1/4 30", "node Aggregate 1/2 30",]);
    assert_eq!(report.missing, [missing("node", 2, 1)]);
}

#[test]
fn without_sums_what_is_below_tells() {
    let graph = machine(1, 2, 2, 0, 2);
    let mut engine = engine_of(graph);
    let pools = "[{type: node, count: 1, with: [{type: slot, count: 1, label: a, with: [{type: memory, count: 8}]}]}]";
    booked(&mut engine, pools, 20, 1);
    booked(&mut engine, pools, 30, 2);
    let report = why(&engine, pools, 10);
    // Memory is summed up at the cluster alone, so nodes are judged by what is found below them.
    assert_eq!((report.verdict, report.earliest), (Verdict::Busy, Some(20)));
    assert_eq!(groups(&report), ["node Below 2/2", "memory Held 4/4 20",]);
    let more = pools.replace('8', "9");
    let report = why(&engine, &more, 10);
    assert_eq!(report.verdict, Verdict::Unsatisfiable);
    assert_eq!(groups(&report), ["node TooSmall 2/2"]);
}

#[test]
fn a_contradiction_is_named() {
    let engine = engine_of(machine(1, 1, 1, 0, 0));
    let shared = "[{type: slot, count: 1, label: a, with: [{type: node, count: 1, exclusive: false}]}]";
    let report = why(&engine, shared, 10);
    assert_eq!(report.verdict, Verdict::Unsatisfiable);
    assert_eq!(groups(&report), ["node Contradiction 1/1", "rack Below 1/1"]);
    assert_eq!(report.refused[0].reason, Reason::Contradiction);
}

#[test]
fn asking_changes_nothing() {
    for quirks in [Quirks::default(), Quirks::flux_sched()] {
        let mut asked = engine(machine(2, 2, 2, 0, 0), "first", quirks);
        let mut left_alone = asked.clone();
        for job in 1..12 {
            let resources = if job % 3 == 0 { WHOLE_NODE } else { TWO_CORES };
            let _ = asked.why_not(&spec(resources, 10 * job), 0);
            let operation = Operation::AllocateOrElseReserve;
            let (one, lines) = run(&mut asked, operation, resources, 10 * job, u64::from(job));
            let (two, same) = run(&mut left_alone, operation, resources, 10 * job, u64::from(job));
            assert_eq!((one, lines.written), (two, same.written));
            assert_eq!(asked.visits(), left_alone.visits());
        }
    }
}

#[test]
fn words_and_json_say_the_same() {
    let mut engine = engine_of(machine(1, 1, 1, 0, 0));
    booked(&mut engine, WHOLE_NODE, 60, 1);
    let report = why(&engine, WHOLE_NODE, 10);
    let text = "busy: it can start once running jobs end
it could start at 60
slot: 1 requested, 0 found
cluster: 1 of 1 with insufficient free resources until 60 (/cluster0)
node: 1 of 1 in use until 60 (/cluster0/rack0/node0)
rack: 1 of 1 with insufficient free resources until 60 (/cluster0/rack0)
";
    assert_eq!(report.to_string(), text);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["verdict"], "busy");
    assert_eq!(json["refused"][1]["reason"], "held");
    assert_eq!(json["refused"][1]["until"], 60);
    assert_eq!(json["missing"][0], serde_json::json!({"type": "slot", "wanted": 1, "found": 0}));
}
