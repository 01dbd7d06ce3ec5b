//! The inspector's roles are enough for what it does, and each part of each of their rules is needed.
//!
//! One scenario makes the inspector do everything that it does to an API server, with the rights of the chart. What it
//! asked, and that nothing was refused, is read from kube-apiserver's audit log. Then each rule is taken away in turn,
//! and kube-apiserver asked whether what was seen would still be allowed.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use fluxion_tests::admission;
use fluxion_tests::admission::label;
use fluxion_tests::apply::{Applier, documents};
use fluxion_tests::helm::{Helm, NAMESPACE, RELEASE, chart, path};
use fluxion_tests::inspector::Inspector;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::registration::SecurePort;
use fluxion_tests::{Cluster, Options, nodes, wait};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};

const ACCOUNT: &str = "fluxion-inspector";
pub(super) const USER: &str = "system:serviceaccount:fluxion-system:fluxion-inspector";
pub(super) const JOBS: &str = "/apis/fluxion.flux-framework.org/v1alpha1/fluxionjobs";
/// Authorities are looked at once a minute.
const SOON: Duration = Duration::from_mins(2);
/// Of this name, bindings or evictions are refused by the cluster's policy.
const REFUSED: [(&str, &str); 2] = [("pods/binding", "unbindable"), ("pods/eviction", "unevictable")];

/// One request as RBAC sees it; `name` is empty where the request names none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Asked {
    pub(super) verb: String,
    pub(super) group: String,
    /// With its subresource.
    pub(super) resource: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// One verb on one resource, with the names that it is restricted to.
#[derive(Clone, Debug)]
pub(super) struct Allowed {
    pub(super) verb: String,
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) names: Vec<String>,
}

impl Allowed {
    fn covers(&self, asked: &Asked) -> bool {
        self.verb == asked.verb
            && self.group == asked.group
            && self.resource == asked.resource
            && (self.names.is_empty() || self.names.contains(&asked.name))
    }

    fn text(&self) -> String {
        format!("{} {} in '{}'", self.verb, self.resource, self.group)
    }
}

/// The rule, verb by verb and resource by resource.
pub(super) fn allowed(rule: &Value) -> Vec<Allowed> {
    let list = |key: &str| -> Vec<String> {
        let all = rule[key].as_array().cloned().unwrap_or_default();
        all.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect()
    };
    let mut allowed = Vec::new();
    for group in list("apiGroups") {
        for resource in list("resources") {
            for verb in list("verbs") {
                let (group, resource) = (group.clone(), resource.clone());
                allowed.push(Allowed { verb, group, resource, names: list("resourceNames") });
            }
        }
    }
    allowed
}

/// What the inspector has asked of resources so far. Fails where something was refused for want of rights.
fn asked(cluster: &Cluster) -> Result<BTreeSet<Asked>> {
    let mut asked = BTreeSet::new();
    for event in cluster.audit_log()? {
        let decision = &event["annotations"]["authorization.k8s.io/decision"];
        ensure!(decision == "allow", "refused: {event}");
        let object = &event["objectRef"];
        if object.is_null() {
            continue;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let resource = match object["subresource"].as_str() {
            Some(subresource) => format!("{}/{subresource}", text(&object["resource"])),
            None => text(&object["resource"]),
        };
        // The log names a created object by its body, RBAC by its address.
        let created = event["verb"] == "create" && object["subresource"].is_null();
        let one = Asked {
            verb: text(&event["verb"]),
            group: text(&object["apiGroup"]),
            resource,
            namespace: text(&object["namespace"]),
            name: if created { String::new() } else { text(&object["name"]) },
        };
        // An object that is created by being applied has to be allowed both.
        if event["verb"] == "patch" && event["responseStatus"]["code"] == 201 {
            asked.insert(Asked { verb: "create".to_owned(), ..one.clone() });
        }
        asked.insert(one);
    }
    Ok(asked)
}

/// Whether the inspector may do that, by kube-apiserver's word.
pub(super) async fn may(client: &Client, asked: &Asked) -> Result<bool> {
    let (resource, subresource) = asked.resource.split_once('/').unwrap_or((&asked.resource, ""));
    let review: SubjectAccessReview = serde_json::from_value(json!({
        "metadata": {},
        "spec": {
            "user": USER,
            "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{NAMESPACE}"), "system:authenticated"],
            "resourceAttributes": {
                "verb": asked.verb, "group": asked.group, "resource": resource, "subresource": subresource,
                "namespace": asked.namespace, "name": asked.name,
            },
        },
    }))?;
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// A policy of the cluster that refuses one verb on a Pod of this name.
fn refusal(resource: &str, pod: &str) -> [Value; 2] {
    let api_version = "admissionregistration.k8s.io/v1";
    let policy = json!({
        "apiVersion": api_version,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": pod },
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource],
            }] },
            "validations": [{ "expression": format!("request.name != '{pod}'"), "reason": "Forbidden" }],
        },
    });
    let binding = json!({
        "apiVersion": api_version,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": pod },
        "spec": { "policyName": pod, "validationActions": ["Deny"] },
    });
    [policy, binding]
}

