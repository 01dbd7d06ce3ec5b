//! Handing manifests in, with a stand-in for who takes them.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::super::router;
use super::{Server, read, request};
use crate::submit::{Submit, SubmitError, Taken};

/// Gives one answer to everybody.
struct Always(Result<Vec<Taken>, SubmitError>);

impl Submit for Always {
    fn submit(&self, namespace: String, manifests: String) -> BoxFuture<'_, Result<Vec<Taken>, SubmitError>> {
        assert_eq!((namespace.as_str(), manifests.as_str()), ("team", "kind: Pod"));
        std::future::ready(self.0.clone()).boxed()
    }
}

async fn answer(submit: Result<Vec<Taken>, SubmitError>, body: &'static [u8]) -> (StatusCode, String) {
    let mut server = Server::started(true).await;
    server.router = router(server.app.clone().with_submit(Arc::new(Always(submit))));
    let mut request = request(Method::POST, "namespaces/team/fluxionjobs");
    *request.body_mut() = Body::from(body);
    let (status, body) = read(server.send(request).await).await;
    (status, body["message"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn every_outcome_has_its_status() {
    let taken = || {
        vec![
            Taken::Created { called: "job/a".to_owned() },
            Taken::Later { called: "job/b".to_owned(), due: 0 },
            Taken::Known { called: "job/c".to_owned() },
        ]
    };
    let all = "job/a created, job/b will be submitted at 1970-01-01T00:00:00Z, job/c already exists";
    let problem = || "job/d already exists".to_owned();
    let partly = SubmitError::Partly { taken: taken(), problem: problem() };
    for (outcome, status, message) in [
        (Ok(taken()), StatusCode::CREATED, all.to_owned()),
        (Err(SubmitError::Invalid(problem())), StatusCode::BAD_REQUEST, problem()),
        (Err(SubmitError::Conflict(problem())), StatusCode::CONFLICT, problem()),
        (Err(partly), StatusCode::CONFLICT, format!("{}; already processed: {all}", problem())),
    ] {
        assert_eq!(answer(outcome, b"kind: Pod").await, (status, message));
    }
    for outcome in [SubmitError::Unread, SubmitError::Stopped] {
        let (status, message) = answer(Err(outcome.clone()), b"kind: Pod").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(message.starts_with(&outcome.to_string()), "{message}");
    }
    assert_eq!(answer(Ok(Vec::new()), b"\xff").await.0, StatusCode::BAD_REQUEST);
}
