//! Plays one case: applies its objects, does its steps, and looks at its checks after each.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::ListParams;
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::check::{World, holds, impossible};
use super::invariants::Invariants;
use super::model::{Case, Check, Step};
use super::report::{Report, Verdict};
use super::target::Target;
use super::{bind, cleanup, daemons, settle};
use crate::apply::Applier;
use crate::cluster::Cluster;
use crate::inspector::{Inspector, Settings};
use crate::nodes;
use crate::plugin::{Plugin, Ran};
use crate::wait;

/// How long checks may take to become true.
const PATIENCE: Duration = Duration::from_secs(10);
/// So long they must stay true.
const STABLE: Duration = Duration::from_millis(700);
const PAUSE: Duration = Duration::from_millis(250);
/// Within that time a Job's controller has made its Pods.
const MADE_WITHIN: Duration = Duration::from_secs(3);
/// What ends a Pod by itself.
const RUN_TIME: &str = "fluxion.flux-framework.org/run-time";

/// Plays the case on a cluster that holds nothing of another case, and leaves it empty again.
pub async fn play(cluster: &Cluster, case: &Case, report: &mut Report) -> Result<()> {
    let applier = Applier::new(cluster.client().await?);
    let settings = Settings { config: Some(config(case)), ..Settings::default() };
    let mut inspector = Inspector::start(cluster, &format!("inspector-{}", case.name), &settings).await?;
    let mut player = Player {
        cluster,
        case,
        applier: &applier,
        cancels: BTreeMap::new(),
        errors: Vec::new(),
        made: Vec::new(),
    };
    let played = player.run(&mut inspector, report).await;
    let stopped = inspector.stop().await;
    cleanup::clean(&applier, &player.made).await.context("emptying the cluster")?;
    played.and(stopped)
}

/// The configuration file of the case: JSON is YAML.
fn config(case: &Case) -> String {
    let mut settings = case.settings.clone();
    let policy = case.policy.as_deref().unwrap_or("easy");
    settings.entry("queues".to_owned()).or_insert_with(|| json!([{ "name": "default", "policy": policy }]));
    json!(settings).to_string()
}

struct Player<'a> {
    cluster: &'a Cluster,
    case: &'a Case,
    applier: &'a Applier,
    cancels: BTreeMap<usize, Ran>,
    /// Steps that could not be done.
    errors: Vec<String>,
    /// What it created itself.
    made: Vec<(GroupVersionKind, String, String)>,
}

