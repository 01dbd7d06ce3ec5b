//! What a request asks for, as authorisers of Kubernetes see it.
//!
//! Derived from the path alone, so that what no route serves is authorised as well.

use fluxion_api::{GROUP, VERSION};
use http::{Method, Uri};
use percent_encoding::percent_decode_str;

use super::user::User;

/// The resource of jobs.
pub const RESOURCE_JOBS: &str = "fluxionjobs";
/// The resource of nodes.
pub const RESOURCE_NODES: &str = "fluxionnodes";

/// A verb, and on what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attributes {
    pub verb: &'static str,
    pub what: What,
}

/// On what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// Parts that are not there are empty.
    Resource {
        group: String,
        version: String,
        namespace: String,
        resource: String,
        subresource: String,
        name: String,
    },
    /// A path of no resource, decoded.
    Path(String),
}

impl Attributes {
    /// What the request asks for; `None` when its path is not UTF-8.
    pub fn of(method: &Method, uri: &Uri) -> Option<Self> {
        // Each part by itself, as the router does: an encoded slash is part of a name.
        let parts: Option<Vec<String>> = uri
            .path()
            .split('/')
            .skip(1)
            .map(|part| Some(percent_decode_str(part).decode_utf8().ok()?.into_owned()))
            .collect();
        let parts = parts?;
        let query: Vec<_> =
            form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
        let mut rest = match parts.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["apis", GROUP, VERSION, rest @ ..] if rest.iter().all(|part| !part.is_empty()) => rest.to_vec(),
            _ => Vec::new(),
        };
        let mut namespace = "";
        if let ["namespaces", within, _, ..] = rest.as_slice() {
            namespace = within;
            rest.drain(..2);
        }
        let (resource, mut name, subresource) = match rest.as_slice() {
            [resource] => (*resource, "", String::new()),
            [resource, name, sub @ ..] => (*resource, *name, sub.join("/")),
            [] => {
                let decoded = format!("/{}", parts.join("/"));
                return Some(Self { verb: path_verb(method), what: What::Path(decoded) });
            }
        };
        let verb = verb(method, name.is_empty(), &query);
        let selected = if matches!(verb, "list" | "watch") { selected_name(&query) } else { None };
        if name.is_empty() {
            name = selected.as_deref().unwrap_or_default();
        }
        Some(Self {
            verb,
            what: What::Resource {
                group: GROUP.to_owned(),
                version: VERSION.to_owned(),
                namespace: namespace.to_owned(),
                resource: resource.to_owned(),
                subresource,
                name: name.to_owned(),
            },
        })
    }

    /// Listing a resource of ours, in all namespaces where it has any.
    pub fn list(resource: &str) -> Self {
        Self {
            verb: "list",
            what: What::Resource {
                group: GROUP.to_owned(),
                version: VERSION.to_owned(),
                namespace: String::new(),
                resource: resource.to_owned(),
                subresource: String::new(),
                name: String::new(),
            },
        }
    }

    /// Deleting one object of any resource; `api_version` is `VERSION` or `GROUP/VERSION`.
    pub fn delete(api_version: &str, resource: &str, namespace: &str, name: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            verb: "delete",
            what: What::Resource {
                group: group.to_owned(),
                version: version.to_owned(),
                namespace: namespace.to_owned(),
                resource: resource.to_owned(),
                subresource: String::new(),
                name: name.to_owned(),
            },
        }
    }

    /// What every user may read who is known at all: discovery, `OpenAPI`, the version.
    pub fn is_discovery(&self) -> bool {
        let What::Path(path) = &self.what else { return false };
        let group = format!("/apis/{GROUP}");
        let path = path.trim_end_matches('/');
        let open = ["/api", "/apis", "/openapi", "/version"].contains(&path)
            || path.starts_with("/openapi/")
            || path == group
            || path == format!("{group}/{VERSION}");
        open && self.verb == "get"
    }

    /// Whether this is about a resource, and not about a path of no resource.
    pub fn is_resource(&self) -> bool {
        matches!(self.what, What::Resource { .. })
    }

    /// The namespace of jobs that the request is about, if it is about those of one.
    pub fn jobs_of(&self) -> Option<&str> {
        match &self.what {
            What::Resource { namespace, resource, .. }
                if resource == RESOURCE_JOBS && !namespace.is_empty() =>
            {
                Some(namespace)
            }
            _ => None,
        }
    }

    /// Whether this is about the jobs of all namespaces.
    pub fn is_all_jobs(&self) -> bool {
        matches!(&self.what, What::Resource { namespace, resource, name, subresource, .. }
            if resource == RESOURCE_JOBS && [namespace, name, subresource].iter().all(|part| part.is_empty()))
            && matches!(self.verb, "list" | "watch")
    }

    /// That the user may not, in kube-apiserver's words.
    pub fn forbidden(&self, user: &User, reason: &str) -> String {
        let who = format!("User {:?} cannot {}", user.name, self.verb);
        let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        match &self.what {
            What::Path(path) => format!("forbidden: {who} path {path:?}{because}"),
            What::Resource { group, namespace, resource, subresource, name, .. } => {
                let object = if name.is_empty() { String::new() } else { format!(" {name:?}") };
                let full = if subresource.is_empty() {
                    resource.clone()
                } else {
                    format!("{resource}/{subresource}")
                };
                let place = if namespace.is_empty() {
                    "at the cluster scope".to_owned()
                } else {
                    format!("in the namespace {namespace:?}")
                };
                let dot = if group.is_empty() { "" } else { "." };
                format!(
                    "{resource}{dot}{group}{object} is forbidden: {who} resource {full:?} in API group {group:?} {place}{because}"
                )
            }
        }
    }
}

