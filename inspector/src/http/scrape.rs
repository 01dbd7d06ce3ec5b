//! `/metrics`.

use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::answer;
use super::app::App;
use super::audit_log::Asked;
use super::refusal::Refusal;
use crate::metrics::TextFormat;
use crate::telemetry::{Span, SpanContext, SpanKind};

/// Counts a request, and logs it if it is refused or changes something.
pub(super) async fn count(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let kind = kind_of(request.method(), request.uri().path(), request.uri().query());
    let asked = Asked::of(&request);
    let span = traced(&app, kind, &asked, request.headers_mut());
    let began = Instant::now();
    let response = next.run(request).await;
    if let Some(mut span) = span {
        let code = response.status();
        span.set_number("http.response.status_code", code.as_u16());
        if code.is_server_error() {
            span.fail(code.as_str());
        }
    }
    asked.answered(&response, &app.requests.refusals);
    app.requests.observe(kind, response.status().as_u16(), began.elapsed().as_secs_f64());
    response
}

/// The span of a request for data, below that of its sender. Whoever it is forwarded to continues it.
fn traced(
    app: &App,
    (resource, verb): (&'static str, &'static str),
    asked: &Asked,
    headers: &mut HeaderMap,
) -> Option<Span> {
    const TRACEPARENT: &str = "traceparent";
    if !app.engine.tracer().enabled() || resource == "other" {
        return None;
    }
    // Several ones are none.
    let mut parents = headers.get_all(TRACEPARENT).iter();
    let parent = parents.next().filter(|_| parents.next().is_none());
    let parent = parent.and_then(|parent| SpanContext::parse(parent.to_str().ok()?));
    let mut span = app.engine.tracer().start(format!("{verb} {resource}"), SpanKind::Server, parent)?;
    asked.describe(&mut span);
    if let Ok(value) = span.context().to_string().parse() {
        headers.insert(TRACEPARENT, value);
    }
    Some(span)
}

/// Resource and verb from a fixed set: the number of labels must not depend on requests.
fn kind_of(method: &Method, path: &str, query: Option<&str>) -> (&'static str, &'static str) {
    const RESOURCES: [&str; 6] = [
        "fluxionjobs",
        "fluxionnodes",
        "fluxionqueues",
        "fluxiongraphs",
        "fluxiontimelines",
        "fluxionaudits",
    ];
    let parts: Vec<&str> = path.split('/').collect();
    let found = RESOURCES.iter().find_map(|name| Some((*name, parts.iter().position(|part| part == name)?)));
    let Some((resource, at)) = found else {
        return ("other", if method == Method::GET { "get" } else { "other" });
    };
    let watch = query
        .is_some_and(|query| query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch")));
    let verb = match (method, parts.get(at + 1), parts.get(at + 2).copied()) {
        (&Method::GET, None, _) if watch => "watch",
        (&Method::GET, None, _) => "list",
        (&Method::GET, Some(_), None) => "get",
        (&Method::GET, Some(_), Some("explain")) => "explain",
        (&Method::POST, Some(_), Some("cancel")) => "cancel",
        _ => "other",
    };
    (resource, verb)
}

/// `/metrics`.
pub(super) async fn metrics(State(app): State<App>, headers: HeaderMap) -> Result<Response, Refusal> {
    answer::computed(move || encoded(&app, &headers)).await
}

fn encoded(app: &App, headers: &HeaderMap) -> Response {
    app.requests.refresh(&app.history);
    let accept = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let format = wanted(accept);
    let content_type = match format {
        TextFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        TextFormat::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
    };
    ([(header::CONTENT_TYPE, content_type), (header::VARY, "Accept")], app.metrics.encode(format))
        .into_response()
}

/// The format accepted by a client (RFC 9110, section 12.5.1); plain text by default and if both are equal.
fn wanted<'a>(accept: impl Iterator<Item = &'a str>) -> TextFormat {
    let (mut open, mut plain, mut any) = (0.0_f64, 0.0_f64, 0.0_f64);
    for range in accept.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok());
        let weight = weight.unwrap_or(0.0);
        match kind.as_str() {
            "application/openmetrics-text" => open = open.max(weight),
            "text/plain" | "text/*" => plain = plain.max(weight),
            "*/*" => any = any.max(weight),
            _ => {}
        }
    }
    if open > plain && open >= any { TextFormat::OpenMetrics } else { TextFormat::Prometheus }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_has_the_form_that_is_asked_for() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                          application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, format) in [
            ("", TextFormat::Prometheus),
            ("*/*", TextFormat::Prometheus),
            ("text/html, */*;q=0.8", TextFormat::Prometheus),
            ("text/plain", TextFormat::Prometheus),
            ("application/openmetrics-text; q=0", TextFormat::Prometheus),
            ("text/plain;q=0.9, application/openmetrics-text;q=0.1", TextFormat::Prometheus),
            ("application/openmetrics-text; version=1.0.0", TextFormat::OpenMetrics),
            ("Application/OpenMetrics-Text, text/plain;q=0.5", TextFormat::OpenMetrics),
            (prometheus, TextFormat::OpenMetrics),
        ] {
            assert_eq!(wanted(std::iter::once(accept)), format, "{accept}");
        }
    }

    #[test]
    fn requests_are_told_apart_by_a_fixed_set_of_words() {
        let base = "/apis/fluxion.flux-framework.org/v1alpha1";
        let kind = |method: Method, path: &str, query| kind_of(&method, &format!("{base}{path}"), query);
        assert_eq!(kind(Method::GET, "/fluxionjobs", Some("limit=5")), ("fluxionjobs", "list"));
        assert_eq!(kind(Method::GET, "/fluxionjobs", Some("watch=true")), ("fluxionjobs", "watch"));
        assert_eq!(kind(Method::GET, "/namespaces/a/fluxionjobs/job.b", None), ("fluxionjobs", "get"));
        assert_eq!(
            kind(Method::GET, "/namespaces/a/fluxionjobs/b/explain", None),
            ("fluxionjobs", "explain")
        );
        assert_eq!(kind(Method::POST, "/namespaces/a/fluxionjobs/b/cancel", None), ("fluxionjobs", "cancel"));
        assert_eq!(kind(Method::DELETE, "/fluxionnodes/n", None), ("fluxionnodes", "other"));
        assert_eq!(kind_of(&Method::GET, "/healthz", None), ("other", "get"));
    }
}
