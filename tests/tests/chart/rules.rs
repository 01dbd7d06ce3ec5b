//! Without any one rule of the `ClusterRole`, something fails that users see, and with all rules everything works.
//!
//! For each rule, a scenario is played without it: kube-apiserver refuses the inspector what the scenario needs, for each
//! of the rule's resources, and what it is to bring about does not happen. At the end, all scenarios succeed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fluxion_tests::admission;
use fluxion_tests::apply::Applier;
use fluxion_tests::inspector::Inspector;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::registration::SecurePort;
use fluxion_tests::{Cluster, Options, wait};
use kube::Client;
use serde_json::{Value, json};

use super::permissions::{
    Allowed, Asked, JOBS, Role, allowed, cancel_jobs, cluster_with_owners, groups, jobs_of_owners, may,
    one_of_each, refuse, refused_gang, suspended, volumes,
};

const SOON: Duration = Duration::from_mins(1);
const WEBHOOK: &str = "mutatingwebhookconfiguration/fluxion-inspector";
const API_SERVICE: &str = "apiservice/v1alpha1.fluxion.flux-framework.org";

/// What somebody sees of the inspector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scenario {
    /// It is ready.
    Ready,
    /// Why Pods can't be created is the reason of their job.
    Cause,
    Bound,
    /// A Pod that does not fit has a condition, or an Event.
    Told,
    Noted,
    /// A volume is asked for, or reserved.
    Volumes,
    /// A group of either kind has a status.
    Grouped,
    /// A partially bound gang is released, though evictions are refused.
    Released,
    Ungated,
    /// What was suspended is resumed.
    Resumed,
    /// The owners of jobs are deleted for their users.
    Cancelled,
    /// A user with a new token is answered.
    Answered,
    /// The authority of the webhook or of the API is announced.
    Announced(&'static str),
}

impl Scenario {
    /// Which one shows what the rule is for.
    fn of(rule: &[Allowed]) -> Result<Self> {
        let first = rule.first().context("an empty rule")?;
        let has = |verb: &str| rule.iter().any(|one| one.verb == verb);
        Ok(match first.resource.as_str() {
            "events" if has("list") => Self::Cause,
            _ if has("list") => Self::Ready,
            "pods/binding" => Self::Bound,
            "pods/status" => Self::Told,
            "events" => Self::Noted,
            "persistentvolumeclaims" => Self::Volumes,
            "podgroups/status" => Self::Grouped,
            "pods" if has("delete") => Self::Released,
            "pods" => Self::Ungated,
            "tokenreviews" | "subjectaccessreviews" => Self::Answered,
            "apiservices" => Self::Announced(API_SERVICE),
            "mutatingwebhookconfigurations" => Self::Announced(WEBHOOK),
            _ if has("patch") => Self::Resumed,
            _ if has("delete") => Self::Cancelled,
            _ => bail!("no scenario needs {rule:?}"),
        })
    }
}

struct World {
    cluster: Cluster,
    client: Client,
    applier: Applier,
    inspector: Inspector,
    port: SecurePort,
    /// Of somebody who may do everything.
    token: String,
    askers: usize,
    /// The length of the audit log when a rule was last taken away.
    logged: usize,
    /// How many objects of a resource there were when they were to be cancelled without the rule.
    before: BTreeMap<String, usize>,
}

impl World {
    async fn start() -> Result<Self> {
        let (cluster, client, applier) = cluster_with_owners(Options::default().with_scheduler()).await?;
        refuse(&applier).await?;
        let port = SecurePort::reserve()?;
        let access =
            admission::install_with(&cluster, Some(&port), &["--set", "cancel.enabled=true"]).await?;
        let mut settings = port.settings();
        settings.config = Some("bindDeadline: 5s\nonPartialBind: release\n".to_owned());
        settings.arguments.extend(admission::webhook_flags());
        settings.arguments.push("--allow-cancel".to_owned());
        port.register_ahead(&applier).await?;
        let inspector = Inspector::start_as(&cluster, "inspector", &settings, access).await?;
        port.becomes_available(&client, true).await?;
        let mut world = Self {
            cluster,
            client,
            applier,
            inspector,
            port,
            token: String::new(),
            askers: 0,
            logged: 0,
            before: BTreeMap::new(),
        };
        world.token = world.asker().await?;
        suspended(&world.cluster, &world.applier).await?;
        jobs_of_owners(&world.applier).await?;
        // It is none of ours here.
        world.cluster.kubectl(&["delete", "job", "resumed"]).await?;
        Ok(world)
    }

