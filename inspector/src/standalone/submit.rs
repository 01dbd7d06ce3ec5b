//! Submission of manifests to a running server, from their text to the result for each object.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::manifest::Manifests;
use super::object::Object;
use super::server::{NotTaken, SubmitHandle};
use super::store::StoreError;
use crate::submit::{Submit, SubmitError, Taken};

impl Submit for SubmitHandle {
    fn submit(&self, namespace: String, manifests: String) -> BoxFuture<'_, Result<Vec<Taken>, SubmitError>> {
        take(self, namespace, manifests).boxed()
    }
}

async fn take(
    server: &SubmitHandle,
    namespace: String,
    manifests: String,
) -> Result<Vec<Taken>, SubmitError> {
    // Parsing a large body takes a while; it blocks no other request.
    let objects = tokio::task::spawn_blocking(move || read(&manifests, &namespace))
        .await
        .map_err(|_| SubmitError::Unread)??;
    if objects.is_empty() {
        return Err(SubmitError::Invalid("the request body contains no objects".to_owned()));
    }
    let mut taken = Vec::new();
    for answer in server.submit_objects(objects).await? {
        match answer {
            Ok(one) => taken.push(one),
            Err(error) if taken.is_empty() => return Err(error.into()),
            Err(error) => return Err(SubmitError::Partly { taken, problem: error.to_string() }),
        }
    }
    Ok(taken)
}

fn read(text: &str, namespace: &str) -> Result<Vec<Object>, SubmitError> {
    let mut manifests = Manifests::default();
    manifests.read_text("request body", text).map_err(|error| SubmitError::Invalid(error.to_string()))?;
    // For a file, warnings are logged; here, the user would not see them.
    if let Some(warning) = manifests.warnings.first() {
        return Err(SubmitError::Invalid(warning.clone()));
    }
    let mut objects = Vec::with_capacity(manifests.documents.len());
    for document in manifests.documents {
        let (place, mut object) = (document.place, document.object.open().into_owned());
        if !object.namespaced() {
            return Err(SubmitError::Invalid(format!(
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
                return Err(SubmitError::Invalid(message));
            }
        }
        objects.push(object);
    }
    Ok(objects)
}

impl From<NotTaken> for SubmitError {
    fn from(error: NotTaken) -> Self {
        match error {
            NotTaken::Store(StoreError::Exists(_) | StoreError::Full) => Self::Conflict(error.to_string()),
            NotTaken::Store(StoreError::Invalid { .. }) | NotTaken::Annotation { .. } => {
                Self::Invalid(error.to_string())
            }
            NotTaken::Stopped => Self::Stopped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_into_the_namespace_of_the_path() {
        let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n";
        let objects = read(pod, "team").unwrap();
        assert_eq!((objects.len(), objects[0].namespace()), (1, "team"));
        let other = pod.replace("name: p", "name: p, namespace: shop");
        let node = "{apiVersion: v1, kind: Node, metadata: {name: n1}}";
        let odd = "{apiVersion: v1, kind: Secret, metadata: {name: n1}}";
        let cases = [
            ("", "contains no objects"),
            (other.as_str(), "namespace shop does not match"),
            (node, "not namespaced"),
            (odd, "does not support kind Secret"),
        ];
        for (text, wanted) in cases {
            let error = read(text, "team").unwrap_err();
            assert!(matches!(&error, SubmitError::Invalid(problem) if problem.contains(wanted)), "{error:?}");
        }
    }
}
