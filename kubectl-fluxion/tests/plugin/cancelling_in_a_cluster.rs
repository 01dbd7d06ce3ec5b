//! `cancel` in a cluster: the plugin deletes the objects itself, with its user's credentials.

use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::{Path, Request};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use fluxion_api::{CancelAnswer, CancelOutcome, CancelTarget, ListMeta, Status};

use crate::mock::{Mock, Ran, failure, plugin};
use crate::sample;

const ROOT: &str = "/apis/fluxion.flux-framework.org/v1alpha1/namespaces/default/fluxionjobs";
const USER: &str = "Bearer users-own-token";

/// One server is kube-apiserver and, behind its aggregated path, the inspector. What was deleted goes into
/// `deleted` as `NAME BODY`.
fn cluster(deleted: &Arc<Mutex<Vec<String>>>) -> Mock {
    let list = || async {
        let mut list = sample::list(vec![sample::job("Job", "a", "Running")]);
        list.metadata = ListMeta { role: "leader".into(), ..list.metadata };
        Json(list)
    };
    let one = |Path(name): Path<String>| async move {
        let name = name.strip_prefix("job.").unwrap_or_default();
        if name == "missing" {
            return Err(failure(404, "NotFound", "there is no job named"));
        }
        Ok::<_, Response>(Json(sample::job("Job", name, "Running")))
    };
    let log = deleted.clone();
    let remove = move |Path(name): Path<String>, body: Bytes| async move {
        log.lock().unwrap().push(format!("{name} {}", String::from_utf8_lossy(&body)));
        match name.as_str() {
            "protected" => failure(
                403,
                "Forbidden",
                "jobs.batch \"protected\" is forbidden: User \"jane\" cannot delete resource \"jobs\"",
            ),
            "gone" => failure(404, "NotFound", "jobs.batch \"gone\" not found"),
            "replaced" => failure(
                409,
                "Conflict",
                "Precondition failed: UID in precondition: uid-replaced, UID in object meta: 1",
            ),
            _ => Json(Status { kind: "Status".into(), status: "Success".into(), ..Status::default() })
                .into_response(),
        }
    };
    Mock::serve(
        Router::new()
            .route(ROOT, get(list))
            .route(&format!("{ROOT}/{{name}}"), get(one))
            .route(&format!("{ROOT}/{{name}}/cancel"), post(plan))
            .route("/apis/batch/v1/namespaces/default/jobs/{name}", delete(remove))
            .layer(middleware::from_fn(|request: Request, next: Next| async {
                if request.headers().get("authorization").is_some_and(|value| value == USER) {
                    next.run(request).await
                } else {
                    failure(401, "Unauthorized", "Unauthorized")
                }
            })),
    )
}

async fn plan(Path(name): Path<String>, request: Request) -> Json<CancelAnswer> {
    assert_eq!(request.uri().query(), Some("dryRun=All"), "the inspector is never told to do it");
    let name = name.strip_prefix("job.").unwrap_or_default();
    let target = CancelTarget {
        api_version: "batch/v1".into(),
        kind: "Job".into(),
        resource: "jobs".into(),
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-{name}"),
        propagation_policy: "Foreground".into(),
    };
    Json(CancelAnswer {
        api_version: fluxion_api::API_VERSION.into(),
        kind: "CancelAnswer".into(),
        metadata: sample::job("Job", name, "Running").metadata,
        outcome: CancelOutcome::DryRun,
        message: String::new(),
        targets: vec![target],
        also_deletes: Vec::new(),
        frees: fluxion_api::Quantities::new(),
        starts_next: Vec::new(),
        pods: 4,
    })
}

pub(crate) fn kubeconfig(url: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let token = USER.trim_start_matches("Bearer ");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
         clusters: [{{name: c, cluster: {{server: '{url}'}}}}]\n\
         users: [{{name: jane, user: {{token: {token}}}}}]\n\
         contexts: [{{name: here, context: {{cluster: c, user: jane}}}}]\n"
    );
    std::fs::write(file.path(), text).unwrap();
    file
}

