//! Who may do what through kube-apiserver and directly, on a real control plane.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::path::Path;

use anyhow::Result;
use fluxion_tests::cluster::Access;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::plugin::{Ran, ran};
use fluxion_tests::programs::{self, Program};
use fluxion_tests::registration::SecurePort;
use fluxion_tests::stage::Stage;
use fluxion_tests::tools::{self, Tool};
use fluxion_tests::{Options, wait};
use http::{Method, StatusCode};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

const BASE: &str = "/apis/fluxion.flux-framework.org/v1alpha1";
const CANARY: &str = "canary-51c9";

async fn stage() -> (Stage, SecurePort) {
    let port = SecurePort::reserve().unwrap();
    let stage = Stage::start(Options::default(), &port.settings(), &[NodeSpec::new("n1")]).await.unwrap();
    (stage, port)
}

/// A ServiceAccount of `people`, bound to these rules in the namespaces (empty: everywhere).
async fn person(stage: &Stage, name: &str, namespaces: &[&str], rules: Value) -> Access {
    let subject = json!([{ "kind": "ServiceAccount", "name": name, "namespace": "people" }]);
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name });
    let api = "rbac.authorization.k8s.io/v1";
    let mut objects = vec![
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name, "namespace": "people" } }),
        json!({ "apiVersion": api, "kind": "ClusterRole", "metadata": { "name": name }, "rules": rules }),
    ];
    for namespace in namespaces {
        objects.push(json!({ "apiVersion": api, "kind": "RoleBinding",
            "metadata": { "name": name, "namespace": namespace }, "roleRef": role, "subjects": subject }));
    }
    if namespaces.is_empty() {
        objects.push(json!({ "apiVersion": api, "kind": "ClusterRoleBinding",
            "metadata": { "name": name }, "roleRef": role, "subjects": subject }));
    }
    for object in objects {
        stage.applier.apply(object).await.unwrap();
    }
    stage.cluster.service_account("people", name).await.unwrap()
}

/// Users by name; `team-a` is the namespace of some, `team-b` of none.
async fn people(stage: &Stage) -> Vec<(&'static str, Access)> {
    for name in ["people", "team-a", "team-b"] {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        stage.applier.apply(namespace).await.unwrap();
        stage.cluster.namespace_usable(&stage.client, name).await.unwrap();
    }
    let rule = |resources: Value, verbs: Value| json!({ "apiGroups": ["fluxion.flux-framework.org"], "resources": resources, "verbs": verbs });
    let view = rule(json!(["fluxionjobs", "fluxionjobs/explain"]), json!(["get", "list", "watch"]));
    let cancel = rule(json!(["fluxionjobs/cancel"]), json!(["create"]));
    let all = rule(json!(["*"]), json!(["get", "list", "watch"]));
    let everything = json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] });
    vec![
        ("superuser", person(stage, "superuser", &[], json!([everything])).await),
        ("cluster-viewer", person(stage, "cluster-viewer", &[], json!([all])).await),
        ("viewer", person(stage, "viewer", &["team-a"], json!([view])).await),
        ("operator", person(stage, "operator", &["team-a"], json!([view, cancel])).await),
        ("nobody", person(stage, "nobody", &[], json!([])).await),
    ]
}

/// One job that runs in each namespace; that of `team-b` has the canary in its name, labels and annotations.
async fn jobs(stage: &Stage) {
    let mut ours = PodManifest::new("ours").request("cpu", "1").build();
    ours["metadata"]["namespace"] = json!("team-a");
    let mut theirs = PodManifest::new(CANARY).request("cpu", "100").build();
    theirs["metadata"]["namespace"] = json!("team-b");
    theirs["metadata"]["labels"] = json!({ "note": CANARY });
    let mut waits = PodManifest::new("waits").request("cpu", "100").build();
    waits["metadata"]["namespace"] = json!("team-a");
    stage.create([ours, theirs, waits]).await.unwrap();
    for (namespace, job) in
        [("team-a", "pod/ours"), ("team-b", &*format!("pod/{CANARY}")), ("team-a", "pod/waits")]
    {
        wait::until(&format!("{job} is seen"), fluxion_tests::stage::SOON, || async {
            stage.inspector.job(namespace, job).await.map(drop)
        })
        .await
        .unwrap();
    }
    stage.patch_node("n1", None, &json!({ "metadata": { "labels": { "note": CANARY } } })).await.unwrap();
}

async fn kubectl(stage: &Stage, kubeconfig: &Path, arguments: &[&str]) -> Ran {
    kubectl_of(stage.cluster.tools().path(Tool::Kubectl), stage, kubeconfig, arguments).await
}

