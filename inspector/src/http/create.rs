//! `POST …/fluxionjobs` in standalone mode: takes in the manifests of what is to run.
//!
//! In a cluster jobs come from Pods that others create; there this is not allowed, and says so.

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use fluxion_api::Status;

use super::app::App;
use super::auth::Asker;
use super::guard;
use super::path::Names;
use super::query::Query;
use super::refusal::Refusal;
use crate::standalone::manifest::Manifests;
use crate::standalone::object::Object;
use crate::standalone::server::{NotTaken, Taken};
use crate::standalone::store::StoreError;

/// Takes in every object of the body (YAML or JSON, several documents), or as many as come before one that is
/// refused.
pub(super) async fn post(
    State(app): State<App>,
    Extension(asker): Extension<Asker>,
    Names(namespace): Names<String>,
    query: Query,
    uri: Uri,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let Some(submit) = &app.submit else { return Err(guard::method_not_allowed(Method::POST, uri).await) };
    if query.dry_run()? {
        return Err(Refusal::BadRequest("dryRun is not supported here: omit it".to_owned()));
    }
    let (body, place) = (body.map_err(|_| Refusal::TooLarge)?, namespace.clone());
    // A large body takes a while to read; nobody else waits for it.
    let objects = tokio::task::spawn_blocking(move || read(&body, &place))
        .await
        .map_err(|_| Refusal::Unavailable("failed to read the request body"))??;
    if objects.is_empty() {
        return Err(Refusal::BadRequest("the request body contains no objects".to_owned()));
    }
    let answers = submit.submit(objects).await.map_err(refusal)?;
    let mut said = Vec::new();
    for answer in answers {
        said.push(match answer {
            Ok(Taken::Created { called }) => format!("{called} created"),
            Ok(Taken::Later { called, due }) => {
                format!("{called} will be submitted at {}", crate::view::text::time(due))
            }
            Ok(Taken::Known { called }) => format!("{called} already exists"),
            Err(error) if said.is_empty() => return Err(refusal(error)),
            Err(error) => {
                return Err(Refusal::Conflict(format!("{error}; already processed: {}", said.join(", "))));
            }
        });
    }
    // Who asks next sees what was made.
    app.engine.fresh().await.map_err(|_| Refusal::Unavailable("the inspector is shutting down"))?;
    tracing::info!(by = %asker.name, namespace, "{}", said.join(", "));
    let status = Status {
        api_version: "v1".to_owned(),
        kind: "Status".to_owned(),
        status: "Success".to_owned(),
        message: said.join(", "),
        code: StatusCode::CREATED.as_u16(),
        ..Status::default()
    };
    Ok((StatusCode::CREATED, Json(status)).into_response())
}

fn read(body: &[u8], namespace: &str) -> Result<Vec<Object>, Refusal> {
    let text = std::str::from_utf8(body)
        .map_err(|_| Refusal::BadRequest("request body is not valid UTF-8".to_owned()))?;
    let mut manifests = Manifests::default();
    manifests.read_text("request body", text).map_err(|error| Refusal::BadRequest(error.to_string()))?;
    // From a file a warning goes to the log; here nobody would see it.
    if let Some(warning) = manifests.warnings.first() {
        return Err(Refusal::BadRequest(warning.clone()));
    }
    let mut objects = Vec::with_capacity(manifests.documents.len());
    for document in manifests.documents {
        let (place, mut object) = (document.place, document.object.open().into_owned());
        if !object.namespaced() {
            return Err(Refusal::BadRequest(format!(
                "{place}: the kind is not namespaced; add it to the --cluster file"
            )));
        }
        match object.namespace() {
            "" => object.meta_mut().namespace = Some(namespace.to_owned()),
            same if same == namespace => {}
            other => {
                let message = format!(
                    "{place}: namespace {other} does not match the namespace of the request ({namespace})"
                );
                return Err(Refusal::BadRequest(message));
            }
        }
        objects.push(object);
    }
    Ok(objects)
}

fn refusal(error: NotTaken) -> Refusal {
    match error {
        NotTaken::Store(StoreError::Exists(_) | StoreError::Full) => Refusal::Conflict(error.to_string()),
        NotTaken::Store(StoreError::Invalid { .. }) | NotTaken::Annotation { .. } => {
            Refusal::BadRequest(error.to_string())
        }
        NotTaken::Stopped => Refusal::Unavailable("the inspector is shutting down"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_into_the_namespace_of_the_path() {
        let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n";
        let objects = read(pod.as_bytes(), "team").unwrap();
        assert_eq!((objects.len(), objects[0].namespace()), (1, "team"));
        let other = pod.replace("name: p", "name: p, namespace: shop");
        let node = "{apiVersion: v1, kind: Node, metadata: {name: n1}}";
        let odd = "{apiVersion: v1, kind: Secret, metadata: {name: n1}}";
        let cases: [(&[u8], &str); 5] = [
            (b"", "contains no objects"),
            (b"\xff", "not valid UTF-8"),
            (other.as_bytes(), "namespace shop does not match"),
            (node.as_bytes(), "not namespaced"),
            (odd.as_bytes(), "does not support kind Secret"),
        ];
        for (body, wanted) in cases {
            let error = read(body, "team").unwrap_err();
            assert!(matches!(&error, Refusal::BadRequest(text) if text.contains(wanted)), "{error:?}");
        }
    }
}
