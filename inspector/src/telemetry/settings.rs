//! Where traces are sent, from the flag and OpenTelemetry's environment variables.

use std::time::Duration;

/// Settings of the export of traces.
#[derive(Clone)]
pub struct TraceSettings {
    /// URL that spans are posted to.
    pub(super) url: reqwest::Url,
    /// May contain credentials.
    pub(super) headers: reqwest::header::HeaderMap,
    pub(super) timeout: Duration,
    /// Attributes of the resource.
    pub(super) resource: Vec<(String, String)>,
    pub(super) sampler: Sampler,
}

/// Which traces are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sampler {
    /// The caller's decision counts, where there is one.
    pub(super) parent: bool,
    /// The share of all others, of 2^64.
    pub(super) below: u128,
}

/// Why the settings are rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {problem}")]
pub struct InvalidSettings {
    name: &'static str,
    problem: String,
}

/// All of them.
const EVERY: u128 = 1 << 64;
/// Maximum time for one request, as the specification says by default.
const TIMEOUT: Duration = Duration::from_secs(10);

impl TraceSettings {
    /// From `--otlp-endpoint`, which takes precedence, and variables (names as in the OpenTelemetry specification); `None` if
    /// traces are not to be sent.
    pub fn read(
        flag: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, InvalidSettings> {
        // An empty variable counts as absent.
        let variable = |name: &'static str| variable(name).filter(|value| !value.trim().is_empty());
        let off = variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || variable("OTEL_TRACES_EXPORTER").is_some_and(|value| value.trim() == "none");
        let traces = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        let base = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let url = if let Some(flag) = flag {
            Some(with_path("--otlp-endpoint", flag)?)
        } else if let Some(url) = variable(traces) {
            Some(parse(traces, &url)?)
        } else if let Some(url) = variable(base) {
            Some(with_path(base, &url)?)
        } else {
            None
        };
        let Some(url) = url.filter(|_| !off) else { return Ok(None) };
        let mut headers = reqwest::header::HeaderMap::new();
        for name in ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"] {
            for (key, value) in variable(name).map(|list| pairs(name, &list)).transpose()?.unwrap_or_default()
            {
                let invalid = || InvalidSettings { name, problem: "contains an invalid header".to_owned() };
                let key = reqwest::header::HeaderName::try_from(key).map_err(|_| invalid())?;
                let mut value = reqwest::header::HeaderValue::try_from(value).map_err(|_| invalid())?;
                value.set_sensitive(true);
                headers.insert(key, value);
            }
        }
        let name = "OTEL_EXPORTER_OTLP_TIMEOUT";
        let timeout = match variable(name) {
            None => TIMEOUT,
            Some(text) => {
                let milliseconds = text.trim().parse().ok().filter(|number| (1..=600_000).contains(number));
                let problem = "must be a number of milliseconds, at most 600000".to_owned();
                Duration::from_millis(milliseconds.ok_or(InvalidSettings { name, problem })?)
            }
        };
        let name = "OTEL_RESOURCE_ATTRIBUTES";
        let attributes = variable(name).map(|list| pairs(name, &list)).transpose()?.unwrap_or_default();
        let service = variable("OTEL_SERVICE_NAME");
        let named = attributes.iter().any(|(key, _)| key == "service.name");
        let service = service.or_else(|| (!named).then(|| "fluxion-inspector".to_owned()));
        let mut resource: Vec<(String, String)> = vec![
            ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("telemetry.sdk.language".to_owned(), "rust".to_owned()),
        ];
        for (key, value) in
            attributes.into_iter().chain(service.map(|name| ("service.name".to_owned(), name)))
        {
            resource.retain(|(known, _)| *known != key);
            resource.push((key, value));
        }
        let sampler = sampler(
            variable("OTEL_TRACES_SAMPLER").as_deref(),
            variable("OTEL_TRACES_SAMPLER_ARG").as_deref(),
        )?;
        Ok(Some(Self { url, headers, timeout, resource, sampler }))
    }
}

fn parse(name: &'static str, text: &str) -> Result<reqwest::Url, InvalidSettings> {
    let problem = "must be a URL such as http://collector:4318".to_owned();
    let invalid = InvalidSettings { name, problem };
    let url = reqwest::Url::parse(text.trim()).map_err(|_| invalid.clone())?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() { Ok(url) } else { Err(invalid) }
}

