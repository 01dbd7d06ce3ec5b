//! History in a real `PostgreSQL` server whose certificate is verified.

use std::time::SystemTime;

use fluxion_tests::postgres::PostgresServer;

use super::postgres::{connect, count, place_at};
use super::*;
use crate::tls::authority::{Authority, Issued};

/// An authority, what it issued for these names, and a file that trusts it.
fn issued(names: &[&str], file: &Path) -> Issued {
    let authority = Authority::create(SystemTime::now()).unwrap();
    std::fs::write(file, &authority.bundle).unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    authority.issue(&names, SystemTime::now()).unwrap()
}

fn url(server: &PostgresServer, mode: &str, ca: &Path) -> String {
    format!("{}?sslmode={mode}&sslrootcert={}", server.url(), ca.display())
}

/// What a leader says of a journal that it can't use. Neither the engine nor the writer waits for it.
async fn problem(url: &str) -> String {
    let mut inspector = Inspector::start(place_at(url, "one")).await;
    inspector.lead(1_000);
    inspector.say([transition("u", 0)]).await;
    inspector.wait_for(|problem| problem.is_some()).await;
    let problem = inspector.problem().unwrap();
    inspector.say([transition("u", 1)]).await;
    inspector.end().await;
    assert!(problem.starts_with("history is not recorded since 2"), "{problem}");
    assert!(!problem.contains("s3cret"), "{problem}");
    problem
}

#[tokio::test]
async fn only_a_server_with_a_trusted_certificate_gets_the_history() {
    let dir = tempfile::tempdir().unwrap();
    let (ca, other) = (dir.path().join("ca.crt"), dir.path().join("other.crt"));
    let certificate = issued(&["127.0.0.1"], &ca);
    issued(&["127.0.0.1"], &other);
    let server = PostgresServer::start_with_tls(&certificate.certificate, &certificate.key).unwrap();

    let mut inspector = Inspector::start(place_at(&url(&server, "verify-full", &ca), "one")).await;
    inspector.lead(1_000);
    inspector.say([transition("u", 0)]).await;
    inspector.written().await;
    inspector.wait_for(|problem| problem.is_none()).await;
    let mut connection = connect(&server).await;
    let plain = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                 WHERE NOT ssl AND application_name = 'fluxion-inspector'";
    assert_eq!(count(&mut connection, plain).await, 0);
    assert_eq!(count(&mut connection, "SELECT count(*) FROM fluxion_transitions").await, 1);
    inspector.end().await;

    let untrusted = "the certificate of the database server was rejected: it is not signed by a trusted \
                     certificate authority (sslrootcert)";
    for mode in ["verify-full", "verify-ca"] {
        let told = problem(&url(&server, mode, &other)).await;
        assert!(told.contains(untrusted), "{told}");
    }
    let told = problem(&url(&server, "verify-full", &dir.path().join("missing.crt"))).await;
    assert!(told.contains("a file named by sslrootcert, sslcert or sslkey does not exist"), "{told}");
}

#[tokio::test]
async fn a_certificate_for_another_host_or_none_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.crt");
    let certificate = issued(&["db.example.com"], &ca);
    let server = PostgresServer::start_with_tls(&certificate.certificate, &certificate.key).unwrap();
    let told = problem(&url(&server, "verify-full", &ca)).await;
    assert!(told.contains("rejected: it is for another host name than that in the URL"), "{told}");
    let plain = PostgresServer::start().unwrap();
    let told = problem(&url(&plain, "verify-full", &ca)).await;
    assert!(told.contains("server does not support TLS"), "{told}");
}

#[tokio::test]
async fn an_authority_that_is_corrected_needs_no_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (ca, right) = (dir.path().join("ca.crt"), dir.path().join("right.crt"));
    let certificate = issued(&["127.0.0.1"], &right);
    issued(&["127.0.0.1"], &ca);
    let server = PostgresServer::start_with_tls(&certificate.certificate, &certificate.key).unwrap();
    let mut inspector = Inspector::start(place_at(&url(&server, "verify-full", &ca), "one")).await;
    inspector.lead(1_000);
    inspector.wait_for(|problem| problem.is_some()).await;
    inspector.say([transition("u", 0)]).await;
    std::fs::copy(&right, &ca).unwrap();
    inspector.wait_for(|problem| problem.is_none()).await;
    inspector.written().await;
    inspector.end().await;
    let all = "SELECT count(*) FROM fluxion_transitions";
    assert_eq!(count(&mut connect(&server).await, all).await, 1);
}