    /// The token of somebody new who may do everything.
    async fn asker(&mut self) -> Result<String> {
        self.askers += 1;
        let name = format!("asker-{}", self.askers);
        self.cluster.kubectl(&["create", "serviceaccount", &name]).await?;
        let account = format!("--serviceaccount=default:{name}");
        let root = ["create", "clusterrolebinding", &name, "--clusterrole=cluster-admin", &account];
        self.cluster.kubectl(&root).await?;
        self.cluster.service_account("default", &name).await?.token.context("a service account has a token")
    }

    async fn restart(&mut self) -> Result<()> {
        self.inspector.launch(&self.cluster)?;
        self.inspector.up().await
    }

    /// Asks for the jobs, as somebody.
    async fn ask(&self, token: &str) -> Result<()> {
        let http = self.port.direct(&self.client, None).await?;
        let answer = http.get(format!("{}{JOBS}", self.port.url())).bearer_auth(token).send().await?;
        ensure!(answer.status().is_success(), "{answer:?}");
        Ok(())
    }

    /// Makes what the scenario is about, so that the inspector acts.
    async fn begin(&mut self, scenario: Scenario, rule: &[Allowed]) -> Result<()> {
        match scenario {
            Scenario::Ready => self.restart().await,
            Scenario::Cause => {
                self.restart().await?;
                self.refused(rule).await?;
                let mut job = PodManifest::new("t").request("cpu", "10m").gang_job("uncreated", 2);
                job["metadata"]["namespace"] = json!("tight");
                self.cluster.kubectl(&["create", "namespace", "tight"]).await?;
                let quota = ["--namespace", "tight", "create", "quota", "none", "--hard=pods=0"];
                self.cluster.kubectl(&quota).await?;
                self.applier.create(job).await.map(drop)
            }
            Scenario::Bound => {
                let pod = PodManifest::new("bound").request("cpu", "10m").build();
                self.applier.create(pod).await.map(drop)
            }
            Scenario::Told | Scenario::Noted => {
                let name = format!("{scenario:?}").to_lowercase();
                self.applier.create(PodManifest::new(&name).request("cpu", "10k").build()).await.map(drop)
            }
            Scenario::Volumes => volumes(&self.applier).await,
            Scenario::Grouped => groups(&self.applier).await,
            Scenario::Released => refused_gang(&self.applier).await,
            Scenario::Ungated => {
                let pod = PodManifest::new("ungated").namespace("taken-in").request("cpu", "10m");
                self.applier.create(pod.spec("schedulerName", Value::Null).build()).await.map(drop)
            }
            // Each of these rules makes one of each kind; only those of the rule have to wait.
            Scenario::Resumed => one_of_each(&self.applier, &first(rule)).await,
            Scenario::Cancelled => {
                for one in resources(rule) {
                    let count = self.living(&one).await?;
                    self.before.insert(one, count);
                }
                self.cancel(rule).await
            }
            Scenario::Answered => {
                // What was once found is remembered for a while.
                self.token = self.asker().await?;
                // The outcome shows how it was answered.
                let _ = self.ask(&self.token).await;
                Ok(())
            }
            Scenario::Announced(object) => {
                let mut paths = vec!["/spec/caBundle".to_owned()];
                if object == WEBHOOK {
                    let names = self.values(&[object], "{.webhooks[*].name}").await?;
                    paths = (0..names).map(|at| format!("/webhooks/{at}/clientConfig/caBundle")).collect();
                }
                let patch: Vec<_> =
                    paths.iter().map(|path| json!({ "op": "remove", "path": path })).collect();
                let patch = serde_json::to_string(&patch)?;
                self.cluster.kubectl(&["patch", object, "--type=json", "-p", &patch]).await?;
                self.restart().await
            }
        }
    }