async fn kubectl_of(program: &Path, stage: &Stage, kubeconfig: &Path, arguments: &[&str]) -> Ran {
    let mut command = tokio::process::Command::new(program);
    command.arg("--kubeconfig").arg(kubeconfig).args(arguments).env("HOME", stage.cluster.dir());
    ran(&mut command).await.unwrap()
}

/// Status and body of a request.
async fn ask(
    http: &reqwest::Client,
    url: &str,
    token: Option<&str>,
    headers: &[(&str, &str)],
    method: &Method,
    path: &str,
) -> (StatusCode, String) {
    let mut request = http.request(method.clone(), format!("{url}{path}"));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

/// Verb, resource as kubectl writes it, whether it is namespaced, and the request.
fn cells(namespace: &str, job: &str) -> Vec<(&'static str, String, bool, Method, String)> {
    let own = format!("{BASE}/namespaces/{namespace}/fluxionjobs");
    let mut cells = vec![
        ("list", "fluxionjobs".to_owned(), true, Method::GET, own.clone()),
        ("watch", "fluxionjobs".to_owned(), true, Method::GET, format!("{own}?watch=true&timeoutSeconds=1")),
        ("get", format!("fluxionjobs/{job}"), true, Method::GET, format!("{own}/{job}")),
        ("delete", format!("fluxionjobs/{job}"), true, Method::DELETE, format!("{own}/{job}")),
    ];
    if namespace == "team-a" {
        for (verb, resource) in [
            ("list", "fluxionjobs"),
            ("list", "fluxionnodes"),
            ("list", "fluxionqueues"),
            ("list", "fluxionaudits"),
        ] {
            cells.push((verb, resource.to_owned(), false, Method::GET, format!("{BASE}/{resource}")));
        }
    }
    cells
}

/// For each user, verb and namespace the outcome is that of `kubectl auth can-i`, through kube-apiserver and directly; and
/// nobody reads of a namespace that is not theirs.
#[tokio::test]
async fn everybody_may_what_the_cluster_says() {
    let (stage, port) = stage().await;
    port.register(&stage.applier).await.unwrap();
    let people = people(&stage).await;
    jobs(&stage).await;
    let direct = port.direct(&stage.client, None).await.unwrap();
    let authority = std::fs::read(stage.cluster.dir().join("pki/ca.crt")).unwrap();
    let through = reqwest::Client::builder()
        .tls_certs_only(reqwest::Certificate::from_pem_bundle(&authority).unwrap())
        .build()
        .unwrap();
    let (mut allowed, mut denied) = (0, 0);
    for (name, access) in &people {
        let token = access.token.as_deref();
        for (namespace, job) in [("team-a", "pod.waits".to_owned()), ("team-b", format!("pod.{CANARY}"))] {
            let explain = format!("{BASE}/namespaces/{namespace}/fluxionjobs/{job}/explain");
            let cancel = format!("{BASE}/namespaces/{namespace}/fluxionjobs/{job}/cancel?dryRun=All");
            let mut all: Vec<_> = cells(namespace, &job).into_iter().map(|cell| (cell, "")).collect();
            all.push((("get", format!("fluxionjobs/{job}"), true, Method::GET, explain), "explain"));
            all.push((("create", "fluxionjobs".to_owned(), true, Method::POST, cancel), "cancel"));
            for ((verb, resource, namespaced, method, path), subresource) in all {
                let full = resource.replacen('/', ".fluxion.flux-framework.org/", 1);
                let full = if resource.contains('/') {
                    full
                } else {
                    format!("{resource}.fluxion.flux-framework.org")
                };
                let mut question = vec!["auth", "can-i", verb, &full];
                if !subresource.is_empty() {
                    question.extend(["--subresource", subresource]);
                }
                question.extend(if namespaced { vec!["-n", namespace] } else { vec!["-A"] });
                let said = kubectl(&stage, &access.kubeconfig, &question).await;
                let may = said.stdout.trim() == "yes";
                let what = format!("{name}: {}", question[1..].join(" "));
                for (way, http, url) in
                    [("through", &through, stage.cluster.server()), ("direct", &direct, &port.url())]
                {
                    let (status, body) = ask(http, url, token, &[], &method, &path).await;
                    assert_ne!(status, StatusCode::UNAUTHORIZED, "{what} ({way})");
                    assert_eq!(
                        status != StatusCode::FORBIDDEN,
                        may,
                        "{what} ({way}): {said:?} {status} {body}"
                    );
                    let others = namespace == "team-a" && *name != "superuser" && *name != "cluster-viewer";
                    assert!(!(others && body.contains(CANARY)), "{what} ({way}): {body}");
                }
                if may { allowed += 1 } else { denied += 1 }
            }
        }
    }
    assert!(allowed > 30 && denied > 25, "{allowed} allowed, {denied} denied");

    // Stock kubectl of both ages, as an administrator and as a user.
    let admin = stage.cluster.kubeconfig().to_owned();
    let viewer = &people.iter().find(|(name, _)| *name == "viewer").unwrap().1.kubeconfig;
    let old = tokio::task::spawn_blocking(|| tools::ensure(Tool::OldKubectl)).await.unwrap().unwrap();
    for program in [stage.cluster.tools().path(Tool::Kubectl), &old] {
        let kubectl =
            async |who: &Path, arguments: &[&str]| kubectl_of(program, &stage, who, arguments).await;
        let listed = kubectl(&admin, &["get", "fj", "-A"]).await;
        assert!(listed.stdout.contains("pod.ours") && listed.stdout.contains(CANARY), "{listed:?}");
        let may = kubectl(&admin, &["auth", "can-i", "create", "fj/cancel"]).await;
        assert_eq!((may.code, may.stdout.trim()), (Some(0), "yes"), "{may:?}");
        let listed = kubectl(viewer, &["get", "fj", "-n", "team-a", "-o", "name"]).await;
        assert!(listed.stdout.contains("fluxionjob.fluxion.flux-framework.org/pod.ours"), "{listed:?}");
        let refused = kubectl(viewer, &["get", "fj", "-A"]).await;
        assert!(refused.stderr.contains("cannot list resource \"fluxionjobs\""), "{refused:?}");
    }
}

/// What says who asks counts only from kube-apiserver.
#[tokio::test]
async fn forged_identities_are_refused() {
    let (stage, port) = stage().await;
    port.register(&stage.applier).await.unwrap();
    let people = people(&stage).await;
    let viewer = people.iter().find(|(name, _)| *name == "viewer").unwrap().1.token.clone().unwrap();
    let forged = [("X-Remote-User", "admin"), ("X-Remote-Group", "system:masters")];
    let path = format!("{BASE}/fluxionjobs");
    let pki = stage.cluster.dir().join("pki");
    stage.cluster.user("jane", None).unwrap();
    let certificate = |name: &str| (pki.join(format!("{name}.crt")), pki.join(format!("{name}.key")));
    let (jane, proxy) = (certificate("jane"), certificate("proxy"));
    let plain = port.direct(&stage.client, None).await.unwrap();
    let as_jane = port.direct(&stage.client, Some((&jane.0, &jane.1))).await.unwrap();
    let as_proxy = port.direct(&stage.client, Some((&proxy.0, &proxy.1))).await.unwrap();
    let url = port.url();
    for (what, http, token, expected) in [
        ("nobody", &plain, None, StatusCode::UNAUTHORIZED),
        ("a user of the same authority", &as_jane, None, StatusCode::UNAUTHORIZED),
        ("no token", &plain, Some("nonsense"), StatusCode::UNAUTHORIZED),
        ("a viewer of one namespace", &plain, Some(&*viewer), StatusCode::FORBIDDEN),
        ("the same with a certificate", &as_jane, Some(&*viewer), StatusCode::FORBIDDEN),
        ("kube-apiserver itself", &as_proxy, None, StatusCode::OK),
    ] {
        let (status, body) = ask(http, &url, token, &forged, &Method::GET, &path).await;
        assert_eq!(status, expected, "{what}: {body}");
    }
    for (certificate, key) in stage.cluster.false_front_proxies().unwrap() {
        let http = port.direct(&stage.client, Some((&certificate, &key))).await.unwrap();
        let (status, body) = ask(&http, &url, None, &forged, &Method::GET, &path).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{}: {body}", certificate.display());
        let (status, body) = ask(&http, &url, Some(&viewer), &forged, &Method::GET, &path).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{}: {body}", certificate.display());
    }
    // Who says nothing of themselves is nobody through kube-apiserver too, and what they say of themselves is not passed on.
    let authority = std::fs::read(pki.join("ca.crt")).unwrap();
    let authority = reqwest::Certificate::from_pem_bundle(&authority).unwrap();
    let through = reqwest::Client::builder().tls_certs_only(authority).build().unwrap();
    for path in [&*path, BASE] {
        let server = stage.cluster.server();
        let (status, body) = ask(&through, server, None, &forged, &Method::GET, path).await;
        assert!(
            matches!(status, StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED),
            "{path}: {status} {body}"
        );
        let (status, body) = ask(&through, server, Some(&viewer), &forged, &Method::GET, path).await;
        assert_eq!(status == StatusCode::FORBIDDEN, path != BASE, "{path}: {status} {body}");
        assert!(!body.contains("\"admin\""), "{body}");
    }
    // The administrator of the machine's own port is nobody here.
    let own = ask(&plain, &url, Some(stage.inspector.token()), &[], &Method::GET, &path).await;
    assert_eq!(own.0, StatusCode::UNAUTHORIZED);

    let accounts: Api<ServiceAccount> = Api::namespaced(stage.client.clone(), "people");
    let spec =
        TokenRequestSpec { audiences: Some(vec!["elsewhere".to_owned()]), ..TokenRequestSpec::default() };
    let other = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let other = accounts.create_token_request("superuser", &PostParams::default(), &other).await.unwrap();
    let other = other.status.unwrap().token.unwrap();
    let (status, _) = ask(&plain, &url, Some(&other), &[], &Method::GET, &path).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "a token for somebody else");
    let (status, body) = ask(&plain, &url, None, &[], &Method::GET, "/readyz").await;
    assert_eq!((status, &*body), (StatusCode::OK, "ok"));
    stage.inspector.log().unwrap();
}