/// What is to be refused, is from now on.
pub(super) async fn refuse(applier: &Applier) -> Result<()> {
    applier.create_all(REFUSED.iter().flat_map(|(resource, pod)| refusal(resource, pod))).await
}

/// A gang of which one Pod can't be bound and one of the others not be evicted.
pub(super) async fn refused_gang(applier: &Applier) -> Result<()> {
    let pod = PodManifest::new("member").request("cpu", "100m").group("refused", 3);
    for name in ["evictable", "unbindable", "unevictable"] {
        applier.create(pod.named(name).build()).await?;
    }
    Ok(())
}

/// Gangs of both kinds of PodGroup, and a Pod that is too large.
pub(super) async fn groups(applier: &Applier) -> Result<()> {
    let member = |name: &str| PodManifest::new(name).request("cpu", "100m");
    let native = json!({
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": { "name": "native" },
        "spec": { "schedulingPolicy": { "gang": { "minCount": 1 } } },
    });
    let installed = json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": { "name": "installed" },
        "spec": { "minMember": 1 },
    });
    let of_native = member("native").spec("schedulingGroup", json!({ "podGroupName": "native" }));
    let of_installed = member("installed").label("scheduling.x-k8s.io/pod-group", "installed");
    let large = PodManifest::new("large").request("cpu", "10k");
    for object in [native, installed, of_native.build(), of_installed.build(), large.build()] {
        applier.create(object).await?;
    }
    Ok(())
}

/// A Pod with a claim for which a volume is to be provisioned, and one with a claim for a volume that exists.
pub(super) async fn volumes(applier: &Applier) -> Result<()> {
    let named = |api_version: &str, kind: &str, name: &str| json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name } });
    let mut volume = named("v1", "PersistentVolume", "existing");
    volume["spec"] = json!({
        "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": "existing",
        "hostPath": { "path": "/x" },
    });
    applier.create(volume).await?;
    for (name, provisioner) in [("existing", "kubernetes.io/no-provisioner"), ("provisioned", "csi.test")] {
        let mut class = named("storage.k8s.io/v1", "StorageClass", name);
        class["provisioner"] = json!(provisioner);
        class["volumeBindingMode"] = json!("WaitForFirstConsumer");
        let mut claim = named("v1", "PersistentVolumeClaim", name);
        claim["spec"] = json!({
            "storageClassName": name, "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
        });
        let mounts = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": name } }]);
        let pod = PodManifest::new(&format!("mounts-{name}")).spec("volumes", mounts).build();
        for object in [class, claim, pod] {
            applier.create(object).await?;
        }
    }
    Ok(())
}

