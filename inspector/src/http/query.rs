//! The query of a list or watch, as sent by Kubernetes clients. Unknown keys are ignored, as in kube-apiserver;
//! invalid values of known keys are rejected.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::accept::{Accept, Include};
use super::page::Continue;
use super::refusal::Refusal;

/// Maximum length of a query.
const MAX_BYTES: usize = 32 * 1024;
/// Maximum duration of a watch with `timeoutSeconds`: one day.
const MAX_WATCH_SECONDS: u64 = 86_400;

/// The keys and values of a query, decoded.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    fn parse(text: &str) -> Result<Self, Refusal> {
        if text.len() > MAX_BYTES {
            return Err(Refusal::BadRequest(format!("the query is longer than {MAX_BYTES} bytes")));
        }
        Ok(Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect()))
    }

    /// The first value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Whether a boolean parameter is set; `KEY`, `KEY=1` and `KEY=true` all set it.
    pub(super) fn flag(&self, key: &str) -> Result<bool, Refusal> {
        match self.get(key) {
            None | Some("false" | "0" | "False" | "FALSE" | "f" | "F") => Ok(false),
            Some("" | "true" | "1" | "True" | "TRUE" | "t" | "T") => Ok(true),
            Some(_) => Err(Refusal::BadRequest(format!("{key}: must be true or false"))),
        }
    }

    /// Whether this is a dry run: `dryRun=All`.
    pub(super) fn dry_run(&self) -> Result<bool, Refusal> {
        let mut values = self.0.iter().filter(|(name, _)| name == "dryRun").peekable();
        let asked = values.peek().is_some();
        if values.all(|(_, value)| value == "All") {
            Ok(asked)
        } else {
            Err(Refusal::BadRequest("dryRun: must be All".to_owned()))
        }
    }

    /// How much of an object stands in a row of a table (`includeObject`).
    fn include(&self) -> Result<Include, Refusal> {
        match self.get("includeObject") {
            None | Some("" | "Metadata") => Ok(Include::Metadata),
            Some("None") => Ok(Include::Nothing),
            Some("Object") => Ok(Include::Object),
            Some(_) => Err(Refusal::BadRequest("includeObject: must be None, Metadata or Object".to_owned())),
        }
    }

    fn number(&self, key: &str) -> Result<u64, Refusal> {
        match self.get(key) {
            None | Some("") => Ok(0),
            Some(text) => text
                .parse()
                .map_err(|_| Refusal::BadRequest(format!("{key}: must be an integer, 0 or greater"))),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        Self::parse(parts.uri.query().unwrap_or_default())
    }
}

/// How one object is asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct GetQuery {
    pub accept: Accept,
    pub include: Include,
}

impl<S: Sync> FromRequestParts<S> for GetQuery {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let include = Query::from_request_parts(parts, state).await?.include()?;
        Ok(Self { accept: Accept::of(&parts.headers), include })
    }
}

/// Which lists are an answer to a question for one resource version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum VersionMatch {
    /// That one or a later one.
    #[default]
    NotOlderThan,
    /// That one.
    Exact,
}

/// What a list or a watch is asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct ListQuery {
    pub accept: Accept,
    pub include: Include,
    /// 0: no limit.
    pub limit: u64,
    pub continue_: Option<Continue>,
    /// Not parsed yet: the supported fields depend on the resource.
    pub label_selector: String,
    pub field_selector: String,
    pub watch: bool,
    /// `None` if not given.
    pub resource_version: Option<u64>,
    pub version_match: VersionMatch,
    pub initial_events: bool,
    pub bookmarks: bool,
    pub timeout_seconds: Option<u64>,
}

impl TryFrom<&Query> for ListQuery {
    type Error = Refusal;