    async fn cancel(&self, rule: &[Allowed]) -> Result<()> {
        let http = self.port.direct(&self.client, None).await?;
        let wanted = |target: &Value| rule.iter().any(|one| target["resource"] == one.resource);
        cancel_jobs(&http, &self.port.url(), &self.token, wanted).await
    }

    /// The values at a `JSONPath` of objects.
    async fn get(&self, arguments: &[&str], path: &str) -> Result<String> {
        let path = format!("jsonpath={path}");
        self.cluster.kubectl(&[&["get"], arguments, &["-o", &path]].concat()).await
    }

    /// How many there are.
    async fn values(&self, arguments: &[&str], path: &str) -> Result<usize> {
        Ok(self.get(arguments, path).await?.split_whitespace().count())
    }

    /// How many objects there are that are not being deleted.
    async fn living(&self, resource: &str) -> Result<usize> {
        let all = self.values(&["--all-namespaces", resource], "{.items[*].metadata.name}").await?;
        let deleted = "{.items[*].metadata.deletionTimestamp}";
        Ok(all.saturating_sub(self.values(&["--all-namespaces", resource], deleted).await?))
    }

    /// Whether what it was to bring about has come about.
    async fn outcome(&self, scenario: Scenario, rule: &[Allowed]) -> Result<()> {
        let there = async |arguments: &[&str], path: &str| {
            let text = self.get(arguments, path).await?;
            ensure!(!text.is_empty(), "{arguments:?} has no {path}");
            anyhow::Ok(())
        };
        match scenario {
            Scenario::Ready => {
                let (ready, text) = self.inspector.answers("/readyz").await?;
                ensure!(ready, "{text}");
                Ok(())
            }
            Scenario::Cause => {
                let job = self.inspector.job("tight", "job/uncreated").await?;
                let text = serde_json::to_string(&job.status.reason)?;
                ensure!(text.contains("exceeded quota"), "{text}");
                Ok(())
            }
            Scenario::Bound => there(&["pod", "bound"], "{.spec.nodeName}").await,
            Scenario::Told => {
                there(&["pod", "told"], "{.status.conditions[?(@.type=='PodScheduled')].reason}").await
            }
            Scenario::Noted => {
                there(&["events", "--field-selector=involvedObject.name=noted"], "{.items[*].reason}").await
            }
            Scenario::Volumes => {
                let selected = "{.metadata.annotations.volume\\.kubernetes\\.io/selected-node}";
                there(&["pvc", "provisioned"], selected).await?;
                there(&["pv", "existing"], "{.spec.claimRef.name}").await
            }
            Scenario::Grouped => {
                let native = "podgroups.scheduling.k8s.io";
                there(&[native, "native"], "{.status.conditions[*].type}").await?;
                there(&["podgroups.scheduling.x-k8s.io", "installed"], "{.status.phase}").await
            }
            Scenario::Released => {
                let left =
                    self.get(&["pod", "--ignore-not-found", "unevictable"], "{.metadata.name}").await?;
                ensure!(left.is_empty(), "{left} is there");
                Ok(())
            }
            Scenario::Ungated => {
                let gates =
                    self.get(&["--namespace=taken-in", "pod", "ungated"], "{.spec.schedulingGates}").await?;
                ensure!(gates.is_empty(), "{gates}");
                Ok(())
            }
            Scenario::Resumed => {
                let name = first(rule);
                for one in resources(rule) {
                    let path = format!("{{.spec{}}}", suspend_of(&one));
                    let text = self.get(&["--namespace=taken-in", &one, &name], &path).await?;
                    ensure!(text == "false", "{one}: suspend is {text}");
                }
                Ok(())
            }
            Scenario::Cancelled => {
                for one in resources(rule) {
                    let (before, now) = (self.before.get(&one), self.living(&one).await?);
                    ensure!(before.is_some_and(|before| now < *before), "{one}: {now} after {before:?}");
                }
                Ok(())
            }
            Scenario::Answered => self.ask(&self.token).await,
            Scenario::Announced(WEBHOOK) => {
                let names = self.values(&[WEBHOOK], "{.webhooks[*].name}").await?;
                let announced = self.values(&[WEBHOOK], "{.webhooks[*].clientConfig.caBundle}").await?;
                ensure!(names > 0 && announced == names, "{announced} of {names} webhooks");
                Ok(())
            }
            Scenario::Announced(object) => there(&[object], "{.spec.caBundle}").await,
        }
    }