impl Player<'_> {
    async fn run(&mut self, inspector: &mut Inspector, report: &mut Report) -> Result<()> {
        let mut invariants = Invariants::start(self.applier.client()).await?;
        self.apply(&self.case.objects).await.context("applying the objects")?;
        self.look(0, inspector, report).await?;
        invariants.look(self.applier.client(), inspector).await?;
        for (index, step) in self.case.steps.iter().enumerate() {
            let number = index + 1;
            if let Err(error) = self.step(number, step, inspector).await {
                self.errors.push(format!("step {number}: {error:#}"));
            }
            self.look(number, inspector, report).await?;
            invariants.look(self.applier.client(), inspector).await?;
        }
        for error in &self.errors {
            report.add(&self.case.name, "every step can be done", Verdict::Failed(error.clone()));
        }
        let healthy = invariants.held(self.applier.client(), inspector).await;
        for check in self.case.expect.iter().filter(|check| check.never.is_some()) {
            let verdict = match &healthy {
                Ok(()) => Verdict::Passed,
                Err(error) => Verdict::Failed(format!("{error:#}")),
            };
            report.add(&self.case.name, check.title(), verdict);
        }
        Ok(())
    }

    async fn step(&mut self, number: usize, step: &Step, inspector: &mut Inspector) -> Result<()> {
        match step {
            Step::Apply { objects, repeat, rejected } => {
                let copies: Vec<Value> = match repeat {
                    None => objects.clone(),
                    Some(count) => {
                        (0..*count).flat_map(|i| objects.iter().map(move |one| copy(one, i))).collect()
                    }
                };
                match (self.apply(&copies).await, rejected) {
                    (Err(error), false) => Err(error),
                    (Ok(()), true) => bail!("the API server took what it should refuse"),
                    _ => Ok(()),
                }
            }
            Step::Delete { object, namespace } => self.delete(object, or_default(namespace.as_ref())).await,
            Step::Patch { object, namespace, subresource, patch } => {
                let namespace = or_default(namespace.as_ref());
                for (kind, name) in self.objects(object, namespace).await? {
                    self.applier.patch(&kind, namespace, &name, subresource.as_deref(), patch).await?;
                }
                Ok(())
            }
            Step::Wait { seconds } => {
                tokio::time::sleep(Duration::from_secs(*seconds)).await;
                Ok(())
            }
            Step::BindForeign { pod, node, namespace } => {
                bind::bind(self.applier.client(), or_default(namespace.as_ref()), pod, node).await
            }
            Step::RestartInspector => inspector.restart_without_state(self.cluster).await,
            Step::Cancel { job, namespace, dry_run, r#as } => {
                let mut arguments = vec!["cancel", job, "-n", or_default(namespace.as_ref())];
                arguments.push(if *dry_run { "--dry-run" } else { "-y" });
                if let Some(user) = r#as {
                    arguments.extend(["--as", user]);
                }
                let ran = self.plugin(inspector)?.run(&arguments).await?;
                self.cancels.insert(number, ran);
                Ok(())
            }
        }
    }

    /// Creates the objects in order; Pods come only when the nodes before them take Pods.
    async fn apply(&mut self, objects: &[Value]) -> Result<()> {
        let (objects, daemons) = daemons::with_controllers(objects);
        if !self.case.in_order {
            // Ages count in seconds: what comes at one moment is created in one.
            let into = Timestamp::now().subsec_millisecond().unsigned_abs();
            tokio::time::sleep(Duration::from_millis(1000_u64.saturating_sub(into.into()))).await;
        }
        let mut new_nodes = false;
        for object in &objects {
            let is_node = object["kind"] == "Node";
            if new_nodes && !is_node {
                nodes::untainted(self.applier.client()).await?;
            }
            new_nodes = is_node;
            let made = self.applier.create(ready(object)).await?;
            if let Some(kind) = made.types.as_ref().and_then(|types| GroupVersionKind::try_from(types).ok()) {
                self.made.push((kind, made.namespace().unwrap_or_default(), made.name_any()));
            }
            if let Some(nodes) = daemons.of(object) {
                daemons::bind(self.applier, object, nodes).await?;
            }
            if object["kind"] == "Job" && self.case.in_order {
                self.members_of(object).await?;
            }
            if object["kind"] == "Namespace" {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                self.cluster.namespace_usable(self.applier.client(), name).await?;
            }
        }
        if new_nodes {
            nodes::untainted(self.applier.client()).await?;
        }
        Ok(())
    }

    /// Waits for the Pods of a Job that makes some at once: so that what comes first in the file arrives first.
    async fn members_of(&self, job: &Value) -> Result<()> {
        let spec = &job["spec"];
        if spec["suspend"] == true {
            return Ok(());
        }
        let count = |field: &str| spec[field].as_u64().unwrap_or(1);
        let wanted = usize::try_from(count("parallelism").min(count("completions")))?;
        let name = job["metadata"]["name"].as_str().unwrap_or_default();
        let namespace = job["metadata"]["namespace"].as_str().unwrap_or("default");
        let pods: Api<Pod> = Api::namespaced(self.applier.client().clone(), namespace);
        let mine = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={name}"));
        let what = format!("job/{name} has the Pods");
        let made = wait::until(&what, MADE_WITHIN, || async {
            let count = pods.list_metadata(&mine).await?.items.len();
            if count >= wanted { Ok(()) } else { bail!("it has {count} of {wanted}") }
        });
        // A Job may be written so that it gets none: the checks tell.
        let _ = made.await;
        Ok(())
    }

    async fn delete(&self, object: &str, namespace: &str) -> Result<()> {
        for (kind, name) in self.objects(object, namespace).await? {
            self.applier.delete(&kind, namespace, &name).await?;
        }
        Ok(())
    }

    /// The objects that a step names.
    async fn objects(&self, object: &str, namespace: &str) -> Result<Vec<(GroupVersionKind, String)>> {
        match Target::parse(object)? {
            Target::Object(kind, name) => Ok(vec![(kind, name)]),
            Target::Pods(selector) => {
                let pods: Api<Pod> = Api::namespaced(self.applier.client().clone(), namespace);
                let found = pods.list(&ListParams::default().labels(&selector)).await?;
                let kind = GroupVersionKind::gvk("", "v1", "Pod");
                let names = found.items.into_iter().filter_map(|pod| pod.metadata.name);
                Ok(names.map(|name| (kind.clone(), name)).collect())
            }
        }
    }

    fn plugin(&self, inspector: &Inspector) -> Result<Plugin> {
        inspector.plugin(self.cluster.kubeconfig())
    }

    /// Waits for rest, and looks at the checks that belong here until they hold together.
    async fn look(&self, step: usize, inspector: &Inspector, report: &mut Report) -> Result<()> {
        settle::settle(self.applier.client(), inspector).await?;
        let last = self.case.steps.len();
        let due: Vec<&Check> = self
            .case
            .expect
            .iter()
            .filter(|check| check.never.is_none() && check.after.unwrap_or(last) == step)
            .collect();
        if due.is_empty() {
            return Ok(());
        }
        let plugin = self.plugin(inspector)?;
        let world = World {
            cluster: Some(self.applier),
            server: inspector.server(),
            plugin: &plugin,
            cancels: &self.cancels,
        };
        let longest = due.iter().filter_map(|check| check.within_seconds).max().map(Duration::from_secs);
        let verdicts = until(&world, &due, longest.unwrap_or(PATIENCE)).await;
        for (check, verdict) in due.into_iter().zip(verdicts) {
            report.add(&self.case.name, check.title(), verdict);
        }
        Ok(())
    }
}