/// A namespace in which a Job and one of each other kind that mode suspend suspends are resumed, and the Job's Pod is
/// pinned.
pub(super) async fn suspended(cluster: &Cluster, applier: &Applier) -> Result<()> {
    cluster.kubectl(&["create", "namespace", "taken-in"]).await?;
    label(cluster, "taken-in", "suspend").await?;
    one_of_each(applier, "one").await
}

/// A Job and one of each other kind that mode suspend suspends, of this name, in the namespace made for them.
pub(super) async fn one_of_each(applier: &Applier, name: &str) -> Result<()> {
    let mut job = PodManifest::new("t").request("cpu", "10m").spec("schedulerName", Value::Null).job(name, 1);
    job["metadata"]["namespace"] = json!("taken-in");
    applier.create(job).await?;
    let template = json!({ "spec": { "containers": [{ "name": "c", "image": "pause" }] } });
    let set = json!({ "replicas": 1, "template": template });
    let ray = json!({ "headGroupSpec": { "template": template } });
    let jobs = json!([{ "name": "j", "template": { "spec": { "template": template } } }]);
    let of_train_job = json!({ "suspend": true, "replicatedJobs": jobs });
    let kinds = [
        ("jobset.x-k8s.io/v1alpha2", "JobSet", json!({ "replicatedJobs": jobs })),
        ("kubeflow.org/v2beta1", "MPIJob", json!({ "mpiReplicaSpecs": { "Worker": set } })),
        ("kubeflow.org/v1", "PyTorchJob", json!({ "pytorchReplicaSpecs": { "Worker": set } })),
        ("ray.io/v1", "RayCluster", ray.clone()),
        ("ray.io/v1", "RayJob", json!({ "shutdownAfterJobFinishes": true, "rayClusterSpec": ray })),
    ];
    for (api_version, kind, spec) in kinds {
        let metadata = json!({ "name": name, "namespace": "taken-in" });
        applier
            .create(json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec }))
            .await?;
    }
    // Its controller creates a JobSet.
    let (api_version, kind) = ("trainer.kubeflow.org/v1alpha1", "TrainJob");
    let mut train_job = json!({ "apiVersion": api_version, "kind": kind, "spec": {} });
    train_job["metadata"] = json!({ "name": name, "namespace": "taken-in" });
    let uid = applier.create(train_job).await?.metadata.uid;
    let mut set = json!({ "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": of_train_job });
    set["metadata"] = json!({ "name": format!("train-{name}"), "namespace": "taken-in", "ownerReferences": [{
        "apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true }] });
    applier.create(set).await?;
    Ok(())
}

/// Annotates a Pod in turn with two annotations that mean nothing, so that the same Events are due again and again.
async fn confuse(cluster: &Cluster, round: usize) -> Result<()> {
    let one = ["fluxion.flux-framework.org/colour", "fluxion.flux-framework.org/shade"];
    let (there, gone) = (format!("{}=x", one[round % 2]), format!("{}-", one[(round + 1) % 2]));
    cluster.kubectl(&["annotate", "pod", "large", &there, &gone]).await.map(drop)
}

/// Binds Pods of the inspector at the same time as the inspector does, so that some of its bindings come too late.
async fn race(client: &Client, applier: &Applier, round: usize) -> Result<()> {
    let names: Vec<String> = (0..20).map(|index| format!("contested-{round}-{index}")).collect();
    let one = |name: String| async move {
        applier.create(PodManifest::new(&name).request("cpu", "10m").build()).await?;
        let body = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": { "name": name },
            "target": { "apiVersion": "v1", "kind": "Node", "name": "n2" },
        });
        let request = http::Request::post(format!("/api/v1/namespaces/default/pods/{name}/binding"))
            .header("Content-Type", "application/json")
            .body(body.to_string().into_bytes())?;
        // Who loses is told so; either may.
        let _ = client.request_text(request).await;
        anyhow::Ok(())
    };
    for result in futures::future::join_all(names.into_iter().map(one)).await {
        result?;
    }
    Ok(())
}

/// A role of the chart, and the address of its object.
pub(super) struct Role {
    kind: &'static str,
    object: Value,
}

impl Role {
    pub(super) async fn read(cluster: &Cluster, kind: &'static str) -> Result<Self> {
        let text = cluster.kubectl(&["--namespace", NAMESPACE, "get", kind, ACCOUNT, "-o", "json"]).await?;
        Ok(Self { kind, object: serde_json::from_str(&text)? })
    }

    pub(super) fn rules(&self) -> Vec<Value> {
        self.object["rules"].as_array().cloned().unwrap_or_default()
    }

    pub(super) async fn set(&self, cluster: &Cluster, rules: &[Value]) -> Result<()> {
        let patch = json!({ "rules": rules }).to_string();
        let arguments = ["--namespace", NAMESPACE, "patch", self.kind, ACCOUNT, "--type=merge", "-p", &patch];
        cluster.kubectl(&arguments).await.map(drop)
    }
}

/// Takes each rule away, but for those `besides`, and fails where everything that was seen would still be allowed without it.
async fn each_rule_is_needed(
    cluster: &Cluster,
    client: &Client,
    seen: &BTreeSet<Asked>,
    role: &Role,
    besides: &[Value],
) -> Result<()> {
    let rules = role.rules();
    for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| !besides.contains(rule)) {
        let allowed = allowed(rule);
        let one = seen.iter().find(|asked| allowed.iter().any(|allowed| allowed.covers(asked)));
        let one = one.with_context(|| format!("nothing uses {rule}"))?;
        ensure!(may(client, one).await?, "{one:?} is refused");
        let mut others = rules.clone();
        others.remove(index);
        role.set(cluster, &others).await?;
        wait::until(&format!("{one:?} is refused without {rule}"), Duration::from_secs(10), || async {
            if may(client, one).await? {
                bail!("it is allowed")
            }
            Ok(())
        })
        .await?;
    }
    role.set(cluster, &rules).await
}

