//! Connects directly to the inspector, with a bearer token.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use reqwest::Url;

use super::error::Error;
use super::transport::{Answer, Call, Method, Transport};

/// A server at a URL.
pub struct Direct {
    http: reqwest::Client,
    /// Without a trailing slash.
    base: String,
    token: Option<String>,
}

/// Connection timeout.
const CONNECT: Duration = Duration::from_secs(5);

impl Direct {
    /// A server at `url` (`http` or `https`); `certificates` is a PEM bundle that replaces the system's
    /// trust store.
    ///
    /// TLS is not initialized for plain http, which reduces the startup time of short commands.
    pub fn new(url: &str, token: Option<String>, certificates: Option<&[u8]>) -> Result<Self, Error> {
        let bad = |why: &str| Error::BadUrl { url: url.to_owned(), why: why.to_owned() };
        let parsed = Url::parse(url).map_err(|error| bad(&error.to_string()))?;
        if parsed.host_str().is_none() {
            return Err(bad("it has no host name"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(bad("it must not contain a user name or password"));
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(bad("it must not contain a query or fragment"));
        }
        if token
            .as_ref()
            .is_some_and(|token| token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(Error::Setup(
                "the token is empty or contains whitespace or control characters".to_owned(),
            ));
        }
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("kubectl-fluxion/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            // A redirect would carry the token elsewhere.
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(&parsed) {
            builder = builder.no_proxy();
        }
        builder = match parsed.scheme() {
            "http" => builder.tls_backend_preconfigured(no_tls()?),
            "https" => {
                // Fails when one is installed already, which is as good.
                drop(rustls::crypto::ring::default_provider().install_default());
                match certificates {
                    Some(pem) => {
                        let certificates = reqwest::Certificate::from_pem_bundle(pem)
                            .map_err(|error| Error::Setup(format!("invalid CA certificates: {error}")))?;
                        builder.tls_certs_only(certificates)
                    }
                    None => builder,
                }
            }
            _ => return Err(bad("the scheme must be http or https")),
        };
        let http = builder.build().map_err(|error| Error::Setup(chain(&error)))?;
        Ok(Self { http, base: url.trim_end_matches('/').to_owned(), token })
    }

    fn failed(&self, error: &reqwest::Error) -> Error {
        if error.is_timeout() && error.is_connect() {
            return Error::Unreachable {
                server: self.base.clone(),
                why: format!("connection timed out after {}s", CONNECT.as_secs()),
            };
        }
        Error::Unreachable { server: self.base.clone(), why: chain(error) }
    }
}

impl Transport for Direct {
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, Error>> {
        async move {
            let url = format!("{}{}", self.base, call.path);
            let mut request = match call.method {
                Method::Get => self.http.get(url),
                Method::Post => {
                    self.http.post(url).header("content-type", "application/json").body(call.body)
                }
            };
            request = request.header("accept", "application/json");
            if let Some(token) = &self.token {
                request = request.bearer_auth(token);
            }
            let response = request.send().await.map_err(|error| self.failed(&error))?;
            let header = |name: &str| {
                response
                    .headers()
                    .get(name)
                    .and_then(|value| value.to_str().ok())
                    .unwrap_or_default()
                    .to_owned()
            };
            let server = self.base.clone();
            Ok(Answer {
                status: response.status().as_u16(),
                content_type: header("content-type"),
                retry_after: header("retry-after").parse().ok(),
                body: response
                    .bytes_stream()
                    .map_err(move |error| Error::Unreachable { server: server.clone(), why: chain(&error) })
                    .boxed(),
            })
        }
        .boxed()
    }

    fn server(&self) -> String {
        self.base.clone()
    }
}

/// A TLS configuration without trusted roots, for plain http connections: it keeps the HTTP library from
/// reading the system's trust store.
fn no_tls() -> Result<rustls::ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Setup(error.to_string()))?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth())
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

/// The innermost cause; the outer errors only repeat the URL.
fn chain(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = innermost.to_string();
    // "Connection refused (os error 111)": the number helps nobody.
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_cannot_be_asked() {
        for (url, why) in [
            ("", "relative URL"),
            ("127.0.0.1:80", "relative URL"),
            ("ftp://x", "must be http or https"),
            ("http://", "empty host"),
            ("http://u:p@x", "user name or password"),
            ("http://x/?a=b", "query"),
        ] {
            let error = Direct::new(url, None, None).err().unwrap();
            assert!(matches!(error, Error::BadUrl { .. }), "{url}: {error}");
            assert!(error.to_string().contains(why), "{url}: {error}");
        }
    }

    #[test]
    fn loopback_addresses_go_past_any_proxy() {
        for (url, loopback) in [
            ("http://localhost:1", true),
            ("http://127.0.0.2", true),
            ("http://[::1]:1", true),
            ("http://x", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), loopback, "{url}");
        }
    }
}