fn cancel(mock: &Mock, jobs: &[&str]) -> Ran {
    let kubeconfig = kubeconfig(&mock.url);
    Ran::of(plugin().args(["cancel", "-y"]).args(jobs).arg("--kubeconfig").arg(kubeconfig.path()))
}

#[test]
fn objects_are_deleted_by_uid_with_the_users_credentials() {
    let deleted = Arc::default();
    let mock = cluster(&deleted);
    let ran = cancel(&mock, &["job/a"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "job/a cancelled\n", ""));
    let deleted = deleted.lock().unwrap();
    let (name, body) = deleted[0].split_once(' ').unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!((name, deleted.len()), ("a", 1));
    assert_eq!(body["preconditions"]["uid"], "uid-a");
    assert_eq!(body["propagationPolicy"], "Foreground");
}

#[test]
fn what_the_cluster_answers_decides_the_outcome() {
    for (name, code, text) in [
        ("gone", 0, "already terminating"),
        ("replaced", 0, "already finished"),
        (
            "protected",
            4,
            "forbidden: jobs.batch \"protected\" is forbidden: User \"jane\" cannot delete resource \"jobs\"",
        ),
        (
            "missing",
            3,
            "not found: no job named job/missing in namespace default; run `kubectl fluxion jobs -A` to list jobs",
        ),
    ] {
        let ran = cancel(&cluster(&Arc::default()), &[&format!("job/{name}")]);
        assert_eq!((ran.code, ran.out), (code, format!("job/{name} {text}\n")), "{}", ran.err);
    }
    assert_eq!(cancel(&cluster(&Arc::default()), &["job/a", "job/protected"]).code, 6);
}

#[test]
fn an_inspector_that_is_asked_directly_still_leaves_deleting_to_the_user() {
    let deleted = Arc::default();
    let mock = cluster(&deleted);
    let (kubeconfig, token) = (kubeconfig(&mock.url), tempfile::NamedTempFile::new().unwrap());
    std::fs::write(token.path(), USER.trim_start_matches("Bearer ")).unwrap();
    let mut command = plugin();
    command.args(["cancel", "-y", "job/a", "--server", &mock.url, "--token-file"]).arg(token.path());
    let ran = Ran::of(command.env("KUBECONFIG", kubeconfig.path()));
    assert_eq!((ran.code, ran.out.as_str()), (0, "job/a cancelled\n"), "{}", ran.err);
    assert_eq!(deleted.lock().unwrap().len(), 1);
    let ran = Ran::of(command.env_remove("KUBECONFIG"));
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("failed: failed to read the kubeconfig from"), "{}", ran.out);
}

#[test]
fn a_cluster_is_asked_through_its_aggregated_api() {
    let mock = cluster(&Arc::default());
    let kubeconfig = kubeconfig(&mock.url);
    let ran = Ran::of(
        plugin().args(["jobs", "-o", "name", "--context", "here"]).env("KUBECONFIG", kubeconfig.path()),
    );
    assert_eq!((ran.code, ran.out.as_str()), (0, "job/a\n"), "{}", ran.err);
    let ran = Ran::of(plugin().args(["jobs", "-o", "name"]).env("KUBECONFIG", kubeconfig.path()));
    assert_eq!(ran.code, 0, "the current context is asked where there is nothing else: {}", ran.err);
    let ran = Ran::of(
        plugin()
            .args(["jobs", "-o", "name", "--context", "here"])
            .env("KUBECONFIG", kubeconfig.path())
            .env("FLUXION_SERVER", "http://127.0.0.1:1"),
    );
    assert_eq!(ran.code, 0, "flags win over variables: {}", ran.err);
    drop(mock);
    let ran = Ran::of(plugin().arg("jobs").env("KUBECONFIG", kubeconfig.path()));
    assert_eq!(ran.code, 5);
    assert!(ran.err.contains("(context here): connection refused"), "{}", ran.err);
}