/// A cluster with two nodes and all kinds of owners and groups, where what the inspector asks for is recorded.
pub(super) async fn cluster_with_owners(options: Options) -> Result<(Cluster, Client, Applier)> {
    let cluster = Cluster::start(options.with_pod_group_crd().with_audit_of(USER)).await?;
    let client = cluster.client().await?;
    nodes::create(&client, &[NodeSpec::new("n1"), NodeSpec::new("n2")]).await?;
    let applier = Applier::new(client.clone());
    applier.apply_yaml(include_str!("../../crds/owners.yaml")).await?;
    cluster.serves_all_kinds().await?;
    Ok((cluster, client, applier))
}

async fn start() -> Result<(Cluster, Client, Applier, Inspector)> {
    let (cluster, client, applier) = cluster_with_owners(Options::default()).await?;
    refuse(&applier).await?;
    let helm = Helm::of(cluster.kubeconfig()).await?;
    let values = ["--set", "admission.enabled=true"];
    helm.ask(&[&["install", RELEASE, path(&chart())?, "--create-namespace"], &values[..]].concat()).await?;
    let port = SecurePort::reserve()?;
    let mut settings = port.settings();
    settings.config = Some("bindDeadline: 5s\nonPartialBind: release\n".to_owned());
    settings.arguments.extend(["--namespace".to_owned(), NAMESPACE.to_owned()]);
    let access = cluster.service_account(NAMESPACE, ACCOUNT).await?;
    let token = access.token.clone().context("a service account has a token")?;
    let inspector = Inspector::start_as(&cluster, "inspector", &settings, access).await?;
    // The chart's leads to Pods, in which nothing runs here.
    cluster.kubectl(&["--namespace", NAMESPACE, "delete", "service", "fluxion-inspector"]).await?;
    port.register(&applier).await?;
    // Who that is, and whether they may, has to be asked.
    let asked = port.direct(&client, None).await?.get(format!("{}{JOBS}", port.url())).bearer_auth(token);
    let answer = asked.send().await?;
    ensure!(answer.status() == 403, "{answer:?}");
    Ok((cluster, client, applier, inspector))
}

