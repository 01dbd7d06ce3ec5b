//! Content negotiation: which of the forms that an object can have is asked for in `Accept` (RFC 9110, section
//! 12.5.1, with the parameters `as`, `g` and `v` of Kubernetes).

use std::cmp::Reverse;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use super::refusal::Refusal;

/// Media ranges beyond this number are not looked at.
const MAX_RANGES: usize = 64;

/// The versions of `meta.k8s.io` in which tables and bare metadata are written; both have the same members.
const META_VERSIONS: [(&str, &str); 2] = [("v1", "meta.k8s.io/v1"), ("v1beta1", "meta.k8s.io/v1beta1")];

/// How an object, or a list, is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As it is.
    Object,
    /// `Table`, with this `apiVersion`.
    Table(&'static str),
    /// `PartialObjectMetadata` or a list of them, with this `apiVersion`.
    Metadata(&'static str),
}

/// How much of an object stands in a row of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Include {
    Nothing,
    #[default]
    Metadata,
    Object,
}

/// One media range of an `Accept` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// `TYPE/SUBTYPE`, lower case.
    media: String,
    /// In the order in which they came; names in lower case.
    parameters: Vec<(String, String)>,
    /// In thousandths; 0 is not acceptable.
    weight: u16,
}

impl Range {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().filter(|media| media.contains('/'))?.to_ascii_lowercase();
        let mut weight = 1000;
        let mut parameters = Vec::new();
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().trim_matches('"'));
            if name == "q" {
                weight = value.parse::<f32>().map_or(0, thousandths);
            } else {
                parameters.push((name, value.to_owned()));
            }
        }
        Some(Self { media, parameters, weight })
    }

    /// The value of a parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether it takes this media type.
    pub(super) fn takes(&self, media: &str) -> bool {
        let group = media.split_once('/').map_or(media, |(group, _)| group);
        self.media == media
            || self.media == "*/*"
            || self.media.strip_suffix("/*").is_some_and(|wanted| wanted == group)
    }

    /// Whether it names this media type, without wildcards.
    pub(super) fn names(&self, media: &str) -> bool {
        self.media == media
    }

    /// The form that it asks for, of those that an answer with one object, or with many, can have.
    fn form(&self, many: bool) -> Option<Form> {
        if !self.takes("application/json") {
            return None;
        }
        let Some(wanted) = self.parameter("as") else { return Some(Form::Object) };
        let group = self.parameter("g").filter(|group| *group == "meta.k8s.io");
        let version = group.and(self.parameter("v"));
        let (_, version) = META_VERSIONS.into_iter().find(|(name, _)| Some(*name) == version)?;
        match (wanted, many) {
            ("Table", _) => Some(Form::Table(version)),
            ("PartialObjectMetadata", false) | ("PartialObjectMetadataList", true) => {
                Some(Form::Metadata(version))
            }
            _ => None,
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped to what fits")]
fn thousandths(weight: f32) -> u16 {
    (weight.clamp(0.0, 1.0) * 1000.0) as u16
}

/// What is accepted, the most welcome first; of what is welcome alike, what came first.
#[derive(Clone, Debug, Default)]
pub(super) struct Accept(Vec<Range>);

impl Accept {
    /// Reads all `Accept` headers. What can't be read is passed over.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let texts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let ranges = texts.flat_map(|text| text.split(',')).map(str::trim).filter(|text| !text.is_empty());
        let mut ranges: Vec<Range> = ranges.take(MAX_RANGES).filter_map(Range::parse).collect();
        ranges.sort_by_key(|range| Reverse(range.weight));
        Self(ranges)
    }

    /// What the client takes at all; nothing when it did not say.
    pub(super) fn ranges(&self) -> impl Iterator<Item = &Range> {
        self.0.iter().filter(|range| range.weight > 0)
    }

    /// The form of an answer with one object (a watch too, whose events have one each), or with a list.
    pub(super) fn form(&self, many: bool) -> Result<Form, Refusal> {
        if self.0.is_empty() {
            return Ok(Form::Object);
        }
        self.ranges().find_map(|range| range.form(many)).ok_or(Refusal::NotAcceptable(
            "application/json, and application/json;as=Table;g=meta.k8s.io;v=v1, \
             as=PartialObjectMetadata or as=PartialObjectMetadataList",
        ))
    }

    /// Refuses unless plain JSON is accepted.
    pub(super) fn json(&self) -> Result<(), Refusal> {
        if self.0.is_empty() || self.ranges().any(|range| range.form(false) == Some(Form::Object)) {
            Ok(())
        } else {
            Err(Refusal::NotAcceptable("application/json"))
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Accept {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        Ok(Self::of(&parts.headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(accept: &str, many: bool) -> Option<Form> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        Accept::of(&headers).form(many).ok()
    }

    #[test]
    fn the_first_form_that_fits_is_taken() {
        let v1 = "meta.k8s.io/v1";
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let informer = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
                        application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
        let informer_list = informer.replace("PartialObjectMetadata", "PartialObjectMetadataList");
        for (accept, many, expected) in [
            ("", true, Some(Form::Object)),
            ("*/*", true, Some(Form::Object)),
            ("application/*", true, Some(Form::Object)),
            ("application/json, */*", false, Some(Form::Object)),
            ("Application/JSON; charset=utf-8", false, Some(Form::Object)),
            (kubectl, true, Some(Form::Table(v1))),
            (kubectl, false, Some(Form::Table(v1))),
            ("application/json; g = meta.k8s.io ; as=\"Table\" ; v=v1", true, Some(Form::Table(v1))),
            (
                "application/json;as=Table;g=meta.k8s.io;v=v1beta1",
                true,
                Some(Form::Table("meta.k8s.io/v1beta1")),
            ),
            (informer, false, Some(Form::Metadata(v1))),
            // Metadata of one object is no list.
            (informer, true, Some(Form::Object)),
            (&informer_list, true, Some(Form::Metadata(v1))),
            ("application/vnd.kubernetes.protobuf,application/json", true, Some(Form::Object)),
            ("application/vnd.kubernetes.protobuf, */*", true, Some(Form::Object)),
            ("application/json;as=Table;g=meta.k8s.io;v=v2, application/json", true, Some(Form::Object)),
            ("application/json;as=Table;g=other;v=v1, application/json", true, Some(Form::Object)),
            // Weights count, and nothing is taken that is excluded.
            (
                "application/json;q=0.5, application/json;as=Table;g=meta.k8s.io;v=v1;q=0.9",
                true,
                Some(Form::Table(v1)),
            ),
            ("application/json;as=Table;g=meta.k8s.io;v=v1;q=0.1, */*", true, Some(Form::Object)),
            ("application/json;q=0", true, None),
            ("application/json;q=x", true, None),
            ("application/vnd.kubernetes.protobuf", true, None),
            ("application/json;as=Table;g=meta.k8s.io;v=v9", true, None),
            ("application/json;as=Table", true, None),
            ("text/html", false, None),
            // What is no media range counts for nothing.
            ("json", true, Some(Form::Object)),
        ] {
            assert_eq!(form(accept, many), expected, "{accept}");
        }
        assert_eq!(Accept::of(&HeaderMap::new()).form(true), Ok(Form::Object));
        let long = vec!["text/html"; 100_000].join(",");
        assert_eq!(form(&long, true), None);
    }
}