    /// Waits until the inspector was refused something of each of the rule's resources, since the rule was taken away.
    async fn refused(&self, rule: &[Allowed]) -> Result<()> {
        // A refused eviction falls back to a deletion, so nothing depends on this right.
        let rule = rule.iter().filter(|one| one.resource != "pods/eviction");
        let wanted: BTreeSet<(&str, &str)> = rule.map(|one| (&*one.group, &*one.resource)).collect();
        wait::until(&format!("{wanted:?} are refused"), SOON, || async {
            let log = self.cluster.audit_log()?;
            let refused = |event: &&Value| event["annotations"]["authorization.k8s.io/decision"] == "forbid";
            let seen: BTreeSet<(String, String)> =
                log.iter().skip(self.logged).filter(refused).map(resource).collect();
            let left: Vec<_> = wanted
                .iter()
                .filter(|(group, resource)| !seen.contains(&((*group).to_owned(), (*resource).to_owned())))
                .collect();
            ensure!(left.is_empty(), "{left:?} are not");
            Ok(())
        })
        .await
    }
}

/// Group, and resource with its subresource, of a request.
fn resource(event: &Value) -> (String, String) {
    let text = |key: &str| event["objectRef"][key].as_str().unwrap_or_default().to_owned();
    let subresource = text("subresource");
    let resource = text("resource");
    let whole = if subresource.is_empty() { resource } else { format!("{resource}/{subresource}") };
    (text("apiGroup"), whole)
}

/// The name of the objects of a rule's scenario.
fn first(rule: &[Allowed]) -> String {
    rule.first().map(|one| one.resource.clone()).unwrap_or_default()
}

/// `RESOURCE.GROUP` of all of them.
fn resources(rule: &[Allowed]) -> BTreeSet<String> {
    rule.iter().map(|one| format!("{}.{}", one.resource, one.group)).collect()
}

/// Where a kind has its field `suspend`, below `spec`.
fn suspend_of(resource: &str) -> &'static str {
    match resource {
        "mpijobs.kubeflow.org" | "pytorchjobs.kubeflow.org" => ".runPolicy.suspend",
        _ => ".suspend",
    }
}