#[tokio::test]
async fn the_roles_are_enough_and_every_rule_is_needed() {
    let (cluster, client, applier, mut inspector) = start().await.unwrap();
    groups(&applier).await.unwrap();
    volumes(&applier).await.unwrap();
    refused_gang(&applier).await.unwrap();
    suspended(&cluster, &applier).await.unwrap();
    let delete = ["--namespace", NAMESPACE, "delete", "secret", "fluxion-inspector-replicas"];
    cluster.kubectl(&delete).await.unwrap();
    let roles =
        [Role::read(&cluster, "clusterrole").await.unwrap(), Role::read(&cluster, "role").await.unwrap()];
    let rules: Vec<Allowed> = roles.iter().flat_map(Role::rules).flat_map(|rule| allowed(&rule)).collect();

    let unused = |seen: &BTreeSet<Asked>| -> Vec<String> {
        let unused = rules.iter().filter(|allowed| !seen.iter().any(|asked| allowed.covers(asked)));
        unused.map(Allowed::text).collect()
    };
    let end = tokio::time::Instant::now() + SOON;
    let mut round = 0;
    let seen = loop {
        let seen = asked(&cluster).unwrap();
        let unused = unused(&seen);
        if unused.is_empty() {
            break seen;
        }
        assert!(tokio::time::Instant::now() < end, "not needed: {unused:#?}\n{seen:#?}");
        if unused.iter().any(|text| text.starts_with("get pods ")) {
            race(&client, &applier, round).await.unwrap();
        }
        confuse(&cluster, round).await.unwrap();
        round += 1;
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    inspector.healthy().unwrap();
    // It would stop deciding, and say so, for each of the rules that it misses.
    inspector.stop().await.unwrap();
    for role in &roles {
        each_rule_is_needed(&cluster, &client, &seen, role, &[]).await.unwrap();
    }
}

/// Kinds with a resource of their own: whose it is, and what makes Pods for it here.
const OWNERS: [(&str, &str); 4] = [
    ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    ("kubeflow.org/v2beta1", "MPIJob"),
    ("flux-framework.org/v1alpha2", "MiniCluster"),
];

/// One job of each kind that can be cancelled.
async fn jobs_of_all_kinds(applier: &Applier) -> Result<()> {
    jobs_of_owners(applier).await?;
    groups(applier).await
}

/// The same but for groups.
pub(super) async fn jobs_of_owners(applier: &Applier) -> Result<()> {
    let member = |name: &str| PodManifest::new(name).request("cpu", "10m");
    for (api_version, kind) in OWNERS {
        let name = kind.to_lowercase();
        let owner =
            json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name }, "spec": {} });
        let owner = applier.create(owner).await?;
        let mut pod = member(&format!("of-{name}")).build();
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": api_version, "kind": kind, "name": name, "uid": owner.metadata.uid, "controller": true,
        }]);
        applier.create(pod).await?;
    }
    for kind in ["Deployment", "ReplicaSet", "StatefulSet"] {
        let name = kind.to_lowercase();
        let mut template = member("template").label("app", &name).build();
        template["metadata"]["name"] = Value::Null;
        let spec = json!({ "selector": { "matchLabels": { "app": name } }, "serviceName": name,
            "template": { "metadata": template["metadata"], "spec": template["spec"] } });
        let mut owner =
            json!({ "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": name }, "spec": spec });
        if kind != "StatefulSet" {
            owner["spec"].as_object_mut().context("it is an object")?.remove("serviceName");
        }
        applier.create(owner).await?;
    }
    applier.create(member("template").foreign().job("resumed", 1)).await?;
    Ok(())
}

/// Cancels all jobs that are there, as somebody who may do everything.
async fn cancel_all(http: &reqwest::Client, url: &str, token: &str) -> Result<()> {
    cancel_jobs(http, url, token, |_| true).await
}

