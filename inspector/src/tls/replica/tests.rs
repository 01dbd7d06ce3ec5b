use std::time::Duration;

use axum::Router;
use rustls::ServerConfig;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;
use crate::tls::server_config;

const DAY: Duration = Duration::from_hours(24);

fn keeper() -> ReplicaKeeper {
    let client = Client::new(Router::new(), "ns");
    ReplicaKeeper::new(client, "ns", "s", Arc::default())
}

fn server(replica: &Arc<ReplicaTls>, serving: &Issued) -> Arc<ServerConfig> {
    let certificate = ServingCertificate::default();
    certificate.set(&serving.certificate, &serving.key).unwrap();
    let shown = ShownCertificates { serving: Arc::new(certificate), replica: Arc::clone(replica) };
    Arc::new(server_config(Arc::new(shown)).unwrap())
}

/// Whether the server takes the client for a replica; `None` where the client does not trust the server.
async fn meets(
    client: &Arc<ReplicaTls>,
    server: &Arc<ServerConfig>,
    trust: &Arc<ReplicaTls>,
) -> Option<bool> {
    let (near, far) = tokio::io::duplex(1 << 16);
    let connector = TlsConnector::from(client.client().unwrap().1);
    let acceptor = TlsAcceptor::from(Arc::clone(server));
    let (connected, accepted) =
        tokio::join!(connector.connect(REPLICA.try_into().unwrap(), near), acceptor.accept(far));
    connected.ok()?;
    let accepted = accepted.ok()?;
    Some(trust.accepts(accepted.get_ref().1.peer_certificates().unwrap_or_default(), UnixTime::now()))
}

#[tokio::test]
async fn replicas_of_one_authority_know_each_other_and_nobody_else() {
    let now = SystemTime::now();
    let (ours, other) = (Authority::create(now).unwrap(), Authority::create(now).unwrap());
    let serving = other.issue(&[REPLICA.to_owned(), "localhost".to_owned()], now).unwrap();
    let (mut a, mut b, mut stranger) = (keeper(), keeper(), keeper());
    assert!(!a.replica.accepts(&[], UnixTime::now()) && a.replica.number() == 0);
    a.update(ours.clone(), now).unwrap();
    b.update(ours.clone(), now).unwrap();
    stranger.update(other.clone(), now).unwrap();
    let at_a = server(&a.replica, &serving);
    assert_eq!(meets(&b.replica, &at_a, &a.replica).await, Some(true));
    assert_eq!(meets(&stranger.replica, &at_a, &a.replica).await, None, "it is shown another certificate");
    assert_eq!(meets(&b.replica, &server(&stranger.replica, &serving), &a.replica).await, None);

    // What the authority signed for anything else is not the certificate of a replica.
    let accepts = |issued: &Issued| {
        let certificate = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap();
        a.replica.accepts(&[certificate], UnixTime::now())
    };
    assert!(accepts(&ours.issue_peer(REPLICA, now).unwrap()));
    assert!(!accepts(&ours.issue_peer("another", now).unwrap()));
    assert!(!accepts(&ours.issue(&[REPLICA.to_owned()], now).unwrap()));
    assert!(!accepts(&other.issue_peer(REPLICA, now).unwrap()));
    assert!(!accepts(&ours.issue_peer(REPLICA, now - 40 * DAY).unwrap()), "it has expired");
}

#[tokio::test]
async fn a_certificate_is_kept_over_a_renewal_of_the_authority_and_replaced_when_it_is_due() {
    let now = SystemTime::now();
    let old = Authority::create(now).unwrap();
    let mut keeper = keeper();
    let shown = |keeper: &ReplicaKeeper| keeper.shown.as_ref().unwrap().0.certificate.clone();
    keeper.update(old.clone(), now).unwrap();
    let (first, number) = (shown(&keeper), keeper.replica.number());
    keeper.update(old.clone(), now + DAY).unwrap();
    assert_eq!((shown(&keeper), keeper.replica.number()), (first.clone(), number), "nothing has changed");
    let new = old.renewed(now + DAY).unwrap();
    keeper.update(new.clone(), now + DAY).unwrap();
    assert_eq!(shown(&keeper), first, "others may not trust the new one yet");
    assert!(keeper.replica.number() > number, "and it is trusted");
    let peer = CertificateDer::from_pem_slice(new.issue_peer(REPLICA, now).unwrap().certificate.as_bytes());
    assert!(keeper.replica.accepts(&[peer.unwrap()], UnixTime::now()));
    keeper.update(new.clone(), now + 21 * DAY).unwrap();
    let second = shown(&keeper);
    assert_ne!(second, first);
    // Somebody has deleted the Secret.
    keeper.update(Authority::create(now).unwrap(), now + 21 * DAY).unwrap();
    assert_ne!(shown(&keeper), second);
}
