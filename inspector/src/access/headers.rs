//! A user in the headers of a request: read from those of a front proxy, written for another inspector.

use std::collections::BTreeMap;

use http::header::InvalidHeaderValue;
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::user::User;

const USERNAME: HeaderName = HeaderName::from_static("x-remote-user");
/// kube-apiserver sends the uid in this header, whether or not its configuration names one.
pub(super) const UID: &str = "x-remote-uid";
const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const EXTRA_PREFIX: &str = "x-remote-extra-";
/// What can't be part of a header's name as it is.
const KEY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// Which headers name a user, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UserHeaders {
    pub usernames: Vec<String>,
    pub uids: Vec<String>,
    pub groups: Vec<String>,
    pub extra_prefixes: Vec<String>,
}

impl Default for UserHeaders {
    /// Those that [`write`] writes.
    fn default() -> Self {
        Self {
            usernames: vec![USERNAME.to_string()],
            uids: vec![UID.to_owned()],
            groups: vec![GROUP.to_string()],
            extra_prefixes: vec![EXTRA_PREFIX.to_owned()],
        }
    }
}

impl UserHeaders {
    /// The user that the headers name.
    pub(super) fn user(&self, headers: &HeaderMap) -> Option<User> {
        let values = |name: &String| {
            headers.get_all(name).iter().filter_map(|value| String::from_utf8(value.as_bytes().to_vec()).ok())
        };
        let first = |names: &[String]| names.iter().flat_map(values).find(|value| !value.is_empty());
        let name = first(&self.usernames)?;
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra_prefixes {
            for header in headers.keys() {
                let Some(key) = header.as_str().strip_prefix(prefix.as_str()) else { continue };
                let key = percent_decode_str(key)
                    .decode_utf8()
                    .map_or_else(|_| key.to_owned(), |key| key.to_lowercase());
                extra.entry(key).or_default().extend(values(&header.as_str().to_owned()));
            }
        }
        Some(User {
            name: name.into(),
            uid: first(&self.uids).unwrap_or_default(),
            groups: self.groups.iter().flat_map(values).collect(),
            extra,
        })
    }
}

/// Names a user in headers, as kube-apiserver does. Fails for names that no header can contain.
pub fn write(user: &User, headers: &mut HeaderMap) -> Result<(), InvalidHeaderValue> {
    let value = |text: &str| HeaderValue::from_bytes(text.as_bytes());
    headers.insert(USERNAME, value(&user.name)?);
    if !user.uid.is_empty() {
        headers.insert(HeaderName::from_static(UID), value(&user.uid)?);
    }
    for group in &user.groups {
        headers.append(GROUP, value(group)?);
    }
    for (key, values) in &user.extra {
        let name = format!("{EXTRA_PREFIX}{}", utf8_percent_encode(key, KEY)).to_ascii_lowercase();
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { continue };
        for text in values {
            headers.append(&name, value(text)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_read_as_it_was_written() {
        let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let mut user = User {
            name: "jürgen@example.org".into(),
            uid: "u-1".to_owned(),
            groups: texts(&["system:authenticated", "team a, b"]),
            extra: [
                ("authentication.kubernetes.io/credential-id", &["JTI=1"][..]),
                ("scopes", &["a", "b"]),
                ("ü %/=", &["x"]),
            ]
            .map(|(key, values)| (key.to_owned(), texts(values)))
            .into(),
        };
        for user in [user.clone(), User { name: "x".into(), ..User::default() }] {
            let mut headers = HeaderMap::new();
            write(&user, &mut headers).unwrap();
            assert_eq!(UserHeaders::default().user(&headers), Some(user));
        }
        user.groups.push("a\nb".to_owned());
        assert!(write(&user, &mut HeaderMap::new()).is_err());
    }
}