/// Waits until kube-apiserver goes by the rules as they are now.
async fn applies(client: &Client, rule: &[Allowed], granted: bool) -> Result<()> {
    for one in rule {
        let asked = Asked {
            verb: one.verb.clone(),
            group: one.group.clone(),
            resource: one.resource.clone(),
            namespace: String::new(),
            name: one.names.first().cloned().unwrap_or_default(),
        };
        wait::until(&format!("{asked:?} is granted: {granted}"), SOON, || async {
            ensure!(may(client, &asked).await? == granted, "it is not so yet");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Plays the scenario without the rule.
async fn without(world: &mut World, role: &Role, rule: &Value, scenario: Scenario) -> Result<()> {
    let parts = allowed(rule);
    let mut others = role.rules();
    others.retain(|other| other != rule);
    ensure!(others.len() + 1 == role.rules().len(), "there twice");
    role.set(&world.cluster, &others).await?;
    applies(&world.client, &parts, false).await?;
    world.logged = world.cluster.audit_log()?.len();
    world.begin(scenario, &parts).await?;
    world.refused(&parts).await?;
    let outcome = world.outcome(scenario, &parts).await;
    let Err(error) = outcome else { bail!("{scenario:?} succeeds") };
    if scenario == Scenario::Ready {
        let text = error.to_string();
        let missing: Vec<_> = parts
            .iter()
            .filter(|one| !text.contains(&format!("not allowed to list {}", one.resource)))
            .collect();
        ensure!(missing.is_empty(), "{missing:?} are not in '{text}'");
    }
    role.set(&world.cluster, &role.rules()).await?;
    applies(&world.client, &parts, true).await
}

/// Without the verb watch, each resource is named, as it is without list.
async fn without_watch(world: &mut World, role: &Role) -> Result<()> {
    let mut without = role.rules();
    let mut watched = Vec::new();
    for rule in &mut without {
        let parts = allowed(rule);
        if Scenario::of(&parts)? == Scenario::Ready {
            watched.extend(parts.into_iter().filter(|one| one.verb == "watch"));
            rule["verbs"].as_array_mut().context("a rule has verbs")?.retain(|verb| verb != "watch");
        }
    }
    role.set(&world.cluster, &without).await?;
    applies(&world.client, &watched, false).await?;
    world.restart().await?;
    wait::until("it says that it may watch nothing", SOON, || async {
        let (ready, text) = world.inspector.answers("/readyz").await?;
        let named = |one: &&Allowed| !text.contains(&format!("not allowed to watch {}", one.resource));
        let missing: Vec<_> = watched.iter().filter(named).collect();
        ensure!(!ready && missing.is_empty(), "{missing:?} are not in '{text}'");
        Ok(())
    })
    .await?;
    role.set(&world.cluster, &role.rules()).await?;
    applies(&world.client, &watched, true).await
}

/// With all rules, these scenarios succeed.
async fn with_all(world: &World, rules: &[Value]) -> Result<()> {
    for rule in rules {
        let parts = allowed(rule);
        let scenario = Scenario::of(&parts)?;
        if scenario == Scenario::Noted {
            // A lost Event is not repeated, as the Pod has the condition. This one is about something else.
            let unknown = ["annotate", "pod", "noted", "fluxion.flux-framework.org/colour=red"];
            world.cluster.kubectl(&unknown).await?;
        }
        if scenario == Scenario::Cancelled && parts.iter().any(|one| one.resource == "podgroups") {
            // Their Pods were deleted, so that there is no job without others.
            let again = PodManifest::new("again").request("cpu", "10m");
            let native =
                again.named("native-again").spec("schedulingGroup", json!({ "podGroupName": "native" }));
            let installed =
                again.named("installed-again").label("scheduling.x-k8s.io/pod-group", "installed");
            for pod in [native, installed] {
                world.applier.create(pod.build()).await?;
            }
        }
        wait::until(&format!("{scenario:?} succeeds with {rule}"), SOON, || async {
            if scenario == Scenario::Cancelled {
                world.cancel(&parts).await?;
            }
            world.outcome(scenario, &parts).await
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn without_any_one_rule_a_scenario_fails() {
    let mut world = World::start().await.unwrap();
    let role = Role::read(&world.cluster, "clusterrole").await.unwrap();
    let scenario = |rule: &Value| Scenario::of(&allowed(rule)).unwrap();
    // Those for which the inspector is restarted come first, and those that end what others have made last.
    let mut rules = role.rules();
    rules.sort_by_key(|rule| match scenario(rule) {
        Scenario::Ready | Scenario::Cause | Scenario::Announced(_) => 0,
        Scenario::Cancelled => 2,
        _ => 1,
    });
    let restarting =
        |rule: &Value| matches!(scenario(rule), Scenario::Ready | Scenario::Cause | Scenario::Announced(_));
    let (starts, others) = rules.split_at(rules.partition_point(restarting));
    let (others, cancels) =
        others.split_at(others.partition_point(|rule| scenario(rule) != Scenario::Cancelled));
    assert!(!starts.is_empty() && !others.is_empty() && !cancels.is_empty());
    let play = async |world: &mut World, rules: &[Value]| {
        for rule in rules {
            let began = Instant::now();
            let scenario = scenario(rule);
            let played = without(world, &role, rule, scenario).await;
            played.with_context(|| format!("without {rule}")).unwrap();
            println!("{scenario:?}: {:.1?} {rule}", began.elapsed());
        }
    };
    play(&mut world, starts).await;
    without_watch(&mut world, &role).await.unwrap();
    world.inspector.ready().await.unwrap();
    play(&mut world, others).await;
    world.inspector.healthy().unwrap();
    world.inspector.restart_without_state(&world.cluster).await.unwrap();
    with_all(&world, starts).await.unwrap();
    with_all(&world, others).await.unwrap();
    play(&mut world, cancels).await;
    with_all(&world, cancels).await.unwrap();
    world.inspector.healthy().unwrap();
}