/// The same of jobs for which an object is deleted that is wanted.
pub(super) async fn cancel_jobs(
    http: &reqwest::Client,
    url: &str,
    token: &str,
    wanted: impl Fn(&Value) -> bool,
) -> Result<()> {
    let list = http.get(format!("{url}{JOBS}")).bearer_auth(token).send().await?.error_for_status()?;
    let list: Value = serde_json::from_str(&list.text().await?)?;
    for job in list["items"].as_array().context("a list has items")? {
        let targets = job["status"]["cancelTargets"].as_array();
        if !targets.is_none_or(|targets| targets.iter().any(&wanted)) {
            continue;
        }
        let text = |key: &str| job["metadata"][key].as_str().unwrap_or_default();
        let path = JOBS.replace("fluxionjobs", &format!("namespaces/{}/fluxionjobs", text("namespace")));
        let path = format!("{url}{path}/{}/cancel", text("name"));
        // Some have ended, and some belong to others.
        http.post(path)
            .bearer_auth(token)
            .header("content-type", "application/json")
            .body("{}")
            .send()
            .await?;
    }
    Ok(())
}

/// Modes and cancelling add rules to the roles: they are enough, and each is needed.
#[tokio::test]
async fn the_rules_of_modes_and_of_cancelling_are_enough_and_needed() {
    let (cluster, client, applier) = cluster_with_owners(Options::default().with_scheduler()).await.unwrap();
    let plain = cluster_role(&Helm::new().await.unwrap().template(&["--skip-tests"]).await.unwrap());
    let port = SecurePort::reserve().unwrap();
    let access =
        admission::install_with(&cluster, Some(&port), &["--set", "cancel.enabled=true"]).await.unwrap();
    let mut settings = port.settings();
    settings.arguments.extend(admission::webhook_flags());
    settings.arguments.push("--allow-cancel".to_owned());
    port.register_ahead(&applier).await.unwrap();
    let mut inspector = Inspector::start_as(&cluster, "inspector", &settings, access).await.unwrap();
    port.becomes_available(&client, true).await.unwrap();
    admission::label(&cluster, "default", "suspend").await.unwrap();
    let root = [
        "create",
        "clusterrolebinding",
        "root",
        "--clusterrole=cluster-admin",
        "--serviceaccount=default:default",
    ];
    cluster.kubectl(&root).await.unwrap();
    let token = cluster.service_account("default", "default").await.unwrap().token.unwrap();
    jobs_of_all_kinds(&applier).await.unwrap();
    suspended(&cluster, &applier).await.unwrap();

    let role = Role::read(&cluster, "clusterrole").await.unwrap();
    let added = role.rules().into_iter().filter(|rule| !plain.contains(rule));
    let added: Vec<Allowed> = added.flat_map(|rule| allowed(&rule)).collect();
    assert!(added.len() > 12, "{added:?}");
    let http = port.direct(&client, None).await.unwrap();
    let end = tokio::time::Instant::now() + SOON;
    let seen = loop {
        let seen = asked(&cluster).unwrap();
        let unused = added.iter().filter(|allowed| !seen.iter().any(|asked| allowed.covers(asked)));
        let unused: Vec<String> = unused.map(Allowed::text).collect();
        if unused.is_empty() {
            break seen;
        }
        assert!(tokio::time::Instant::now() < end, "not needed: {unused:#?}\n{seen:#?}");
        if !unused.iter().any(|text| text.starts_with("patch ")) {
            cancel_all(&http, &port.url(), &token).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    inspector.healthy().unwrap();
    inspector.stop().await.unwrap();
    each_rule_is_needed(&cluster, &client, &seen, &role, &plain).await.unwrap();
}

/// The rules of the only `ClusterRole` of the inspector in a manifest.
fn cluster_role(manifest: &str) -> Vec<Value> {
    let objects = documents(manifest).unwrap();
    let role = objects.iter().find(|one| one["kind"] == "ClusterRole" && one["metadata"]["name"] == ACCOUNT);
    role.unwrap()["rules"].as_array().unwrap().clone()
}
