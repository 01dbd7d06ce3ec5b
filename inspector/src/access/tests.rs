//! Tokens and permissions against an API server in this process.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use http::HeaderMap;
use serde_json::{Value, json};

use super::*;

/// What the API server says, and how often it was asked.
#[derive(Clone, Default)]
pub(crate) struct Reviewer {
    /// `USER VERB NAMESPACE RESOURCE[/SUBRESOURCE]`, or `USER VERB PATH`; `*` for any word.
    pub allowed: Arc<Mutex<Vec<String>>>,
    pub asked: Arc<Mutex<Vec<Value>>>,
    pub tokens: Arc<AtomicUsize>,
    pub broken: Arc<Mutex<bool>>,
}

impl Reviewer {
    pub(crate) fn allow(&self, rules: &[&str]) {
        *self.allowed.lock().unwrap() = rules.iter().map(|rule| (*rule).to_owned()).collect();
    }

    pub(crate) fn client(&self) -> Client {
        let router = Router::new()
            .route("/apis/authorization.k8s.io/v1/subjectaccessreviews", post(permission))
            .route("/apis/authentication.k8s.io/v1/tokenreviews", post(token))
            .with_state(self.clone());
        Client::new(router, "default")
    }
}

async fn permission(
    State(reviewer): State<Reviewer>,
    Json(mut review): Json<Value>,
) -> Result<Json<Value>, http::StatusCode> {
    if *reviewer.broken.lock().unwrap() {
        return Err(http::StatusCode::INTERNAL_SERVER_ERROR);
    }
    let spec = &review["spec"];
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let mut words = vec![text(&spec["user"])];
    let resource = &spec["resourceAttributes"];
    if resource.is_object() {
        let sub = resource["subresource"].as_str().map(|sub| format!("/{sub}")).unwrap_or_default();
        words.extend([
            text(&resource["verb"]),
            text(&resource["namespace"]),
            text(&resource["resource"]) + &sub,
        ]);
    } else {
        let path = &spec["nonResourceAttributes"];
        words.extend([text(&path["verb"]), text(&path["path"])]);
    }
    let allowed = reviewer.allowed.lock().unwrap().iter().any(|rule| {
        let rule: Vec<&str> = rule.split(' ').collect();
        rule.len() == words.len() && rule.iter().zip(&words).all(|(rule, word)| *rule == "*" || rule == word)
    });
    reviewer.asked.lock().unwrap().push(review.clone());
    review["status"] = json!({ "allowed": allowed, "reason": if allowed { "RBAC: allowed" } else { "" } });
    Ok(Json(review))
}

/// `token-of-NAME` is a token of NAME.
async fn token(State(reviewer): State<Reviewer>, Json(mut review): Json<Value>) -> Json<Value> {
    reviewer.tokens.fetch_add(1, Ordering::Relaxed);
    let name = review["spec"]["token"].as_str().unwrap().strip_prefix("token-of-").map(str::to_owned);
    let user = json!({ "username": name, "uid": "u", "groups": ["system:authenticated"], "extra": { "Key": ["v"] } });
    review["status"] =
        json!({ "authenticated": name.is_some(), "audiences": ["https://kubernetes.default.svc"] });
    if name.is_some() {
        review["status"]["user"] = user;
    }
    Json(review)
}

fn headers(token: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    headers
}

fn peer() -> Peer {
    Peer::new("192.0.2.1:1".parse().unwrap(), Vec::new())
}

async fn who(access: &Access, token: &str) -> Result<String, AccessError> {
    Ok(access.identify(&peer(), &headers(token)).await?.0.name.to_string())
}

#[tokio::test]
async fn a_token_is_reviewed_once_and_a_flood_of_them_is_not() {
    let reviewer = Reviewer::default();
    let access = Access::new(reviewer.client(), Vec::new());
    for _ in 0..3 {
        assert_eq!(who(&access, "token-of-jane").await.unwrap(), "jane");
        assert_eq!(who(&access, "stolen").await, Err(AccessError::Unauthenticated));
    }
    assert_eq!(reviewer.tokens.load(Ordering::Relaxed), 2);
    let mut refused = 0;
    for guess in 0..100 {
        refused +=
            usize::from(who(&access, &format!("guess-{guess}")).await == Err(AccessError::TooManyReviews));
    }
    assert!(refused >= 70, "{refused}");
    assert_eq!(who(&access, "token-of-jane").await.unwrap(), "jane", "what is known is still answered");
    let elsewhere = Peer::new("192.0.2.9:1".parse().unwrap(), Vec::new());
    assert!(access.identify(&elsewhere, &headers("token-of-joe")).await.is_ok());
    let huge = "x".repeat(40_000);
    assert_eq!(who(&access, &huge).await, Err(AccessError::Unauthenticated));
    assert_eq!(access.identify(&peer(), &HeaderMap::new()).await.unwrap_err(), AccessError::Unauthenticated);
}