async fn plugin(stage: &Stage, kubeconfig: &Path, arguments: &[&str]) -> Result<Ran> {
    let mut command = tokio::process::Command::new(programs::path(Program::Plugin)?);
    command
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", stage.cluster.dir())
        .env_remove("XDG_STATE_HOME")
        .env_remove("FLUXION_SERVER");
    ran(&mut command).await
}

/// Without any flag the plugin asks through kube-apiserver, and says what is wrong where that does not work.
#[tokio::test]
async fn the_plugin_goes_through_the_api_server() {
    let (mut stage, port) = stage().await;
    let admin = stage.cluster.kubeconfig().to_owned();
    let missing = plugin(&stage, &admin, &["jobs", "-A"]).await.unwrap();
    assert_eq!(missing.code, Some(5), "{missing:?}");
    assert!(missing.stderr.contains("helm install fluxion"), "{missing:?}");

    port.register(&stage.applier).await.unwrap();
    let people = people(&stage).await;
    jobs(&stage).await;
    let listed = plugin(&stage, &admin, &["jobs", "-A", "-o", "name"]).await.unwrap();
    assert!(listed.stdout.contains("team-a/pod/ours") && listed.stdout.contains(CANARY), "{listed:?}");
    let of = |name: &str| &people.iter().find(|(known, _)| *known == name).unwrap().1;
    let viewer = of("viewer");
    for arguments in
        [&["jobs", "-n", "team-a"][..], &["explain", "-n", "team-a", "pod/waits"], &["queue", "-n", "team-a"]]
    {
        let told = plugin(&stage, &viewer.kubeconfig, arguments).await.unwrap();
        assert_eq!(told.code, Some(0), "{told:?}");
        assert!(!told.stdout.contains(CANARY), "{told:?}");
    }
    let refused = plugin(&stage, &viewer.kubeconfig, &["jobs", "-A"]).await.unwrap();
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("cannot list resource \"fluxionjobs\""), "{refused:?}");
    let token = viewer.token.clone().unwrap();
    let as_viewer = plugin(&stage, &admin, &["jobs", "-A", "--token", &token]).await.unwrap();
    assert_eq!(as_viewer.code, Some(4), "{as_viewer:?}");
    let nobody = plugin(&stage, &admin, &["jobs", "-A", "--as", "somebody"]).await.unwrap();
    assert_eq!(nobody.code, Some(4), "{nobody:?}");
    assert!(nobody.stderr.contains("User \"somebody\""), "{nobody:?}");

    stage.inspector.kill();
    let broken = plugin(&stage, &admin, &["jobs", "-A"]).await.unwrap();
    assert_eq!(broken.code, Some(5), "{broken:?}");
    assert!(
        broken.stderr.contains("kubectl describe apiservice v1alpha1.fluxion.flux-framework.org"),
        "{broken:?}"
    );
    port.becomes_available(&stage.client, false).await.unwrap();
    let broken = plugin(&stage, &admin, &["jobs", "-A"]).await.unwrap();
    assert_eq!(broken.code, Some(5), "{broken:?}");
    assert!(broken.stderr.contains("is not available"), "{broken:?}");
}
