//! API paths and queries, with all user input percent-encoded.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::names::API_VERSION;

const KEEP: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes one path segment or query value. `.` and `..` are encoded too, for they would walk the path.
pub(super) fn encode(text: &str) -> String {
    match text {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => utf8_percent_encode(text, KEEP).to_string(),
    }
}

/// `/apis/GROUP/VERSION[/namespaces/NS]/RESOURCE[/NAME]`.
pub(super) fn object(namespace: Option<&str>, resource: &str, name: Option<&str>) -> String {
    let mut path = format!("/apis/{API_VERSION}");
    if let Some(namespace) = namespace {
        path.push_str("/namespaces/");
        path.push_str(&encode(namespace));
    }
    path.push('/');
    path.push_str(resource);
    if let Some(name) = name {
        path.push('/');
        path.push_str(&encode(name));
    }
    path
}

/// Appends `key=value` to a query that may still be empty.
pub(super) fn push_query(path: &mut String, key: &str, value: &str) {
    path.push(if path.contains('?') { '&' } else { '?' });
    path.push_str(key);
    path.push('=');
    path.push_str(&encode(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_segment() {
        assert_eq!(
            object(Some("a/../b"), "fluxionjobs", Some("job.x?y=1#z")),
            "/apis/fluxion.flux-framework.org/v1alpha1/namespaces/a%2F..%2Fb/fluxionjobs/job.x%3Fy%3D1%23z"
        );
        assert!(object(None, "fluxionnodes", Some("..")).ends_with("/%2E%2E"));
    }

    #[test]
    fn queries_are_joined() {
        let mut path = "/x".to_owned();
        push_query(&mut path, "limit", "5");
        push_query(&mut path, "labelSelector", "a=b,c");
        assert_eq!(path, "/x?limit=5&labelSelector=a%3Db%2Cc");
    }
}
