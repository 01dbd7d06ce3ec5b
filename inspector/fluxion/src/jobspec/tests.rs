//! What is accepted, what is refused, and how counts are taken.

use std::fmt::Write;

use super::*;

fn known(name: &str) -> bool {
    ["node", "core", "slot", "memory", ""].contains(&name)
}

fn spec(resources: &str) -> Result<Jobspec, JobspecError> {
    let tail = "tasks: []\nattributes: {system: {duration: 3600.5, queue: batch}}\n";
    Jobspec::parse(&format!("version: 9999\nresources: {resources}\n{tail}"), &known)
}

#[test]
fn reads_a_tree_of_resources() {
    let job =
        spec("[{type: slot, count: 010, label: a, with: [{type: core, count: 0x10, exclusive: true}]}]");
    let job = job.unwrap();
    assert_eq!(job.resources[0].count, Count::exactly(8));
    assert_eq!(job.resources[0].with[0].count.min, 16);
    assert_eq!(job.resources[0].with[0].exclusive, Some(true));
    assert!((job.duration - 3600.5).abs() < f64::EPSILON);
    assert_eq!(job.queue.as_deref(), Some("batch"));
}

#[test]
fn refuses_with_the_reason() {
    for (resources, reason) in [
        ("[{type: zone, count: 1}]", "Value of \"type\" must be a resource type known to fluxion"),
        ("[{type: slot, count: 1}]", "All slots must be labeled"),
        ("[{type: core, count: -1}]", "count is not an unsigned integer: -1"),
        ("[{type: core, count: 1.5}]", "count is not an unsigned integer: 1.5"),
        ("[{type: core, count: 08}]", "count is not an unsigned integer: 08"),
        ("[{type: core, count: 1, type: core}]", "Unrecognized key in resource mapping"),
        ("[{type: core, count: 1, with: }]", "\"with\" is not a sequence"),
        ("[{type: core, count: {min: 0}}]", "\"min\" must be greater than zero"),
        (
            "[{type: core, count: {min: 1, max: 2}}]",
            "All or none of \"max\", \"operator\", and \"operand\" must be specified",
        ),
        (
            "[{type: core, count: {min: 1, max: 4, operator: '^', operand: 2}}]",
            "\"min\" must be greater than one for exponentiation '^'",
        ),
        ("{}", "\"resources\" is not a sequence"),
    ] {
        assert_eq!(spec(resources).unwrap_err().to_string(), reason, "{resources}");
    }
    let double = "version: 1\nversion: 1\nresources: []\ntasks: []\nattributes:\n";
    let error = Jobspec::parse(double, &known).unwrap_err();
    assert_eq!(error.to_string(), "Top mapping in jobspec must have exactly four entries");
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut text = String::from("a: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(text, "b{level}: &a{level} [{aliases}]").unwrap();
    }
    assert_eq!(yaml::parse(&text), Err(yaml::YamlError::TooLarge));
    let mut chain = String::from("- &a0 [x]\n");
    for level in 1..1000 {
        writeln!(chain, "- &a{level} [*a{}]", level - 1).unwrap();
    }
    assert_eq!(yaml::parse(&chain), Err(yaml::YamlError::TooDeep));
    assert!(yaml::parse("a: &a [*a]").is_err());
}

#[test]
fn a_count_takes_the_largest_number_of_its_set() {
    let count = |min, max, operator, operand| Count { min, max, operator, operand };
    let threes = count(3, 10, Operator::Add, 3);
    assert_eq!([2, 3, 5, 8, 9, 100].map(|available| threes.take(available)), [0, 3, 3, 6, 9, 9]);
    assert_eq!(threes.largest(), 9);
    let doubling = count(2, u32::MAX, Operator::Multiply, 2);
    assert_eq!(doubling.largest(), 1 << 31);
    assert_eq!(doubling.take(100), 64);
    let squares = count(2, u32::MAX, Operator::Power, 2);
    assert_eq!(squares.take(300), 256);
    assert_eq!(squares.largest(), 65536);
    assert_eq!(Count::exactly(0).take(5), 0);
    assert_eq!(Count::at_least(2).take(7), 7);
}

#[test]
fn tasks_are_checked() {
    for (task, good) in [
        ("{command: [a], slot: x, count: {per_slot: 1}}", true),
        ("{command: [a], slot: x}", false),
        ("{command: a, slot: x, count: {per_slot: 1}}", false),
        ("{command: [a], slot: x, count: {per_slot: 1, total: 2}}", false),
        ("{command: [a], slot: x, anything: 1}", true),
    ] {
        let text = format!("version: 1\nresources: []\nattributes:\ntasks: [{task}]\n");
        assert_eq!(Jobspec::parse(&text, &known).is_ok(), good, "{task}");
    }
}