/// Looks until the checks hold together and go on to hold, or the patience is over.
pub(super) async fn until(world: &World<'_>, due: &[&Check], patience: Duration) -> Vec<Verdict> {
    let end = Instant::now() + patience;
    loop {
        let first = verdicts(world, due).await;
        if settled(&first) {
            tokio::time::sleep(STABLE).await;
            let again = verdicts(world, due).await;
            if settled(&again) || Instant::now() >= end {
                return again;
            }
        } else if Instant::now() >= end {
            return first;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Whether waiting on can't change anything for the better.
fn settled(verdicts: &[Verdict]) -> bool {
    !verdicts.iter().any(|verdict| matches!(verdict, Verdict::Failed(_)))
}

async fn verdicts(world: &World<'_>, checks: &[&Check]) -> Vec<Verdict> {
    let mut all = Vec::new();
    for check in checks {
        all.push(match holds(world, check).await {
            Ok(()) => Verdict::Passed,
            Err(error) => match impossible(world, check).await {
                Ok(Some(why)) => Verdict::Impossible(why),
                _ => Verdict::Failed(format!("{error:#}")),
            },
        });
    }
    all
}

fn or_default(namespace: Option<&String>) -> &str {
    namespace.map_or("default", String::as_str)
}

/// The object with {i} replaced.
fn copy(object: &Value, i: u32) -> Value {
    match object {
        Value::String(text) => Value::String(text.replace("{i}", &i.to_string())),
        Value::Array(items) => items.iter().map(|item| copy(item, i)).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), copy(value, i))).collect(),
        other => other.clone(),
    }
}

