//! Where the history of a cluster is stored, as given by users: a URL that may contain a password, and so is never shown.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use sqlx::postgres::PgConnectOptions;

/// Parameters that a `postgres:` URL may have. Others would be ignored, and logged with their values.
const PARAMETERS: [&str; 17] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
];

/// A URL as given by a user; its text is only read by [`Location::parse`].
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct JournalUrl(String);

impl From<&str> for JournalUrl {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for JournalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JournalUrl(..)")
    }
}

/// Why a URL is rejected; without the URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be sqlite:PATH or postgres://USER@HOST/DATABASE{0}")]
pub struct InvalidUrl(String);

/// Where the history is stored.
#[derive(Clone)]
pub enum Location {
    /// `cluster/state.db` in the state directory.
    StateDir,
    /// A `SQLite` file.
    File(PathBuf),
    /// A `PostgreSQL` database.
    Server(Box<PgConnectOptions>),
}

impl Location {
    /// Reads a URL.
    pub fn parse(url: &JournalUrl) -> Result<Self, InvalidUrl> {
        let invalid = |why: &str| InvalidUrl(format!(" ({why})"));
        let Some((scheme, rest)) = url.0.trim().split_once(':') else {
            return Err(InvalidUrl(String::new()));
        };
        match scheme {
            "sqlite" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                if path.is_empty() || path.contains(['?', '\0']) || path == ":memory:" {
                    return Err(invalid("a file path is required"));
                }
                Ok(Self::File(PathBuf::from(path)))
            }
            "postgres" | "postgresql" => {
                let query = rest.split_once('?').map_or("", |(_, query)| query);
                for (name, _) in form_urlencoded::parse(query.as_bytes()) {
                    if !PARAMETERS.contains(&&*name) {
                        // The name may be a part of a password with an unescaped question mark.
                        return Err(invalid(
                            "unknown parameter; percent-encode special characters in the password",
                        ));
                    }
                }
                let options: PgConnectOptions =
                    url.0.trim().parse().map_err(|error: sqlx::Error| match error {
                        sqlx::Error::Configuration(why) => invalid(&why.to_string()),
                        _ => InvalidUrl(String::new()),
                    })?;
                Ok(Self::Server(Box::new(options)))
            }
            _ => Err(InvalidUrl(String::new())),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Location {
    /// Without passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StateDir => f.write_str("the state directory"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Server(options) => {
                let (user, host, port) = (options.get_username(), options.get_host(), options.get_port());
                let database = options.get_database().unwrap_or(user);
                match options.get_socket() {
                    Some(socket) => write!(f, "postgres://{user}@{}/{database}", socket.display()),
                    None => write!(f, "postgres://{user}@{host}:{port}/{database}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_shown_without_its_password() {
        for (url, shown) in [
            ("sqlite:/var/lib/history.db", "/var/lib/history.db"),
            ("sqlite:///var/lib/history.db", "/var/lib/history.db"),
            (
                "postgres://fluxion:s3cret@db.example.com/history",
                "postgres://fluxion@db.example.com:5432/history",
            ),
            (
                "postgresql://fluxion@[::1]:5433/?password=s3cret&sslmode=verify-full",
                "postgres://fluxion@[::1]:5433/fluxion",
            ),
            ("postgres://fluxion:s3cret@%2Frun%2Fpg/h", "postgres://fluxion@/run/pg/h"),
        ] {
            let location = Location::parse(&url.into()).unwrap();
            assert_eq!((location.to_string(), format!("{location:?}")), (shown.to_owned(), shown.to_owned()));
            assert_eq!(format!("{:?}", JournalUrl::from(url)), "JournalUrl(..)");
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_the_url() {
        for url in [
            "",
            "s3cret",
            "sqlite:",
            "sqlite://",
            "mysql://fluxion:s3cret@db/history",
            "postgres://fluxion:s3cret@db:99999/history",
            "postgres://fluxion:s3cret@[db/history",
            "postgres://fluxion:a?s3cret@db/history",
            "postgres://fluxion:a/s3cret@db/history",
            "postgres://fluxion@db/history?passwd=s3cret",
            "postgres://fluxion:s3cret@db/history?sslmode=sometimes",
        ] {
            let error = Location::parse(&url.into()).unwrap_err().to_string();
            assert!(error.starts_with("must be sqlite:PATH or postgres://"), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
