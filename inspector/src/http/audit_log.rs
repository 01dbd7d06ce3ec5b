//! Requests that change something or are refused are logged, with the ID under which kube-apiserver's audit log has them.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::Response;

use crate::logs::RateLimit;
use crate::telemetry::Span;

/// kube-apiserver's name of the header.
const AUDIT_ID: &str = "audit-id";
/// kube-apiserver cuts off longer IDs.
const ID_LONGEST: usize = 64;
/// Longer paths are cut off.
const PATH_LONGEST: usize = 512;

/// Anybody can be refused as often as they like: a refusal is logged once per this time.
pub(super) const REFUSALS_EVERY: Duration = Duration::from_millis(100);

/// The name of the user, on a response.
#[derive(Clone, Debug)]
pub(super) struct AskedBy(pub(super) Arc<str>);

/// What is logged of a request.
#[derive(Debug)]
pub(super) struct Asked {
    method: Method,
    path: String,
    audit_id: Option<String>,
}

impl Asked {
    pub(super) fn of(request: &Request) -> Self {
        let id = request.headers().get(AUDIT_ID).and_then(|value| value.to_str().ok());
        Self {
            method: request.method().clone(),
            path: request.uri().path().chars().take(PATH_LONGEST).collect(),
            audit_id: id.map(|id| id.chars().take(ID_LONGEST).collect()),
        }
    }

    /// What the span of the request says.
    pub(super) fn describe(&self, span: &mut Span) {
        span.set("http.request.method", self.method.as_str());
        span.set("url.path", &self.path);
        if let Some(job) = self.job() {
            span.set("fluxion.job", &job);
        }
        if let Some(id) = &self.audit_id {
            span.set("k8s.audit.id", id);
        }
    }

    /// `NAMESPACE/NAME` of the job that the request is about.
    fn job(&self) -> Option<String> {
        let mut parts = self.path.split('/').skip_while(|part| *part != "namespaces").skip(1);
        let (namespace, resource, name) = (parts.next()?, parts.next()?, parts.next()?);
        (resource == "fluxionjobs").then(|| format!("{namespace}/{name}"))
    }

    /// Logs the request, unless it only read something or could not be answered for other reasons.
    pub(super) fn answered(&self, response: &Response, refusals: &RateLimit) {
        let code = response.status();
        let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(&self.method);
        let by = response.extensions().get::<AskedBy>().map(|by| &*by.0);
        let (method, path, audit_id) = (self.method.as_str(), &self.path, self.audit_id.as_deref());
        let (job, code_number) = (self.job(), code.as_u16());
        if !reads && code.is_success() {
            tracing::info!(job, method, path, code = code_number, by, audit_id, "handled a request");
        } else if (is_refusal(code) || !reads)
            && let Some(left_out) = refusals.now()
        {
            tracing::info!(
                job,
                method,
                path,
                code = code_number,
                by,
                audit_id,
                left_out,
                "refused a request"
            );
        }
    }
}

/// Whether the user may not do it, or not in this way.
fn is_refusal(code: StatusCode) -> bool {
    matches!(
        code,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::CONFLICT
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::TOO_MANY_REQUESTS
    )
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::response::IntoResponse as _;

    use super::*;
    use crate::cli::LogFormat;
    use crate::logs::tests::logged;

    fn entries(
        refusals: &RateLimit,
        method: &str,
        path: &str,
        id: &str,
        code: StatusCode,
    ) -> Vec<serde_json::Value> {
        let request = Request::builder().method(method).uri(path).header("Audit-Id", id);
        let asked = Asked::of(&request.body(Body::empty()).unwrap());
        let mut response = code.into_response();
        response.extensions_mut().insert(AskedBy("jane".into()));
        let text = logged(LogFormat::Json, || asked.answered(&response, refusals));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn what_changes_something_or_is_refused_is_logged_under_its_audit_id() {
        let refusals = RateLimit::new(Duration::from_hours(1));
        let path = "/apis/fluxion.flux-framework.org/v1alpha1/namespaces/team/fluxionjobs/job.x/cancel";
        let logged = entries(&refusals, "POST", path, "1f6c", StatusCode::OK);
        let fields = &logged[0]["fields"];
        assert_eq!((&fields["audit_id"], &fields["by"]), (&"1f6c".into(), &"jane".into()), "{fields}");
        assert_eq!((&fields["job"], &fields["code"]), (&"team/job.x".into(), &200.into()), "{fields}");
        for (method, code) in [("GET", StatusCode::OK), ("GET", StatusCode::NOT_FOUND)] {
            assert!(entries(&refusals, method, path, "1f6c", code).is_empty(), "{method} {code}");
        }
        let long = "x".repeat(1000);
        let logged = entries(&refusals, "GET", &format!("/{long}"), &long, StatusCode::FORBIDDEN);
        let fields = &logged[0]["fields"];
        assert_eq!(fields["audit_id"].as_str().unwrap().len(), ID_LONGEST);
        assert_eq!(fields["path"].as_str().unwrap().len(), PATH_LONGEST);
        assert!(
            entries(&refusals, "GET", "/", "1f6c", StatusCode::FORBIDDEN).is_empty(),
            "not as often as they like"
        );
    }
}