fn verb(method: &Method, collection: bool, query: &[(String, String)]) -> &'static str {
    let watches = || {
        let value = query.iter().find(|(key, _)| key == "watch").map(|(_, value)| value.as_str());
        value.is_some_and(|value| !matches!(value, "false" | "0" | "False" | "FALSE" | "f" | "F"))
    };
    match (method.as_str(), collection) {
        ("GET" | "HEAD", true) if watches() => "watch",
        ("GET" | "HEAD", true) => "list",
        ("GET" | "HEAD", false) => "get",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "deletecollection",
        ("DELETE", false) => "delete",
        _ => "",
    }
}

/// The method in lower case; one of others than these is nobody's to use.
fn path_verb(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "get",
        "HEAD" => "head",
        "POST" => "post",
        "PUT" => "put",
        "PATCH" => "patch",
        "DELETE" => "delete",
        "OPTIONS" => "options",
        _ => "",
    }
}

/// The one name that a field selector leaves: who may see one object may list that one.
fn selected_name(query: &[(String, String)]) -> Option<String> {
    let mut selectors = query.iter().filter(|(key, _)| key == "fieldSelector").map(|(_, value)| value);
    let selector = selectors.next()?;
    if selectors.next().is_some() || selector.contains('\\') {
        return None;
    }
    selector.split(',').find_map(|term| {
        let (key, value) = term.split_once('=')?;
        let value = value.strip_prefix('=').unwrap_or(value).trim();
        (key.trim() == "metadata.name" && !value.is_empty()).then(|| value.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "/apis/fluxion.flux-framework.org/v1alpha1";

    fn of(method: &str, path: &str) -> String {
        let uri: Uri =
            if path.starts_with("//") { path[1..].parse() } else { format!("{BASE}{path}").parse() }.unwrap();
        let found = Attributes::of(&method.parse().unwrap(), &uri).unwrap();
        match found.what {
            What::Path(path) => format!("{} {path}", found.verb),
            What::Resource { namespace, resource, subresource, name, .. } => {
                format!("{} {namespace}:{resource}:{name}:{subresource}", found.verb)
            }
        }
    }

    #[test]
    fn requests_are_what_kube_apiserver_takes_them_for() {
        for (method, path, expected) in [
            ("GET", "/fluxionjobs", "list :fluxionjobs::"),
            ("HEAD", "/fluxionjobs", "list :fluxionjobs::"),
            ("GET", "/fluxionjobs?watch=true", "watch :fluxionjobs::"),
            ("GET", "/fluxionjobs?watch", "watch :fluxionjobs::"),
            ("GET", "/fluxionjobs?watch=0", "list :fluxionjobs::"),
            ("GET", "/namespaces/a/fluxionjobs", "list a:fluxionjobs::"),
            ("GET", "/namespaces/a/fluxionjobs/job.x", "get a:fluxionjobs:job.x:"),
            ("GET", "/namespaces/a/fluxionjobs/job.x?watch=true", "get a:fluxionjobs:job.x:"),
            ("GET", "/namespaces/a/fluxionjobs/job.x/explain", "get a:fluxionjobs:job.x:explain"),
            (
                "POST",
                "/namespaces/a/fluxionjobs/job.x/cancel?dryRun=All",
                "create a:fluxionjobs:job.x:cancel",
            ),
            ("DELETE", "/namespaces/a/fluxionjobs", "deletecollection a:fluxionjobs::"),
            ("DELETE", "/fluxionnodes/n", "delete :fluxionnodes:n:"),
            ("PATCH", "/fluxionnodes/n", "patch :fluxionnodes:n:"),
            ("GET", "/namespaces/a/fluxionjobs/b%2Fcancel", "get a:fluxionjobs:b/cancel:"),
            ("GET", "/fluxionjobs?fieldSelector=metadata.name%3Djob.x", "list :fluxionjobs:job.x:"),
            (
                "GET",
                "/fluxionjobs?fieldSelector=status.state%3D%3DRunning,metadata.name%3D%3Dx",
                "list :fluxionjobs:x:",
            ),
            ("GET", "/fluxionjobs?fieldSelector=metadata.name!%3Dx", "list :fluxionjobs::"),
            ("GET", "/fluxionjobs?fieldSelector=metadata.name%3Da&fieldSelector=", "list :fluxionjobs::"),
            ("GET", "/namespaces/a", "get :namespaces:a:"),
            ("GET", "", "get /apis/fluxion.flux-framework.org/v1alpha1"),
            ("GET", "/fluxionjobs/", "get /apis/fluxion.flux-framework.org/v1alpha1/fluxionjobs/"),
            ("GET", "//metrics", "get /metrics"),
            ("POST", "//apis/apps/v1/deployments", "post /apis/apps/v1/deployments"),
            ("BREW", "//metrics", " /metrics"),
        ] {
            assert_eq!(of(method, path), expected, "{method} {path}");
        }
        let bad: Uri = format!("{BASE}/fluxionnodes/%ff").parse().unwrap();
        assert_eq!(Attributes::of(&Method::GET, &bad), None);
    }

    #[test]
    fn only_discovery_is_for_everybody() {
        let open = |method: &str, path: &str| {
            Attributes::of(&method.parse().unwrap(), &path.parse().unwrap()).unwrap().is_discovery()
        };
        for path in [
            "/apis",
            "/apis/",
            "/apis/fluxion.flux-framework.org",
            BASE,
            "/openapi/v3",
            "/openapi/v3/apis/x",
            "/version",
        ] {
            assert!(open("GET", path), "{path}");
            assert!(!open("POST", path), "{path}");
        }
        for path in [
            "/metrics",
            "/openapix",
            "/apis/apps",
            &format!("{BASE}/fluxionjobs"),
            &format!("{BASE}/namespaces/a"),
            "/debug",
        ] {
            assert!(!open("GET", path), "{path}");
        }
    }

    #[test]
    fn denials_read_as_those_of_kube_apiserver() {
        let user = User { name: "jane".into(), ..User::default() };
        let told = |method: &str, path: &str, reason: &str| {
            Attributes::of(&method.parse().unwrap(), &path.parse().unwrap()).unwrap().forbidden(&user, reason)
        };
        let jobs = format!("{BASE}/namespaces/team/fluxionjobs");
        assert_eq!(
            told("GET", &jobs, ""),
            r#"fluxionjobs.fluxion.flux-framework.org is forbidden: User "jane" cannot list resource "fluxionjobs" in API group "fluxion.flux-framework.org" in the namespace "team""#
        );
        assert_eq!(
            told("POST", &format!("{jobs}/job.x/cancel"), "no"),
            r#"fluxionjobs.fluxion.flux-framework.org "job.x" is forbidden: User "jane" cannot create resource "fluxionjobs/cancel" in API group "fluxion.flux-framework.org" in the namespace "team": no"#
        );
        assert_eq!(
            told("GET", &format!("{BASE}/fluxionnodes"), ""),
            r#"fluxionnodes.fluxion.flux-framework.org is forbidden: User "jane" cannot list resource "fluxionnodes" in API group "fluxion.flux-framework.org" at the cluster scope"#
        );
        assert_eq!(told("GET", "/metrics", ""), r#"forbidden: User "jane" cannot get path "/metrics""#);
    }
}
