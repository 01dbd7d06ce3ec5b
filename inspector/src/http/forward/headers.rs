//! Headers that are passed on, and those that are about a connection only.

use axum::http::{HeaderMap, HeaderName, header};

use super::super::refusal::Refusal;
use crate::access::headers as user_headers;
use crate::access::user::User;

/// Headers that are about one connection (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Removes headers that are about a connection, and those that `Connection` names.
pub(super) fn keep_end_to_end(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

/// The headers of a forwarded request of this user.
pub(super) fn of_request(headers: &HeaderMap, user: &User) -> Result<HeaderMap, Refusal> {
    let mut headers = headers.clone();
    keep_end_to_end(&mut headers);
    // The body is sent as a whole, to another host.
    for name in [header::HOST, header::CONTENT_LENGTH, header::EXPECT, header::AUTHORIZATION] {
        headers.remove(name);
    }
    user_headers::write(user, &mut headers).map_err(|_| {
        Refusal::BadRequest("the name of the user or of a group is not valid in HTTP".to_owned())
    })?;
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_about_the_connection_or_the_credential_is_not_passed_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("authorization", "Bearer t"),
            ("host", "example.org"),
            ("accept", "application/json"),
            ("audit-id", "7"),
        ] {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        let user =
            User { name: "jane".into(), groups: vec!["g".to_owned(), "h".to_owned()], ..User::default() };
        let headers = of_request(&headers, &user).unwrap();
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "audit-id", "x-remote-group", "x-remote-user"]);
        assert_eq!(headers.get_all("x-remote-group").iter().count(), 2);
        let user = User { name: "a\nb".into(), ..User::default() };
        assert!(matches!(of_request(&headers, &user), Err(Refusal::BadRequest(_))));
    }
}
