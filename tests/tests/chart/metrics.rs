//! What alerts and the dashboard ask of Prometheus, beside what the inspector shows.

use std::collections::{BTreeMap, BTreeSet};

use fluxion_tests::helm::chart;
use serde_json::Value;

/// Sources of the metrics that have no sample before something fails: such families are not shown at all.
const SOURCES: [&str; 2] = [
    include_str!("../../../inspector/src/metrics.rs"),
    include_str!("../../../inspector/src/http/requests.rs"),
];

fn file(name: &str) -> String {
    std::fs::read_to_string(chart().join("files").join(name)).unwrap()
}

/// The expressions of all alerts and panels.
fn expressions() -> Vec<String> {
    let rules: Value = serde_saphyr::from_str(&file("rules.yaml")).unwrap();
    let groups = rules["groups"].as_array().unwrap();
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().unwrap());
    let dashboard: Value = serde_json::from_str(&file("dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().clone();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    rules.chain(targets).map(|one| one["expr"].as_str().unwrap().to_owned()).collect()
}

/// The words of an expression: names of metrics, labels and functions.
fn words(expression: &str) -> impl Iterator<Item = &str> {
    expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
}

/// Names of metrics, and the labels that are asked for in the same expressions (`by (a, b)`, `{a=`).
fn asked() -> BTreeMap<String, BTreeSet<String>> {
    let mut asked: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for expression in expressions() {
        let groupings = expression.split("by (").skip(1).filter_map(|rest| rest.split(')').next());
        let grouped = groupings.flat_map(|list| list.split(", "));
        let matchers = expression.split('{').skip(1).filter_map(|rest| rest.split('}').next());
        let matched = matchers.filter_map(|matcher| words(matcher).next());
        let labels: BTreeSet<String> =
            grouped.chain(matched).filter(|label| *label != "le").map(str::to_owned).collect();
        for metric in words(&expression).filter(|word| word.starts_with("fluxion_")) {
            asked.entry(metric.to_owned()).or_default().extend(labels.iter().cloned());
        }
    }
    asked
}

/// Fails where an alert or a panel asks for a metric, or a label of one, that is not in the text of `/metrics`.
pub(crate) fn all_exist(text: &str) {
    let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    for (metric, labels) in asked() {
        let of_metric = |line: &&&str| line.split(['{', ' ']).next() == Some(metric.as_str());
        let Some(sample) = samples.iter().find(of_metric) else {
            let name = metric.trim_start_matches("fluxion_").trim_end_matches("_total");
            let registered = format!("\"{name}\",");
            assert!(
                SOURCES.iter().any(|source| source.contains(&registered)),
                "no metric {metric} in {text}"
            );
            continue;
        };
        for label in labels {
            assert!(sample.contains(&format!("{label}=\"")), "{metric} has no label {label}: {sample}");
        }
    }
}

#[test]
fn expressions_are_found_and_taken_apart() {
    let asked = asked();
    assert!(asked.len() > 15, "{asked:?}");
    assert!(asked["fluxion_binds_total"].contains("outcome"));
    assert!(asked["fluxion_job_wait_seconds_bucket"].contains("queue"));
}

#[test]
fn every_alert_says_what_is_wrong_and_how_bad_it_is() {
    let rules: Value = serde_saphyr::from_str(&file("rules.yaml")).unwrap();
    let mut names = BTreeSet::new();
    for rule in
        rules["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap())
    {
        assert!(names.insert(rule["alert"].as_str().unwrap()), "duplicate {rule}");
        assert!(["warning", "critical"].contains(&rule["labels"]["severity"].as_str().unwrap()));
        for text in ["summary", "description"] {
            assert!(rule["annotations"][text].is_string(), "{rule}");
        }
    }
}