/// A node of a case is Ready unless it says otherwise, and has what it can allocate; a namespace is marked as a
/// case's own; the run time of a Job is that of its Pods, which fake kubelets carry out, and one that its deadline
/// cuts short is none.
fn ready(object: &Value) -> Value {
    let mut object = object.clone();
    match object["kind"].as_str() {
        Some("Node") => {
            if object["status"]["conditions"].is_null() {
                object["status"]["conditions"] = json!([nodes::ready()]);
            }
            if object["status"]["capacity"].is_null() {
                object["status"]["capacity"] = object["status"]["allocatable"].clone();
            }
        }
        Some("Pod") => {
            let run_time = object["metadata"]["annotations"][RUN_TIME].as_str().and_then(seconds);
            if run_time > object["spec"]["activeDeadlineSeconds"].as_u64()
                && object["spec"]["activeDeadlineSeconds"].is_u64()
                && let Some(annotations) = object["metadata"]["annotations"].as_object_mut()
            {
                annotations.remove(RUN_TIME);
            }
        }
        Some("Job") => {
            let run_time = object["metadata"]["annotations"][RUN_TIME].clone();
            if run_time.is_string() {
                object["spec"]["template"]["metadata"]["annotations"][RUN_TIME] = run_time;
            }
        }
        Some("Namespace") => object["metadata"]["labels"][cleanup::MARK] = json!("yes"),
        _ => {}
    }
    object
}

/// `90s`, `5m`, `1h` in seconds.
fn seconds(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_numbered() {
        let pod = json!({ "metadata": { "name": "w-{i}", "labels": { "rank": "{i}" } }, "n": 1 });
        assert_eq!(
            copy(&pod, 2),
            json!({ "metadata": { "name": "w-2", "labels": { "rank": "2" } }, "n": 1 })
        );
    }

    #[test]
    fn nodes_are_ready_unless_they_say_otherwise() {
        let node = ready(&json!({ "kind": "Node", "status": { "allocatable": { "cpu": "4" } } }));
        assert_eq!(node["status"]["conditions"][0]["status"], "True");
        assert_eq!(node["status"]["capacity"]["cpu"], "4");
        let down =
            json!({ "kind": "Node", "status": { "conditions": [{ "type": "Ready", "status": "False" }] } });
        assert_eq!(ready(&down)["status"]["conditions"][0]["status"], "False");
    }

    #[test]
    fn the_run_time_of_a_job_is_that_of_its_pods() {
        let job = json!({ "kind": "Job", "metadata": { "annotations": { RUN_TIME: "2s" } }, "spec": {} });
        assert_eq!(ready(&job)["spec"]["template"]["metadata"]["annotations"][RUN_TIME], "2s");
        let plain = json!({ "kind": "Job", "metadata": { "name": "a" } });
        assert_eq!(ready(&plain)["spec"], Value::Null);
    }

    #[test]
    fn a_run_time_beyond_the_deadline_is_none() {
        let pod = |run_time: &str| {
            ready(&json!({
                "kind": "Pod", "metadata": { "annotations": { RUN_TIME: run_time } },
                "spec": { "activeDeadlineSeconds": 60 }
            }))
        };
        assert_eq!(pod("1h")["metadata"]["annotations"], json!({}));
        assert_eq!(pod("30s")["metadata"]["annotations"][RUN_TIME], "30s");
        let free = json!({ "kind": "Pod", "metadata": { "annotations": { RUN_TIME: "1h" } } });
        assert_eq!(ready(&free), free);
    }

    #[test]
    fn settings_stand_beside_the_queue_or_in_its_place() {
        let case = |text: &str| -> Case {
            let rest = "{name: a, about: a, source: a, kind: a, objects: [], expect: [], ";
            serde_saphyr::from_str(&format!("{rest}{text}}}")).unwrap()
        };
        let both = config(&case("policy: fcfs, settings: {bindDeadline: 30s}"));
        assert_eq!(both, r#"{"bindDeadline":"30s","queues":[{"name":"default","policy":"fcfs"}]}"#);
        let own = config(&case("settings: {queues: [{name: default, queueDepth: 1}]}"));
        assert_eq!(own, r#"{"queues":[{"name":"default","queueDepth":1}]}"#);
    }
}