    fn try_from(query: &Query) -> Result<Self, Refusal> {
        let text = |key: &str| query.get(key).unwrap_or_default().to_owned();
        let watch = query.flag("watch")?;
        let initial_events = query.flag("sendInitialEvents")?;
        if initial_events && !watch {
            return Err(Refusal::BadRequest("sendInitialEvents: requires watch=true".to_owned()));
        }
        let version_match = match query.get("resourceVersionMatch") {
            None | Some("" | "NotOlderThan") => VersionMatch::NotOlderThan,
            Some("Exact") if watch => {
                return Err(Refusal::Invalid(
                    "resourceVersionMatch: Exact is forbidden for watch: use NotOlderThan".to_owned(),
                ));
            }
            Some("Exact") => VersionMatch::Exact,
            Some(_) => {
                return Err(Refusal::Invalid(
                    "resourceVersionMatch: must be Exact or NotOlderThan".to_owned(),
                ));
            }
        };
        let resource_version = match query.get("resourceVersion") {
            None | Some("") => None,
            Some(_) => Some(query.number("resourceVersion")?),
        };
        if version_match == VersionMatch::Exact && resource_version.is_none_or(|version| version == 0) {
            return Err(Refusal::Invalid(
                "resourceVersionMatch: Exact requires a resourceVersion other than 0".to_owned(),
            ));
        }
        let seconds = query.number("timeoutSeconds")?;
        let continue_ = match query.get("continue") {
            None | Some("") => None,
            Some(token) => Some(token.parse()?),
        };
        Ok(Self {
            accept: Accept::default(),
            include: query.include()?,
            limit: query.number("limit")?,
            continue_,
            label_selector: text("labelSelector"),
            field_selector: text("fieldSelector"),
            watch,
            resource_version,
            version_match,
            initial_events,
            bookmarks: query.flag("allowWatchBookmarks")?,
            timeout_seconds: (seconds > 0).then(|| seconds.min(MAX_WATCH_SECONDS)),
        })
    }
}

impl<S: Sync> FromRequestParts<S> for ListQuery {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let query = Query::from_request_parts(parts, state).await?;
        Ok(Self { accept: Accept::of(&parts.headers), ..Self::try_from(&query)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Result<ListQuery, Refusal> {
        ListQuery::try_from(&Query::parse(text)?)
    }

    #[test]
    fn what_kubectl_sends_is_understood() {
        let query = list("limit=500&fieldSelector=metadata.name%3Djob.a&resourceVersion=0&watch=true&allowWatchBookmarks=true&timeoutSeconds=300&unknown=1").unwrap();
        assert_eq!(
            (query.limit, query.resource_version, query.watch, query.bookmarks),
            (500, Some(0), true, true)
        );
        assert_eq!(query.field_selector, "metadata.name=job.a");
        assert_eq!(query.timeout_seconds, Some(300));
    }

    #[test]
    fn impossible_values_are_refused() {
        for bad in [
            "limit=-1",
            "limit=1e9",
            "limit=99999999999999999999999",
            "watch=maybe",
            "resourceVersion=abc",
            "resourceVersion=-5",
            "sendInitialEvents=true",
            "continue=%00%ff",
            "timeoutSeconds=-1",
        ] {
            assert!(matches!(list(bad), Err(Refusal::BadRequest(_))), "{bad}");
        }
        assert!(list(&"x=1&".repeat(20_000)).is_err());
        assert_eq!(list("limit=1000000000").unwrap().limit, 1_000_000_000);
        assert_eq!(list("%zz=%&&==&limit").unwrap().limit, 0);
    }

    #[test]
    fn what_versions_match() {
        let matched = |query| list(query).unwrap().version_match;
        assert_eq!(
            matched("resourceVersionMatch=NotOlderThan&resourceVersion=5"),
            VersionMatch::NotOlderThan
        );
        assert_eq!(matched("resourceVersionMatch=Exact&resourceVersion=5"), VersionMatch::Exact);
        for bad in [
            "resourceVersionMatch=exact&resourceVersion=5",
            "resourceVersionMatch=Exact",
            "resourceVersionMatch=Exact&resourceVersion=0",
            "resourceVersionMatch=Exact&resourceVersion=5&watch=true",
        ] {
            assert!(matches!(list(bad), Err(Refusal::Invalid(_))), "{bad}");
        }
    }

    #[test]
    fn a_row_of_a_table_has_as_much_of_its_object_as_is_asked_for() {
        assert_eq!(list("").unwrap().include, Include::Metadata);
        assert_eq!(list("includeObject=None").unwrap().include, Include::Nothing);
        assert_eq!(list("includeObject=Object").unwrap().include, Include::Object);
        assert!(matches!(list("includeObject=all"), Err(Refusal::BadRequest(_))));
    }

    #[test]
    fn a_dry_run_is_all_or_refused() {
        let dry = |text: &str| Query::parse(text).unwrap().dry_run();
        assert_eq!(dry(""), Ok(false));
        assert_eq!(dry("dryRun=All"), Ok(true));
        for bad in ["dryRun=", "dryRun=all", "dryRun=None", "dryRun=All&dryRun=x"] {
            assert!(dry(bad).is_err(), "{bad}");
        }
    }
}