/// The endpoint of a collector, to whose path that of traces is added.
fn with_path(name: &'static str, text: &str) -> Result<reqwest::Url, InvalidSettings> {
    let mut url = parse(name, text)?;
    let path = format!("{}/v1/traces", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

/// `key1=value1,key2=value2`, percent-encoded.
fn pairs(name: &'static str, list: &str) -> Result<Vec<(String, String)>, InvalidSettings> {
    let decode = |text: &str| {
        percent_encoding::percent_decode_str(text.trim()).decode_utf8().map(std::borrow::Cow::into_owned).ok()
    };
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=')?;
        Some((decode(key).filter(|key| !key.is_empty())?, decode(value)?))
    };
    let problem = "must be a list of the form key1=value1,key2=value2".to_owned();
    let invalid = InvalidSettings { name, problem };
    list.split(',').filter(|one| !one.trim().is_empty()).map(|one| pair(one).ok_or(invalid.clone())).collect()
}

fn sampler(name: Option<&str>, argument: Option<&str>) -> Result<Sampler, InvalidSettings> {
    let name = name.map_or("parentbased_always_on", str::trim);
    let (parent, rest) = name.strip_prefix("parentbased_").map_or((false, name), |rest| (true, rest));
    let below = match rest {
        "always_on" => EVERY,
        "always_off" => 0,
        "traceidratio" => {
            let ratio: f64 = argument.map_or(Some(1.0), |text| text.trim().parse().ok()).unwrap_or(-1.0);
            if !(0.0..=1.0).contains(&ratio) {
                let problem = "must be between 0 and 1".to_owned();
                return Err(InvalidSettings { name: "OTEL_TRACES_SAMPLER_ARG", problem });
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 2^64")]
            let below = (ratio * EVERY as f64) as u128;
            below
        }
        _ => {
            let problem = "must be always_on, always_off, traceidratio, or one of these after parentbased_";
            return Err(InvalidSettings { name: "OTEL_TRACES_SAMPLER", problem: problem.to_owned() });
        }
    };
    Ok(Sampler { parent, below })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        flag: Option<&str>,
        variables: &[(&str, &str)],
    ) -> Result<Option<TraceSettings>, InvalidSettings> {
        let known =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        TraceSettings::read(flag, known)
    }

    #[test]
    fn the_flag_comes_before_the_variables() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://base:4318/");
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces/in");
        for (flag, variables, url) in [
            (None, vec![], None),
            (None, vec![("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], None),
            (None, vec![base], Some("http://base:4318/v1/traces")),
            (None, vec![base, traces], Some("https://traces/in")),
            (Some("http://flag:4318/x"), vec![base, traces], Some("http://flag:4318/x/v1/traces")),
            (None, vec![base, ("OTEL_SDK_DISABLED", "true")], None),
            (None, vec![base, ("OTEL_TRACES_EXPORTER", "none")], None),
        ] {
            let settings = read(flag, &variables).unwrap();
            assert_eq!(settings.map(|settings| settings.url.to_string()).as_deref(), url, "{variables:?}");
        }
    }

    #[test]
    fn the_resource_is_described_by_the_variables() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://base:4318");
        let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,k8s.cluster.name=b%2Cc");
        let of = |variables: &[(&str, &str)], wanted: &str| {
            let settings = read(None, variables).unwrap().unwrap();
            settings.resource.into_iter().find(|(key, _)| key == wanted).map(|(_, value)| value)
        };
        assert_eq!(of(&[endpoint], "service.name").as_deref(), Some("fluxion-inspector"));
        assert_eq!(of(&[endpoint, attributes], "service.name").as_deref(), Some("a"));
        assert_eq!(of(&[endpoint, attributes], "k8s.cluster.name").as_deref(), Some("b,c"));
        let service = ("OTEL_SERVICE_NAME", "d");
        assert_eq!(of(&[endpoint, attributes, service], "service.name").as_deref(), Some("d"));
    }

    #[test]
    fn what_is_wrong_is_said_without_secrets() {
        for (flag, variable) in [
            (Some("collector:4318"), None),
            (Some("http://"), None),
            (None, Some(("OTEL_EXPORTER_OTLP_ENDPOINT", "grpc://user:s3cret@host"))),
            (Some("http://a"), Some(("OTEL_EXPORTER_OTLP_HEADERS", "s3cret"))),
            (Some("http://a"), Some(("OTEL_EXPORTER_OTLP_HEADERS", "a=s3cret%0a"))),
            (Some("http://a"), Some(("OTEL_EXPORTER_OTLP_TIMEOUT", "never"))),
            (Some("http://a"), Some(("OTEL_RESOURCE_ATTRIBUTES", "=x"))),
            (Some("http://a"), Some(("OTEL_TRACES_SAMPLER", "sometimes"))),
        ] {
            let error = read(flag, variable.as_slice()).err().expect("rejected").to_string();
            assert!(!error.contains("s3cret"), "{error}");
            assert!(error.starts_with(variable.map_or("--otlp-endpoint", |(name, _)| name)), "{error}");
        }
    }

    #[test]
    fn samplers_are_those_of_the_specification() {
        let of = |name: &str, argument| sampler(Some(name), argument).unwrap();
        assert_eq!(sampler(None, None).unwrap(), Sampler { parent: true, below: EVERY });
        assert_eq!(of("always_off", None), Sampler { parent: false, below: 0 });
        let half = Sampler { parent: true, below: EVERY / 2 };
        assert_eq!(of("parentbased_traceidratio", Some("0.5")), half);
        assert!(sampler(Some("traceidratio"), Some("2")).is_err());
        assert!(sampler(Some("traceidratio"), Some("NaN")).is_err());
    }
}