#[tokio::test]
async fn a_token_for_somebody_else_is_refused() {
    for (audiences, good) in [(vec!["https://kubernetes.default.svc", "other"], true), (vec!["other"], false)]
    {
        let reviewer = Reviewer::default();
        let access = Access::new(reviewer.client(), audiences.into_iter().map(str::to_owned).collect());
        assert_eq!(who(&access, "token-of-jane").await.is_ok(), good);
    }
}

#[tokio::test]
async fn headers_of_others_name_nobody() {
    let reviewer = Reviewer::default();
    let access = Access::new(reviewer.client(), Vec::new());
    let mut forged = headers("token-of-jane");
    forged.insert("x-remote-user", "admin".parse().unwrap());
    forged.insert("x-remote-group", "system:masters".parse().unwrap());
    let (user, _) = access.identify(&peer(), &forged).await.unwrap();
    assert_eq!((&*user.name, user.groups), ("jane", vec!["system:authenticated".to_owned()]));
    assert_eq!(user.extra["key"], ["v"]);
    forged.remove("authorization");
    assert_eq!(access.identify(&peer(), &forged).await.unwrap_err(), AccessError::Unauthenticated);
}

#[tokio::test]
async fn a_decision_is_asked_for_with_all_that_is_known_and_kept_for_a_while() {
    let reviewer = Reviewer::default();
    reviewer.allow(&["jane list team fluxionjobs"]);
    let access = Access::new(reviewer.client(), Vec::new());
    let jane = User {
        name: "jane".into(),
        uid: "u".to_owned(),
        groups: vec!["a".to_owned(), "b".to_owned()],
        extra: [("k".to_owned(), vec!["v".to_owned()])].into(),
    };
    let uri = |path: &str| format!("/apis/fluxion.flux-framework.org/v1alpha1{path}").parse().unwrap();
    let wanted = Attributes::of(&http::Method::GET, &uri("/namespaces/team/fluxionjobs")).unwrap();
    for _ in 0..3 {
        access.authorise(&jane, &wanted).await.unwrap();
    }
    assert_eq!(reviewer.asked.lock().unwrap().len(), 1);
    assert_eq!(
        reviewer.asked.lock().unwrap()[0]["spec"],
        json!({
            "user": "jane", "uid": "u", "groups": ["a", "b"], "extra": { "k": ["v"] },
            "resourceAttributes": {
                "verb": "list", "group": "fluxion.flux-framework.org", "version": "v1alpha1",
                "namespace": "team", "resource": "fluxionjobs",
            },
        })
    );
    let joe = User { name: "joe".into(), ..jane.clone() };
    let told = access.authorise(&joe, &wanted).await.unwrap_err();
    assert!(told.to_string().contains(r#"User "joe" cannot list resource "fluxionjobs""#), "{told}");
    assert_eq!(access.sight(&jane).await.unwrap(), Sight { all_namespaces: false, nodes: false });
    let cancel =
        Attributes::of(&http::Method::POST, &uri("/namespaces/team/fluxionjobs/job.x/cancel")).unwrap();
    access.authorise(&jane, &cancel).await.unwrap_err();
    let last = reviewer.asked.lock().unwrap().last().unwrap()["spec"]["resourceAttributes"].clone();
    assert_eq!(
        (&last["subresource"], &last["name"], &last["verb"]),
        (&json!("cancel"), &json!("job.x"), &json!("create"))
    );
    *reviewer.broken.lock().unwrap() = true;
    let fresh = User { name: "ann".into(), ..jane.clone() };
    assert_eq!(
        access.authorise(&fresh, &wanted).await,
        Err(AccessError::Unavailable),
        "nobody is let through unasked"
    );
}
